/** The parts of a save, over a store in memory and a workspace in memory. */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import * as TestClock from "effect/testing/TestClock";
import { tmpdir } from "node:os";
import { Readable } from "node:stream";
import { beforeEach, describe, expect, test } from "vitest";
import { chunkHead, FrameReader } from "../../src/domain/save/frames.ts";
import type { ListedItem, Listing, ListRequest, ReadRequest } from "../../src/domain/save/listing.ts";
import { BACKGROUND_SHARE } from "../../src/domain/save/order.ts";
import { Redactor } from "../../src/domain/secret/redactor.ts";
import { NOTHING_TO_SAVE, type Restored, type Saved } from "../../src/domain/save/saved.ts";
import { GitBackend, GitError } from "../../src/git/port.ts";
import { DaemonClient, DaemonOutdated, DaemonUnreachable } from "../../src/sandbox/daemon.ts";
import { SandboxProvider } from "../../src/sandbox/port.ts";
import type { SaveRequest } from "../../src/saves/port.ts";
import { makeSaver } from "../../src/saves/saver.ts";
import { SaveStore } from "../../src/saves/store.ts";
import { Keyring } from "../../src/services/keyring.ts";
import { Sessions } from "../../src/store/ports/sessions/sessions.ts";
import { Measures, NO_MEASURES, type MeasuresApi } from "../../src/telemetry/port.ts";
import { objectId, SaveStoreTwin } from "../twins/save-store.ts";
import { TIP, Workspace } from "./memory-workspace.ts";

const SESSION = "session";
const AT = "2026-11-20T12:00:00.000Z";

let workspace = new Workspace();
let twin = new SaveStoreTwin();
let session: { sandboxId: string; restored: Restored | null; saved?: Saved } = {
  sandboxId: "one",
  restored: null,
};
let notes: unknown[] = [];
let tip: Effect.Effect<string, GitError> = Effect.succeed(TIP);
let restoredWith: string[] = [];
let pushed: string[] = [];
/** Incomplete saves by reason, as the metrics count them. */
let counted: Record<string, number> = {};
const measures: MeasuresApi = {
  ...NO_MEASURES,
  count: (name, labels) => {
    const { code } = labels as { readonly code?: string };
    if (name === "saves_incomplete_total" && code !== undefined) counted[code] = (counted[code] ?? 0) + 1;
  },
};
let health: Effect.Effect<{ protocol: number }, DaemonOutdated> = Effect.succeed({ protocol: 3 });
let viewCommit: Effect.Effect<string> = Effect.succeed("c".repeat(40));
let takeOld: () => void = () => undefined;
beforeEach(() => {
  [workspace, twin, notes, restoredWith] = [new Workspace(), new SaveStoreTwin(), [], []];
  session = { sandboxId: "one", restored: null };
  tip = Effect.succeed(TIP);
  health = Effect.succeed({ protocol: 3 });
  pushed = [];
  counted = {};
});

const ALL: Restored = { wip: null, commits: 0, refs: [], files: 2, renamed: [], skipped: [], error: null };
const answer = ALL;

const unreachable = new DaemonUnreachable({ message: "no answer" });
const saving = {
  listing: (_link: unknown, _context: string, { request }: { readonly request: ListRequest }) =>
    Effect.andThen(
      workspace.beforeAnswer,
      Effect.suspend(() => {
        workspace.lists.push(request);
        return workspace.isAway ? Effect.fail(unreachable) : Effect.succeed(workspace.listing);
      }),
    ),
  read: (_link: unknown, _context: string, request: ReadRequest) =>
    Effect.sync(() => {
      workspace.reads.push(request);
      return Readable.from(workspace.frames(request), { objectMode: false });
    }),
  restore: (_link: unknown, _context: string, { body }: { readonly body: Readable }) =>
    Effect.promise(async () => {
      const reader = new FrameReader();
      let text = "";
      for await (const bytes of body)
        for (const part of reader.push(bytes as Buffer)) {
          if (part.type === "chunk") text += part.bytes.toString();
          else {
            restoredWith.push(part.end === "whole" ? text : part.end);
            text = "";
          }
        }
      return answer;
    }),
};

const layers = () =>
  Layer.mergeAll(
    Layer.succeed(SaveStore, twin.store),
    Layer.mock(DaemonClient, {
      saving,
      health: () => health,
    } as never),
    Layer.mock(SandboxProvider, { link: () => Effect.succeed({}) } as never),
    Layer.mock(GitBackend, { branchTip: () => tip } as never),
    Layer.mock(Sessions, {
      get: () => Effect.succeed(session),
      noteSaved: (_id: string, note: unknown) => Effect.sync(() => void notes.push(note)),
    } as never),
    Layer.succeed(Measures, measures),
    Layer.mock(Keyring, { serviceKey: () => Buffer.alloc(32) } as never),
  );

const saver = () =>
  Effect.runPromise(
    Effect.provide(
      makeSaver({
        nodeId: "node",
        directory: tmpdir(),
        redactor: () => Effect.succeed(new Redactor(["hunter2222"])),
        viewCommit: () => viewCommit,
        saveByPush: (request) => Effect.sync(() => void pushed.push(request.sandboxId)),
        takeOldSave: () => Effect.sync(() => takeOld()),
      }),
      layers(),
    ),
  );

const TURN = "0192d3a4-0000-7000-8000-0000000000aa";

const REQUEST: SaveRequest = {
  projectId: "project",
  sessionId: SESSION,
  sandboxId: "one",
  baseCommit: TIP,
  limitMs: 60_000,
  isBackground: false,
  turn: null,
};
const save = async (change: Partial<SaveRequest> = {}) =>
  Effect.runPromise((await saver()).save({ ...REQUEST, ...change }));
const stored = (): readonly string[] =>
  twin
    .of(SESSION)
    .last?.items.map(({ path }) => path)
    .toSorted() ?? [];

test("a save has every listed path, and the session says so", async () => {
  workspace.files.set("a", "one").set("b", "two");
  workspace.removed.add("c");
  workspace.packs.set("refs/heads/x", "a pack");
  const saved = await save({ turn: TURN });
  const whole = { state: "complete", files: 3, commits: 1, pending: [], error: null, node: "node" };
  expect(saved).toMatchObject(whole);
  expect(saved.skipped).toEqual([{ path: "node_modules/", reason: "ignored", count: 3 }]);
  expect(saved.wip).toBe("c".repeat(40));
  expect(stored()).toEqual(["a", "b", "c"]);
  expect(twin.of(SESSION).turns.get(TURN)).toEqual(twin.of(SESSION).last);
  expect(notes.at(-1)).toEqual({ sandboxId: "one", saved });
});

test("a workspace without anything new is complete as of its listing, and nothing is stored", async () => {
  const nothing = { state: "complete", wip: null, node: null, at: expect.any(String) };
  expect(await save()).toMatchObject(nothing);
  expect(twin.finished).toBe(0);
  // Another session may begin from a turn after which everything is pushed.
  expect(await save({ turn: TURN })).toMatchObject(nothing);
  expect(twin.of(SESSION).turns.get(TURN)).toMatchObject({ base: TIP, items: [], commits: [] });
});

test("the next save reads only what has changed, and leaves what is clean again", async () => {
  workspace.files.set("a", "one").set("b", "two");
  await save();
  workspace.files.set("b", "new").delete("a");
  workspace.reads.length = 0;
  expect(await save()).toMatchObject({ state: "complete", files: 1 });
  expect(workspace.reads.flatMap(({ items }) => items.map(({ path }) => path))).toEqual(["b"]);
  expect(stored()).toEqual(["b"]);
  const before = twin.finished;
  await save();
  expect(twin.finished).toBe(before);
});

test("one path that cannot be read costs that path alone", async () => {
  for (let at = 0; at < 40; at += 1) workspace.files.set(`f${at}`, `text ${at}`);
  workspace.broken.add("f7");
  workspace.ends.set("f9", "unreadable");
  const saved = await save();
  expect(saved.state).toBe("partial");
  expect(saved.pending).toEqual([
    { path: "f7", reason: "not_read" },
    { path: "f9", reason: "unreadable" },
  ]);
  expect(stored()).toHaveLength(38);
});

const refs = () => twin.of(SESSION).last?.commits.map(({ ref }) => ref);

describe("parts after a description that took long", () => {
  const REFS = ["a", "b", "c", "d", "e"].map((name) => `refs/heads/${name}`);
  const savedSlowly = async (): Promise<Saved> => {
    for (const ref of REFS) workspace.packs.set(ref, `commits of ${ref}`);
    twin.beforeFinish = TestClock.adjust(1000);
    const { save: run } = await saver();
    return Effect.runPromise(Effect.provide(run(REQUEST), TestClock.layer()));
  };
  test("become durable together", async () => {
    expect(await savedSlowly()).toMatchObject({ state: "complete", commits: 5 });
    expect(refs()).toEqual(REFS);
    expect(twin.finished).toBe(2);
  });

  test("are durable as far as they were read when the connection breaks, and the save goes on", async () => {
    workspace.broken.add("refs/heads/c");
    expect((await savedSlowly()).pending).toEqual([{ path: "refs/heads/c", reason: "not_read" }]);
    expect(refs()).toEqual(REFS.filter((ref) => !ref.endsWith("c")));
    expect(workspace.reads).toHaveLength(REFS.length);
  });

  test("are stored one by one if the store refuses one of them", async () => {
    twin.refused.set(objectId(Buffer.from("commits of refs/heads/c")), "failed");
    expect((await savedSlowly()).pending).toEqual([{ path: "refs/heads/c", reason: "not_stored" }]);
    expect(refs()).toEqual(REFS.filter((ref) => !ref.endsWith("c")));
  });
});

test("a path that the store refuses is named, and a full disk ends the save with what it has", async () => {
  workspace.files.set("a", "first").set("b", "the second");
  twin.refused.set(objectId(Buffer.from("first")), "failed");
  expect(await save()).toMatchObject({ state: "partial", pending: [{ path: "a", reason: "not_stored" }] });
  expect(stored()).toEqual(["b"]);
  twin.refused.set(objectId(Buffer.from("first")), "full");
  expect(await save()).toMatchObject({
    state: "partial",
    pending: [{ path: "a", reason: "no_room_on_node" }],
  });
  expect(stored()).toEqual(["b"]);
});

test("at a limit the smallest are stored, and the rest is named", async () => {
  workspace.files.set("a", "x".repeat(10)).set("b", "y".repeat(20)).set("c", "z".repeat(200));
  twin.room = 100;
  expect(await save()).toMatchObject({ state: "partial", pending: [{ path: "c", reason: "limit" }] });
  expect(stored()).toEqual(["a", "b"]);
  expect(counted).toEqual({ limit: 1 });
});

test("a file that changes once while it is read is read again", async () => {
  workspace.files.set("a", "before");
  workspace.beforeRead = (path) => {
    workspace.files.set(path, "after");
    workspace.beforeRead = () => undefined;
  };
  expect(await save()).toMatchObject({ state: "complete" });
  expect(twin.of(SESSION).last?.items[0]?.object).toBe(objectId(Buffer.from("after")));
});

test("a file that changes at every reading stays as the last save has it, and is named", async () => {
  workspace.files.set("a", "0");
  await save();
  let count = 0;
  workspace.files.set("a", "1");
  workspace.beforeRead = (path) => void workspace.files.set(path, `2${(count += 1)}`);
  const saved = await save();
  expect(saved).toMatchObject({
    state: "partial",
    pending: [{ path: "a", reason: "changes_while_it_is_read" }],
  });
  expect(twin.of(SESSION).last?.items[0]?.object).toBe(objectId(Buffer.from("0")));
});

test("a sandbox that is away leaves the stored save unchanged", async () => {
  workspace.files.set("a", "one");
  await save();
  workspace.isAway = true;
  expect(await save()).toMatchObject({ state: "failed", error: "no answer", files: 1 });
  expect(stored()).toEqual(["a"]);
});

test("what the session says of work on another node stays when neither that node nor the sandbox answers", async () => {
  session.saved = { ...NOTHING_TO_SAVE, at: AT, files: 11, commits: 5, node: "node-2", sandbox: "one" };
  workspace.isAway = true;
  expect(await save()).toEqual({ ...session.saved, state: "partial", error: "no answer" });
});

test("a former node's save stays as long as the new one lacks paths of which it may have a version", async () => {
  const former = { id: "one", at: AT, files: 11, commits: 5, node: "node-2" };
  session.saved = { ...NOTHING_TO_SAVE, at: AT, files: 11, commits: 5, node: "node-2", sandbox: "one" };
  workspace.files.set("a", "one");
  workspace.unreadable.add("key");
  const saved = await save();
  expect(saved).toMatchObject({ state: "complete", node: "node", earlier: [former] });
  session.saved = saved;
  workspace.unreadable.clear();
  expect((await save()).earlier).toBeUndefined();
});

test("work that another sandbox left on another node stays named beside new saves", async () => {
  session.saved = { ...NOTHING_TO_SAVE, at: AT, files: 11, commits: 5, node: "node-2", sandbox: "zero" };
  workspace.files.set("a", "one");
  const left = { id: "zero", at: AT, files: 11, commits: 5, node: "node-2" };
  expect(await save()).toMatchObject({ files: 1, node: "node", sandbox: "one", earlier: [left] });
  session.saved = await save();
  expect(await save()).toMatchObject({ earlier: [left] });
});

test("everything that the sandbox has is named if the node with the saves does not answer", async () => {
  workspace.files.set("a", "1");
  await save();
  workspace.files.set("a", "2");
  workspace.files.set("key-hunter2222", "x");
  const before = await save();
  session.saved = before;
  const { unreached } = await saver();
  const saved = await Effect.runPromise(unreached(REQUEST, "node-2 is away"));
  expect(saved).toEqual({
    ...before,
    state: "partial",
    error: "node-2 is away",
    pending: [
      { path: "a", reason: "node_away" },
      { path: expect.not.stringContaining("hunter2222"), reason: "node_away" },
    ],
  });
  expect(notes.at(-1)).toEqual({ sandboxId: "one", saved });
  workspace.files.clear();
  expect(await Effect.runPromise(unreached(REQUEST, "away"))).toMatchObject({
    state: "complete",
    pending: [],
  });
  workspace.isAway = true;
  expect(await Effect.runPromise(unreached(REQUEST, "away"))).toEqual({
    ...before,
    state: "partial",
    error: "away",
  });
});

test("a save of another sandbox stays beside the new one, unless this sandbox has brought it back whole", async () => {
  workspace.files.set("a", "one");
  await save();
  workspace = new Workspace();
  workspace.files.set("b", "two");
  session = { sandboxId: "two", restored: { ...ALL, skipped: [{ path: "a", reason: "limit" }] } };
  const saved = await save({ sandboxId: "two" });
  expect(saved.earlier?.map(({ id, files }) => ({ id, files }))).toEqual([{ id: "one", files: 1 }]);
  expect(stored()).toEqual(["b"]);
  session = { sandboxId: "three", restored: ALL };
  await save({ sandboxId: "three" });
  expect(twin.of(SESSION).earlier).toEqual([]);
});

test("a path that came back is in no earlier save any more", async () => {
  workspace.files.set("a", "one").set("b", "two");
  await save();
  workspace = new Workspace();
  session = { sandboxId: "two", restored: { ...ALL, skipped: [{ path: "a", reason: "not_written" }] } };
  // While the new sandbox's own save lacks a path, the earlier one has it.
  workspace.files.set("c", "three");
  workspace.broken.add("c");
  await save({ sandboxId: "two" });
  expect(twin.of(SESSION).earlier).toMatchObject([{ items: [{ path: "a" }, { path: "b" }] }]);
  workspace.broken.clear();
  expect(await save({ sandboxId: "two" })).toMatchObject({ earlier: [{ id: "one", files: 1 }] });
  expect(twin.of(SESSION).earlier).toMatchObject([{ items: [{ path: "a" }] }]);
});

test("an empty sandbox after a save of another one leaves that save restorable", async () => {
  workspace.files.set("a", "one");
  await save();
  workspace = new Workspace();
  session = { sandboxId: "two", restored: null };
  const saved = await save({ sandboxId: "two" });
  expect(saved).toMatchObject({ state: "complete", files: 0, node: "node", earlier: [{ id: "one" }] });
  expect(saved.wip).not.toBeNull();
});

test("a save of an earlier version stays beside the first one of this version", async () => {
  workspace.files.set("b", "two");
  session = { ...session, saved: { ...NOTHING_TO_SAVE, wip: TIP } };
  const gone: ListedItem = { kind: "file", path: "a", mode: "000000", size: 0, object: null };
  const { base, head, heads } = workspace.listing;
  const nothing = { pending: [], skipped: [], commits: [] };
  const old = { ...nothing, base, head, heads, items: [gone], sandboxId: SESSION, at: 0 };
  takeOld = () => void (twin.of(SESSION).last = old);
  const saved = await save();
  takeOld = () => undefined;
  expect(saved).toMatchObject({ files: 1, earlier: [{ id: SESSION, files: 1 }] });
});

test.each([
  ["an earlier protocol", Effect.succeed({ protocol: 2 })],
  ["a protocol that is too old", Effect.fail(new DaemonOutdated({ protocol: 0 }))],
])("a daemon of %s is asked to push, and to list nothing", async (_, said) => {
  health = said;
  workspace.files.set("a", "one");
  expect(await save()).toMatchObject({ state: "complete" });
  expect(pushed).toEqual(["one"]);
  expect(stored()).toEqual([]);
});

test("an upstream server that is away does not hinder a save", async () => {
  workspace.files.set("a", "one");
  tip = Effect.fail(new GitError({ code: "unavailable", message: "503" }));
  expect(await save()).toMatchObject({ state: "complete", files: 1 });
});

test("a secret in a path is masked for people, and the save has the path", async () => {
  workspace.files.set("hunter2222.txt", "x");
  workspace.ends.set("hunter2222.txt", "unreadable");
  expect((await save()).pending).toEqual([{ path: "[redacted].txt", reason: "unreadable" }]);
  expect(twin.of(SESSION).last?.pending).toEqual([{ path: "hunter2222.txt", reason: "unreadable" }]);
});

test("a save in the background gives way to one that a stop waits for", async () => {
  const { save: run } = await saver();
  const gate = Deferred.makeUnsafe<void>();
  const begun = Deferred.makeUnsafe<void>();
  workspace.files.set("a", "one");
  workspace.beforeAnswer = Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(gate));
  const [background, stop] = await Effect.runPromise(
    Effect.gen(function* () {
      const first = yield* Effect.forkChild(run({ ...REQUEST, isBackground: true }));
      yield* Deferred.await(begun);
      workspace.beforeAnswer = Effect.void;
      const second = yield* run(REQUEST);
      return [yield* Fiber.join(first), second];
    }),
  );
  expect(background.state).toBe("failed");
  expect(stop.state).toBe("complete");
});

test("the parts that are stored when the time is over are the save", async () => {
  workspace.files.set("a", "one").set("b", "x".repeat(2 * 1024 * 1024));
  const asked = Deferred.makeUnsafe<void>();
  const original = saving.read;
  saving.read = (link, context, request) =>
    request.items.some(({ path }) => path === "b")
      ? Effect.andThen(Deferred.succeed(asked, undefined), Effect.never)
      : original(link, context, request);
  const { save: run } = await saver();
  const saved = await Effect.runPromise(
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(run(REQUEST));
      yield* Deferred.await(asked);
      yield* TestClock.adjust(REQUEST.limitMs);
      return yield* Fiber.join(fiber);
    }).pipe(Effect.provide(TestClock.layer())),
  );
  saving.read = original;
  expect(saved).toMatchObject({ state: "partial", error: "It did not finish within 60000 ms." });
  expect(saved.pending).toEqual([{ path: "b", reason: "not_stored_yet" }]);
  expect(stored()).toEqual(["a"]);
});

test("a content that stalls keeps no save waiting", async () => {
  workspace.files.set("a", "x".repeat(2 * 1024 * 1024));
  const stalls = Deferred.makeUnsafe<void>();
  const original = saving.read;
  saving.read = () =>
    Effect.sync(() => {
      const body = new Readable({ read: () => Deferred.doneUnsafe(stalls, Effect.void) });
      body.push(chunkHead(1000));
      return body;
    });
  const { save: run } = await saver();
  const saved = await Effect.runPromise(
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(run(REQUEST));
      yield* Deferred.await(stalls);
      yield* TestClock.adjust(REQUEST.limitMs);
      return yield* Fiber.join(fiber);
    }).pipe(Effect.provide(TestClock.layer())),
  );
  saving.read = original;
  expect(saved.pending).toEqual([{ path: "a", reason: "not_read" }]);
});

test("a commit that takes long to make keeps no stop waiting", async () => {
  workspace.files.set("a", "one");
  const begun = Deferred.makeUnsafe<void>();
  const former = viewCommit;
  viewCommit = Effect.andThen(Deferred.succeed(begun, undefined), Effect.never);
  const { save: run } = await saver();
  const saved = await Effect.runPromise(
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(run(REQUEST));
      yield* Deferred.await(begun);
      yield* TestClock.adjust("10 seconds");
      return yield* Fiber.join(fiber);
    }).pipe(Effect.provide(TestClock.layer())),
  );
  viewCommit = former;
  expect(saved).toMatchObject({ state: "complete", files: 1, wip: null, error: null });
});

test("a save in the background lists and reads with its share of a processor, and any other without a limit", async () => {
  workspace.files.set("a", "one");
  await save({ isBackground: true });
  workspace.files.set("a", "two");
  await save();
  expect([workspace.lists, workspace.reads].map((asked) => asked.map(({ share }) => share))).toEqual([
    [BACKGROUND_SHARE, 1],
    [BACKGROUND_SHARE, 1],
  ]);
});

test("an earlier save that a restart cannot attribute keeps nothing that the new sandbox has saved, too", async () => {
  workspace.files.set("a", "one").set("b", "two");
  await save();
  // The name stands for no path of a save.
  session = { sandboxId: "two", restored: { ...ALL, skipped: [{ path: "unknown", reason: "missing" }] } };
  workspace.files.set("b", "changed");
  expect(await save({ sandboxId: "two" })).toMatchObject({ earlier: [{ id: "one", files: 1 }] });
  workspace.files.set("b", "two");
  expect(await save({ sandboxId: "two" })).not.toHaveProperty("earlier");
});

test("a restoration sends all saves, oldest first, and the next save takes the place of the earlier ones", async () => {
  workspace.files.set("a", "one");
  await save();
  workspace = new Workspace();
  workspace.files.set("b", "two");
  session = { sandboxId: "two", restored: null };
  await save({ sandboxId: "two" });
  const { restore } = await saver();
  const restored = await Effect.runPromise(restore({ ...REQUEST, sandboxId: "three", away: ["then"] }));
  expect(JSON.parse(restoredWith[0] ?? "").notes).toEqual([
    expect.stringMatching(/^The save of then is not here/),
  ]);
  expect(restored).toMatchObject({ files: 2, wip: "c".repeat(40) });
  expect(JSON.parse(restoredWith[0] ?? "").saves.map(({ items }: Listing) => items[0]?.path)).toEqual([
    "a",
    "b",
  ]);
  expect(restoredWith.slice(1)).toEqual(["one", "two"]);
  // A sandbox that is lost now has saved no part of it.
  expect(twin.of(SESSION).earlier).toHaveLength(1);
  session = { sandboxId: "three", restored: { ...ALL, skipped: [{ path: "a", reason: "git_directory" }] } };
  workspace.files.delete("b");
  // It came back, and the agent has removed it since. The other one can still be restored.
  expect(await save({ sandboxId: "three" })).toMatchObject({ earlier: [{ id: "one" }] });
  session = { sandboxId: "four", restored: ALL };
  // The agent has removed the one file, and the other cannot be read just now.
  workspace.files.set("a", "changed");
  workspace.broken.add("a");
  const saved = await save({ sandboxId: "four" });
  expect(saved).toMatchObject({ state: "partial", files: 1, pending: [{ path: "a" }] });
  expect(saved).not.toHaveProperty("earlier");
  expect(twin.of(SESSION).last?.items[0]?.object).toBe(objectId(Buffer.from("one")));
});

test("a session that begins from another one has its newest save, or that of a turn, on a branch of its own name", async () => {
  const { copy } = await saver();
  const copied = (turn: string | null = null) => Effect.runPromise(copy({ ...REQUEST, turn, to: "next" }));
  expect(await copied()).toBeNull();
  workspace.files.set("a", "one");
  await save();
  const { last } = twin.of(SESSION);
  if (last === null) throw new Error("nothing was saved");
  const commits = [
    { repository: "", ref: `refs/heads/${SESSION}`, commit: TIP, within: null, size: 0, object: null },
    { repository: "inner", ref: `refs/heads/${SESSION}`, commit: TIP, within: null, size: 0, object: null },
  ];
  const head = { ref: `refs/heads/${SESSION}`, commit: TIP };
  twin.of(SESSION).last = { ...last, head, commits };
  expect(await copied()).toMatchObject({
    base: TIP,
    saved: { state: "complete", files: 1, commits: 2, node: "node" },
  });
  expect(twin.of("next").last).toEqual({
    ...last,
    head: { ...head, ref: "refs/heads/next" },
    commits: [{ ...commits[0], ref: "refs/heads/next" }, commits[1]],
  });
  // The newest one may be of an earlier sandbox.
  twin.of(SESSION).earlier.push(last);
  twin.of(SESSION).last = null;
  expect(await copied()).toMatchObject({ saved: { files: 1 } });
  twin.of(SESSION).turns.set(TURN, { ...last, items: [], base: "b".repeat(40) });
  expect(await copied(TURN)).toMatchObject({ base: "b".repeat(40), saved: { files: 0 } });
  expect(await copied(SESSION)).toBeNull();
});

test("the runtime's own record is stored and sent whole or not at all, and is no work", async () => {
  workspace.history.set(".agent/a", "one").set(".agent/b", "two");
  expect(await save()).toMatchObject({ state: "complete", files: 0, node: null });
  workspace.history.set(".agent/b", "three");
  workspace.ends.set(".agent/b", "changed");
  expect(await save()).toMatchObject({ state: "complete", error: null });
  const { copy, restore } = await saver();
  await Effect.runPromise(restore({ ...REQUEST, sandboxId: "two" }));
  const history = { runtime: "agent", id: "conversation-1", at: expect.any(Number) };
  expect(JSON.parse(restoredWith[0] ?? "")).toMatchObject({ saves: [], history });
  expect(restoredWith.slice(1)).toEqual(["one", "two"]);
  expect(await Effect.runPromise(copy({ ...REQUEST, to: "next" }))).toBeNull();
});
