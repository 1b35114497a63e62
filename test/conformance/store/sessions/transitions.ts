/** Conformance: the history of actors, and the commands that they wait for. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { conversation } from "../../../../src/machines/conversation.ts";
import type { ConversationEvent } from "../../../../src/machines/conversation-events.ts";
import { Admissions } from "../../../../src/store/ports/triggers/admissions.ts";
import { ChangeRequests } from "../../../../src/features/change-requests/ports/change-requests.ts";
import { Conversations } from "../../../../src/store/ports/sessions/conversations.ts";
import { Sandboxes } from "../../../../src/store/ports/sessions/sandboxes.ts";
import { Sessions } from "../../../../src/store/ports/sessions/sessions.ts";
import { Transitions, type ActorKey } from "../../../../src/store/ports/transitions.ts";
import { DETAIL_MAX, type NewTransition } from "../../../../src/machines/transition.ts";
import { tellRequest } from "../../../support/world/change-requests.ts";
import {
  admitSession,
  fired,
  openSandbox,
  tellSandbox,
  tellSession,
} from "../../../support/world/sessions.ts";
import { makeWorld, NOON } from "../../../support/world/world.ts";
import { type Check } from "../fixture.ts";

const page = { limit: 50, cursor: null } as const;
const NEVER = { before: 0, kept: 1_000, movedSince: 0 };

const historyOf = Effect.fnUntraced(function* (actor: ActorKey) {
  const { items } = yield* (yield* Transitions).list(actor, page);
  return items.toReversed();
});

/** The moves in short: event, states and commands. */
const moves = (rows: readonly NewTransition[]) =>
  rows.map(({ event, from, to, commands }) => [event, from, to, commands.join(" ")]);

const say = Effect.fnUntraced(function* (id: string, event: ConversationEvent) {
  const { memory } = yield* Conversations;
  const loaded = yield* memory.load(id);
  if (loaded === null) return yield* Effect.die("no such conversation");
  const { snapshot: after, commands } = conversation.step(loaded.snapshot, event);
  const { snapshot: before, version } = loaded;
  return yield* memory.save({ id, version, event, before, after, commands, completes: null, now: NOON });
});

const rung = (id: string, at: number, event = "timer.elapsed") => ({
  actor: { kind: "trigger", id } as const,
  at,
  event,
  from: "waiting",
  to: "firing",
  detail: null,
  commands: ["accountForDue"],
});

const checkStored = (check: Check): void => {
  check(
    "has a row for each step of a session, from its admission on",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { memory } = yield* Sessions;
      const id = yield* admitSession(world);
      const [sandboxId, commit] = [randomUUID(), "a".repeat(40)];
      yield* tellSession(id, { type: "branch.created", commit, sandboxId }, NOON + 1);
      yield* tellSession(id, { type: "sandbox.live", sandboxId }, NOON + 5);
      const lost = { code: "sandbox_lost", message: "the node is gone" } as const;
      yield* tellSession(id, { type: "sandbox.lost", sandboxId, failure: lost }, NOON + 7);
      const rows = yield* historyOf({ kind: "session", id });
      expect(moves(rows)).toEqual([
        ["created", null, "provisioning", "createBranch"],
        ["branch.created", "provisioning", "provisioning", "provisionSandbox"],
        ["sandbox.live", "provisioning", "running", ""],
        ["sandbox.lost", "running", "failed", "signalFreeSlot"],
      ]);
      expect(rows.map(({ at, detail, enteredAt }) => [at, detail, enteredAt])).toEqual([
        [NOON, null, null],
        [NOON + 1, `commit ${commit}`, NOON],
        [NOON + 5, null, NOON],
        [NOON + 7, "sandbox_lost: the node is gone", NOON + 5],
      ]);
      expect(rows.map(({ number }) => number)).toEqual([1, 2, 3, (yield* memory.load(id))?.version]);
      const { newest } = yield* Transitions;
      expect(yield* newest({ kind: "session", id })).toMatchObject({
        last: { to: "failed" },
        since: NOON + 7,
      });
    }),
  );

  check(
    "begins with the trigger of a session that a trigger started",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const [answer] = yield* (yield* Admissions).admit(world.accountId, [fired(world)]);
      const id = answer?.outcome === "admitted" ? answer.sessionId : "";
      const [first] = yield* historyOf({ kind: "session", id });
      expect(first).toMatchObject({ event: "created", detail: "by the trigger on-push", at: NOON });
    }),
  );

  check(
    "has the steps of sandboxes, change requests and conversations too",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const sessionId = yield* admitSession(world);
      const sandbox = yield* openSandbox(sessionId);
      yield* tellSandbox(sandbox.id, { type: "daemon.ready" });
      expect(moves(yield* historyOf({ kind: "sandbox", id: sandbox.id }))).toEqual([
        ["created", null, "provisioning", "bootSandbox"],
        ["daemon.ready", "provisioning", "active", "reportLive watchSandbox"],
      ]);
      const { id } = yield* (yield* ChangeRequests).open({
        id: randomUUID(),
        projectId: world.projectId,
        sessionId,
        headRef: sessionId,
        baseRef: "main",
        title: "Add a button",
        description: "",
        createdBy: world.userId,
        tips: { base: "b0", head: "h0" },
        now: NOON,
      });
      yield* tellRequest(id, { type: "close.requested" });
      expect(moves(yield* historyOf({ kind: "change_request", id }))).toEqual([
        ["created", null, "open", "mirrorPull"],
        ["close.requested", "open", "closed", "mirrorPull"],
      ]);
      yield* (yield* Conversations).open(sessionId, NOON);
      const runtime = {
        type: "runtime.reported",
        sandboxId: sandbox.id,
        seq: 0,
        requests: [],
        plans: [],
        isAttended: true,
      } as const;
      yield* say(sessionId, { ...runtime, ended: 0, isWorking: true });
      expect(moves(yield* historyOf({ kind: "conversation", id: sessionId }))).toEqual([
        ["created", null, "idle", ""],
        ["runtime.reported", "idle", "running", ""],
      ]);
    }),
  );

  check(
    "leaves out steps that change nothing, and writes nothing for a step that is fenced",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { memory } = yield* Sessions;
      const id = yield* admitSession(world);
      yield* tellSession(id, { type: "stop.requested" });
      const before = yield* historyOf({ kind: "session", id });
      yield* tellSession(id, { type: "slot.refused" });
      expect(yield* historyOf({ kind: "session", id })).toEqual(before);
      const loaded = yield* memory.load(id);
      if (loaded === null) return yield* Effect.die("no such session");
      const { snapshot } = loaded;
      const step = { id, before: snapshot, after: { ...snapshot, state: "failed" as const }, commands: [] };
      const late = {
        ...step,
        version: 1,
        event: { type: "stop.requested" as const },
        completes: null,
        now: NOON,
      };
      expect((yield* Effect.flip(memory.save(late)))._tag).toBe("Fenced");
      expect(yield* historyOf({ kind: "session", id })).toEqual(before);
    }),
  );

  check(
    "keeps no text of people, and cuts long ones",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const id = yield* admitSession(world);
      yield* (yield* Conversations).open(id, NOON);
      const author = { kind: "user", userId: "u", name: "Ada", triggerSlug: null, fireId: null } as const;
      const message = { author, text: "hunter2", files: [], model: null, agent: null };
      yield* say(id, { type: "message.posted", messageId: randomUUID(), isUrgent: true, message });
      const sandboxId = randomUUID();
      yield* tellSession(id, { type: "branch.created", commit: "c", sandboxId });
      const failure = { code: "boot_timeout", message: `\u{1f600}<b>${"x".repeat(9_000)}` } as const;
      yield* tellSession(id, { type: "sandbox.failed", sandboxId, failure });
      const rows = [
        ...(yield* historyOf({ kind: "conversation", id })),
        ...(yield* historyOf({ kind: "session", id })),
      ];
      expect(JSON.stringify(rows)).not.toContain("hunter2");
      expect(rows.find(({ event }) => event === "message.posted")?.detail).toBe("urgent");
      expect(rows.at(-1)?.detail).toHaveLength(DETAIL_MAX);
      expect(rows.at(-1)?.detail).toContain("boot_timeout: \u{1f600}<b>xxx");
    }),
  );
};

export const checkTransitions = (check: Check): void => {
  describe("the history of an actor", () => {
    checkStored(check);

    check(
      "takes rows of actors without a snapshot, in order, each actor's for itself",
      Effect.gen(function* () {
        const { add, newest } = yield* Transitions;
        const [one, two] = [`${randomUUID()}/nightly`, `${randomUUID()}/nightly`];
        yield* add([]);
        yield* add([rung(one, NOON), rung(two, NOON + 1), rung(one, NOON + 2, "look.failed")]);
        yield* add([rung(one, NOON + 3)]);
        const rows = yield* historyOf({ kind: "trigger", id: one });
        expect(rows.map(({ event, at, enteredAt }) => [event, at, enteredAt])).toEqual([
          ["timer.elapsed", NOON, null],
          ["look.failed", NOON + 2, NOON],
          ["timer.elapsed", NOON + 3, NOON + 2],
        ]);
        expect(yield* historyOf({ kind: "trigger", id: two })).toHaveLength(1);
        expect(yield* newest({ kind: "trigger", id: "none/nightly" })).toBe(null);
      }),
    );

    check(
      "is read in pages, the newest first",
      Effect.gen(function* () {
        const { add, list } = yield* Transitions;
        const actor = { kind: "trigger", id: `${randomUUID()}/nightly` } as const;
        yield* add([1, 2, 3].map((number) => rung(actor.id, NOON + number)));
        const first = yield* list(actor, { limit: 2, cursor: null });
        expect(first.items.map(({ at }) => at - NOON)).toEqual([3, 2]);
        const second = yield* list(actor, { limit: 2, cursor: first.nextCursor });
        expect(second.items.map(({ at }) => at - NOON)).toEqual([1]);
        expect(second.nextCursor).toBe(null);
        for (const cursor of ["0", "x", "-1", "1e3", "99999999999999999"])
          expect((yield* Effect.flip(list(actor, { limit: 2, cursor })))._tag).toBe("BadCursor");
      }),
    );

    check(
      "is read for all actors together: the newest rows, oldest first",
      Effect.gen(function* () {
        const { add, recent } = yield* Transitions;
        const [one, other] = [`${randomUUID()}/one`, `${randomUUID()}/other`];
        // Later than what other checks leave.
        const since = NOON + 365 * 24 * 60 * 60 * 1000;
        yield* add([rung(one, since - 1), rung(one, since), rung(other, since + 1), rung(one, since + 2)]);
        const rows = yield* recent({ since, limit: 10 });
        expect(rows.map(({ actor, at }) => [actor.kind, actor.id, at - since])).toEqual([
          ["trigger", one, 0],
          ["trigger", other, 1],
          ["trigger", one, 2],
        ]);
        expect(rows[0]).toEqual(rung(one, since));
        expect((yield* recent({ since, limit: 2 })).map(({ at }) => at - since)).toEqual([1, 2]);
      }),
    );

    check(
      "loses rows by age, and beyond the newest ones of an actor that moved",
      Effect.gen(function* () {
        const { add, prune } = yield* Transitions;
        const [busy, quiet] = [`${randomUUID()}/busy`, `${randomUUID()}/quiet`];
        yield* add([1, 2, 3, 4].map((number) => rung(busy, NOON + number)));
        yield* add([1, 2, 3].map((number) => rung(quiet, NOON + number)));
        const left = Effect.fnUntraced(function* (id: string) {
          return (yield* historyOf({ kind: "trigger", id })).map(({ at }) => at - NOON);
        });
        expect(yield* prune(NEVER)).toBe(0);
        expect(yield* prune({ ...NEVER, kept: 2, movedSince: NOON + 4 })).toBe(2);
        expect([yield* left(busy), yield* left(quiet)]).toEqual([
          [3, 4],
          [1, 2, 3],
        ]);
        expect(yield* prune({ ...NEVER, before: NOON + 3 })).toBe(2);
        expect([yield* left(busy), yield* left(quiet)]).toEqual([[3, 4], [3]]);
      }),
    );
  });

  describe("the commands of an actor", () => {
    check(
      "wait with their age, their crashes and the last one's reason, until they are done",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { waiting } = yield* Transitions;
        const { memory } = yield* Sandboxes;
        const { id } = yield* openSandbox(yield* admitSession(world), NOON + 3);
        const actor = { kind: "sandbox", id } as const;
        const fresh = { command: "bootSandbox", since: NOON + 3, attempts: 0, lastError: null };
        expect(yield* waiting(actor)).toEqual([fresh]);
        const [command] = (yield* memory.load(id))?.pending ?? [];
        const commandId = command?.id ?? "";
        const crash = (reason: string) =>
          memory.crashed?.(id, commandId, { reason, now: NOON + 4 }) ?? Effect.void;
        yield* crash("first");
        yield* crash("y".repeat(9_000));
        const [crashed] = yield* waiting(actor);
        expect(crashed).toMatchObject({ attempts: 2, lastError: "y".repeat(DETAIL_MAX) });
        yield* memory.complete(id, [commandId]);
        yield* crash("late");
        expect(yield* waiting(actor)).toEqual([]);
        expect(yield* waiting({ kind: "trigger", id: "p/nightly" })).toEqual([]);
      }),
    );
  });
};
