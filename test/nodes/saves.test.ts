/** On which node a session's work is saved, and how long a save waits for the way there (nodes/saves.ts). */
import { it } from "@effect/vitest";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import * as TestClock from "effect/testing/TestClock";
import { expect } from "vitest";
import { NOTHING_TO_SAVE, notRestored, notSaved } from "../../src/domain/save/saved.ts";
import { GitError } from "../../src/git/port.ts";
import { Upstreams } from "../../src/git/upstream/upstreams.ts";
import { NodeMap } from "../../src/nodes/map.ts";
import { nodeSaves } from "../../src/nodes/saves.ts";
import { LocalSaves } from "../../src/saves/layer.ts";
import { Saves } from "../../src/saves/port.ts";
import { Keyring } from "../../src/services/keyring.ts";
import { Sessions } from "../../src/store/ports/sessions/sessions.ts";

const place = { projectId: "project", sessionId: "session" };
const REQUEST = {
  ...place,
  sandboxId: "sandbox",
  baseCommit: null,
  limitMs: 60_000,
  isBackground: false,
  turn: null,
};

/** This node's saves. The database answers after so many questions. */
const savesAfter = (failures: number, repositoryIs = "here") => {
  let asked = 0;
  const unavailable = new GitError({ code: "unavailable", message: "no database" });
  const kindOf = () =>
    Effect.suspend(() => ((asked += 1) <= failures ? Effect.fail(unavailable) : Effect.succeed("hosted")));
  const ports = Layer.mergeAll(
    Layer.mock(LocalSaves, {
      save: () => Effect.succeed({ ...NOTHING_TO_SAVE, files: 1 }),
      unreached: (_request: unknown, error: string) => Effect.succeed(notSaved(error)),
    } as never),
    Layer.mock(NodeMap, {
      self: "node",
      isSilent: () => false,
      repositoryPlace: () => Effect.succeed({ is: repositoryIs }),
    } as never),
    Layer.mock(Upstreams, { kind: kindOf } as never),
    Layer.mock(Sessions, {} as never),
    Layer.mock(Keyring, { nodes: {} } as never),
  );
  return Layer.provide(nodeSaves, ports);
};
const saving = Effect.flatMap(Saves, ({ save }) => save(REQUEST));

it.effect("a save waits while the database is away, and is made when it is back", () =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(saving);
    yield* TestClock.adjust("5 seconds");
    expect(yield* Fiber.join(fiber)).toMatchObject({ state: "complete", files: 1 });
  }).pipe(Effect.provide(savesAfter(3))),
);

it.effect("saves on a node that is away, or dead, cannot be brought back now", () =>
  Effect.gen(function* () {
    const check = Effect.flatMap(Saves, (saves) => Effect.flip(saves.check(place)));
    for (const is of ["away", "dead"])
      expect(yield* Effect.provide(check, savesAfter(0, is))).toMatchObject({ code: "away" });
  }),
);

it.effect("work on a dead node stays its own, and a sandbox that still runs is saved here", () =>
  Effect.gen(function* () {
    const saves = yield* Saves;
    expect(yield* Effect.flip(saves.check(place))).toMatchObject({ code: "away" });
    expect(yield* saves.restore({ ...place, sandboxId: "sandbox" })).toMatchObject({
      files: 0,
      error: expect.stringContaining("node two does not respond") as string,
    });
    expect(yield* Effect.flip(saves.forgetEarlier(place, "left"))).toMatchObject({ code: "away" });
    expect(yield* saves.save(REQUEST)).toMatchObject({ state: "complete", files: 1 });
  }).pipe(
    Effect.provide(
      Layer.provide(
        nodeSaves,
        Layer.mergeAll(
          Layer.mock(LocalSaves, {
            save: () => Effect.succeed({ ...NOTHING_TO_SAVE, files: 1 }),
            restore: () => Effect.die(new Error("another save is brought back")),
            forgetEarlier: () => Effect.die(new Error("another save is deleted")),
          } as never),
          Layer.mock(NodeMap, {
            self: "one",
            isSilent: () => false,
            place: (nodeId: string) => (nodeId === "one" ? { is: "here" } : { is: "dead", nodeId }),
          } as never),
          Layer.mock(Upstreams, { kind: () => Effect.succeed("upstream") } as never),
          Layer.mock(Sessions, {
            get: () => Effect.succeed({ saved: { ...NOTHING_TO_SAVE, node: "two" } }),
          } as never),
          Layer.mock(Keyring, { nodes: {} } as never),
        ),
      ),
    ),
  ),
);

it.effect("older saves of other nodes are brought back first, and those of a node that is away stay", () =>
  Effect.gen(function* () {
    const parts: unknown[] = [];
    const unreached: unknown[] = [];
    const restored = { ...notRestored(""), error: null };
    const saves = yield* Effect.provide(
      Saves,
      Layer.provide(
        nodeSaves,
        Layer.mergeAll(
          Layer.mock(LocalSaves, {
            restore: ({ part, away }: { readonly part?: unknown; readonly away?: unknown }) =>
              Effect.sync(() => {
                parts.push(part);
                unreached.push(away);
                return { ...restored, files: parts.length, refs: ["stash"] };
              }),
          } as never),
          // The other one is this node too, so that no call is needed.
          Layer.mock(NodeMap, {
            self: "one",
            isSilent: () => false,
            place: (nodeId: string) => (nodeId === "far" ? { is: "dead", nodeId } : { is: "here" }),
          } as never),
          Layer.mock(Upstreams, { kind: () => Effect.succeed("upstream") } as never),
          Layer.mock(Sessions, {
            get: () =>
              Effect.succeed({
                saved: {
                  ...NOTHING_TO_SAVE,
                  node: "one",
                  earlier: ["two", "far", "two"].map((node) => ({
                    id: node,
                    at: `of ${node}`,
                    files: 1,
                    commits: 0,
                    node,
                  })),
                },
              }),
          } as never),
          Layer.mock(Keyring, { nodes: {} } as never),
        ),
      ),
    );
    expect(yield* saves.restore({ ...place, sandboxId: "sandbox" })).toEqual({
      ...restored,
      files: 3,
      refs: ["stash"],
      nodes: ["two"],
    });
    expect(parts).toEqual([
      { number: 1, isLast: false },
      { number: 2, isLast: true },
    ]);
    // The last delivery names the others.
    expect(unreached).toEqual([undefined, ["of far"]]);
  }),
);

/** A node's address at which somebody takes connections. */
const listening = (answer: (response: ServerResponse) => void) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const server = createServer((_request, response) => answer(response));
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      return server;
    }),
    (server) =>
      Effect.sync(() => {
        server.close();
        server.closeAllConnections();
      }),
  );

it.effect("a node that stands still is away, and one of a version before is not", () =>
  Effect.gen(function* () {
    const asked = Effect.fnUntraced(function* (answer: (response: ServerResponse) => void) {
      const { port } = (yield* listening(answer)).address() as AddressInfo;
      const ports = Layer.mergeAll(
        Layer.mock(LocalSaves, {} as never),
        Layer.mock(NodeMap, {
          self: "one",
          isSilent: () => false,
          place: (nodeId: string) => ({ is: "there", nodeId, url: `http://127.0.0.1:${port}` }),
        } as never),
        Layer.mock(Upstreams, { kind: () => Effect.succeed("upstream") } as never),
        Layer.mock(Sessions, {
          get: () => Effect.succeed({ saved: { ...NOTHING_TO_SAVE, node: "two" } }),
        } as never),
        Layer.succeed(Keyring, {
          nodes: { credential: Buffer.alloc(32), seal: Buffer.alloc(32) },
        } as never),
      );
      return yield* Effect.provide(Saves, Layer.provide(nodeSaves, ports));
    });
    const frozen = yield* asked(() => undefined);
    // Longer operations begin with the same question.
    for (const question of [frozen.check(place), frozen.compare(place)]) {
      const answered = yield* Effect.forkChild(Effect.flip(question));
      yield* TestClock.adjust("5 seconds");
      expect(yield* Fiber.join(answered)).toMatchObject({ code: "away" });
    }
    const former = yield* asked((response) => void response.writeHead(404).end());
    yield* former.check(place);
  }),
);

it.effect("a save that finds no way names what the sandbox has", () =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(saving);
    yield* TestClock.adjust("2 minutes");
    expect(yield* Fiber.join(fiber)).toMatchObject({ state: "failed", error: "no database" });
  }).pipe(Effect.provide(savesAfter(Infinity))),
);

it.effect("sizes of a project at another server name the nodes that cannot be asked", () =>
  Effect.gen(function* () {
    const sizes = yield* Effect.flatMap(Saves, (saves) => saves.sizes("project"));
    expect(sizes).toEqual({ sessions: [{ sessionId: "session", bytes: 7 }], away: ["two", "three", "dead"] });
    const refusal = yield* Effect.flip(Effect.flatMap(Saves, (saves) => saves.check(place)));
    expect(refusal).toMatchObject({ code: "away" });
    expect(refusal.message).toContain("node two does not respond");
  }).pipe(
    Effect.provide(
      Layer.provide(
        nodeSaves,
        Layer.mergeAll(
          Layer.mock(LocalSaves, {
            sizes: () => Effect.succeed({ sessions: [{ sessionId: "session", bytes: 7 }], away: [] }),
          } as never),
          Layer.mock(NodeMap, {
            self: "one",
            isSilent: () => false,
            others: () => ["two", "three"],
            place: (nodeId: string) =>
              nodeId !== "three"
                ? { is: "away", nodeId }
                : { is: "there", nodeId, url: "http://127.0.0.1:1" },
          } as never),
          Layer.mock(Upstreams, { kind: () => Effect.succeed("upstream") } as never),
          Layer.mock(Sessions, {
            get: () => Effect.succeed({ saved: { ...NOTHING_TO_SAVE, node: "two" } }),
            nodesWithSaves: () => Effect.succeed(["one", "two", "dead"]),
          } as never),
          Layer.succeed(Keyring, {
            nodes: { credential: Buffer.alloc(32), seal: Buffer.alloc(32) },
          } as never),
        ),
      ),
    ),
  ),
);
