import * as Effect from "effect/Effect";
import { expect, test } from "vitest";
import { LIVE_SESSION_STATUSES, SESSION_STATUSES } from "../../src/domain/session/session.ts";
import {
  session,
  sessionMachine,
  type SessionCommand,
  type SessionEvent,
  type SessionSnapshot,
} from "../../src/machines/session.ts";
import { isMoreUrgent, type SaveOrder } from "../../src/domain/save/order.ts";
import { NOTHING_TO_SAVE, notSaved } from "../../src/domain/save/saved.ts";
import { memoryStore } from "../twins/store/layer.ts";
import { Sessions } from "../../src/store/ports/sessions/sessions.ts";
import { admitSession } from "../support/world/sessions.ts";
import { makeWorld } from "../support/world/world.ts";
import { describeModel, everyStep } from "./model.ts";
import { isDeep } from "../support/vitest/rings.ts";

const failure = { code: "clone_failed", message: "the repository could not be cloned" } as const;

const saved = NOTHING_TO_SAVE;

/** Two sandboxes speak: in most states at least one of them is a former or a strange one. */
const ofSandbox = (sandboxId: string): SessionEvent[] => [
  { type: "sandbox.live", sandboxId },
  { type: "sandbox.failed", sandboxId, failure },
  { type: "sandbox.lost", sandboxId, failure },
  { type: "sandbox.ended", sandboxId, saved },
  { type: "daemon.outdated", sandboxId },
  { type: "sandbox.kept", sandboxId, order: "pause", saved: notSaved("away"), unsaved: null },
];

const events: SessionEvent[] = [
  { type: "branch.created", commit: "c0ffee", sandboxId: "first" },
  { type: "branch.failed", failure },
  ...ofSandbox("first"),
  ...ofSandbox("second"),
  { type: "restart.requested", sandboxId: "second" },
  { type: "restart.requested", sandboxId: "second", afterStop: true },
  { type: "stop.requested" },
  { type: "stop.requested", save: "skip" },
  { type: "stop.requested", save: "require" },
  { type: "delete.requested" },
  { type: "idle.elapsed" },
  { type: "user.deactivated" },
  { type: "slot.refused" },
];

const RUNNING: readonly SessionEvent[] = [
  { type: "branch.created", commit: "c0ffee", sandboxId: "first" },
  { type: "sandbox.live", sandboxId: "first" },
  { type: "idle.elapsed" },
];
const KEPT = {
  type: "sandbox.kept",
  sandboxId: "first",
  order: "pause",
  saved: notSaved("away"),
  unsaved: null,
} as const;

const orderBy = (event: SessionEvent): SaveOrder | null => {
  switch (event.type) {
    case "stop.requested":
      return event.save ?? "try";
    case "delete.requested":
      return "skip";
    case "user.deactivated":
      return "dismiss";
    case "idle.elapsed":
    case "daemon.outdated":
      return "pause";
    default:
      return null;
  }
};
const isPersons = ({ type }: SessionEvent) =>
  ["stop.requested", "delete.requested", "user.deactivated"].includes(type);

const isTerminal = ({ state }: SessionSnapshot) => !LIVE_SESSION_STATUSES.includes(state);
const commanded = <Type extends SessionCommand["type"]>(commands: readonly SessionCommand[], type: Type) =>
  commands.filter((command): command is Extract<SessionCommand, { type: Type }> => command.type === type);

describeModel<SessionSnapshot, SessionEvent, SessionCommand>(
  {
    machine: session,
    definition: sessionMachine,
    events,
    // Thousands of simple paths differ only in what a waiting restart goes through.
    isDense: !isDeep,
    returns: [
      [...RUNNING, KEPT],
      [...RUNNING, { type: "restart.requested", sandboxId: "second" }, KEPT],
    ],
    memory: Effect.gen(function* () {
      const id = yield* admitSession(yield* makeWorld(10));
      return { id, memory: (yield* Sessions).memory };
    }).pipe(Effect.provide(memoryStore, { local: true }), Effect.orDie),
  },
  {
    "S1: only the four written values of the enum": everyStep(({ snapshot }) => {
      expect(["provisioning", "running", "stopped", "failed"]).toContain(snapshot.state);
    }),
    "S2: running on the word of the current sandbox alone, and no word of another one counts": everyStep(
      (seen) => {
        const { before, event, snapshot, accepted } = seen;
        if (before.state !== "running" && snapshot.state === "running") {
          expect(event).toEqual({ type: "sandbox.live", sandboxId: before.context.sandboxId });
        }
        if (/^(?:sandbox|daemon)\./.test(event.type) && "sandboxId" in event) {
          expect(accepted && event.sandboxId !== before.context.sandboxId).toBe(false);
        }
      },
    ),
    "S3: a sandbox is asked for only after the branch exists": everyStep(
      ({ commands, snapshot, past, event }) => {
        for (const { sandboxId } of commanded(commands, "provisionSandbox")) {
          expect([...past, event].map(({ type }) => type)).toContain("branch.created");
          const { deleted, ends } = snapshot.context;
          const ended = { ending: null, next: null, save: null, asked: null };
          expect(snapshot.context).toEqual({ branched: true, sandboxId, deleted, ends, ...ended });
          expect(deleted).toBe(false);
        }
      },
    ),
    "S4, S9: a stop and a more urgent one tear the current sandbox down; a failure leaves that to the sandbox":
      everyStep((seen) => {
        const { before, snapshot, commands, event } = seen;
        const order = orderBy(event);
        const isStop = before.state === "provisioning" && snapshot.state === "stopped";
        const isWish =
          before.state === "running" &&
          order !== null &&
          !(event.type === "daemon.outdated" && event.sandboxId !== before.context.sandboxId) &&
          (before.context.ending === null ||
            (isPersons(event) && isMoreUrgent(order, before.context.save ?? "try")));
        const { sandboxId } = before.context;
        const as = ["stop.requested", "user.deactivated"].includes(event.type) ? "stopped" : "archived";
        // A sandbox that comes up too late to hear of its session's end may not stay.
        const save = isStop && order === "require" ? "try" : order;
        const { ends: end } = snapshot.context;
        expect(commanded(commands, "tearDownSandbox")).toEqual(
          (isStop || isWish) && sandboxId !== null
            ? [{ type: "tearDownSandbox", sandboxId, as, save, end }]
            : [],
        );
        // Each order to end a running session has a number of its own.
        if (isWish) expect(end).toBe((before.context.ends ?? 0) + 1);
        if (isWish) expect(snapshot.context.save).toBe(order);
      }),
    "S9: a sandbox that stays takes the end back, and a waiting restart, unless another order came since":
      everyStep(({ before, event, snapshot, accepted }) => {
        const { ending, save, sandboxId, next } = before.context;
        if (event.type === "sandbox.kept") {
          expect(accepted).toBe(
            before.state === "running" &&
              ending !== null &&
              save === event.order &&
              event.sandboxId === sandboxId,
          );
          if (accepted) expect(snapshot.context).toMatchObject({ ending: null, save: null, next: null });
        }
        if (before.state === "running" && ending !== null && snapshot.context.ending === null)
          expect(["sandbox.kept", "sandbox.ended", "sandbox.lost"]).toContain(event.type);
        if (event.type === "sandbox.kept" && !accepted) expect(snapshot.context.next).toEqual(next);
      }),
    "S10: the saves of a deleted session go when it has no sandbox that saves": everyStep(
      ({ before, event, snapshot, commands }) => {
        const { sandboxId } = before.context;
        const isOver = "sandboxId" in event && event.sandboxId === sandboxId && isTerminal(snapshot);
        const { deleted } = before.context;
        const isDue =
          before.state === "running"
            ? deleted && isOver
            : event.type === "delete.requested" && !deleted && isTerminal(snapshot);
        expect(commanded(commands, "removeSaves")).toHaveLength(isDue ? 1 : 0);
      },
    ),
    "S4: a running session ends with its sandbox alone, and knows why until then": everyStep(
      ({ before, snapshot, event }) => {
        if (snapshot.context.ending !== null) expect(snapshot.state).toBe("running");
        if (before.state !== "running" || snapshot.state === "running") return;
        expect(["sandbox.ended", "sandbox.lost"]).toContain(event.type);
        expect(snapshot.state).toBe(event.type === "sandbox.ended" ? "stopped" : "failed");
      },
    ),
    "S7: a restart during a stop waits for it, and the first one counts": everyStep(
      ({ before, event, snapshot, commands, accepted }) => {
        const { next, ending, deleted } = before.context;
        if (snapshot.context.next !== null) expect(snapshot.context.deleted).toBe(false);
        if (["stop.requested", "delete.requested", "user.deactivated"].includes(event.type))
          expect(snapshot.context.next).toBe(null);
        if (before.state !== "running") return;
        if (event.type === "restart.requested") {
          const waits = ending !== null && ending !== "user_deactivated" && !deleted;
          const wish = { sandboxId: event.sandboxId, restoreSaved: false };
          const { save, sandboxId } = before.context;
          const isPut = waits && ending === "idle" && save === "pause";
          expect([accepted, snapshot.context.next, commands]).toEqual([
            waits,
            waits ? (next ?? wish) : next,
            isPut ? [{ type: "recallEnd", sandboxId }] : [],
          ]);
        }
        const isOver = snapshot.state === "stopped" || snapshot.state === "failed";
        expect(commanded(commands, "restartAfterStop")).toEqual(
          isOver && next !== null ? [{ type: "restartAfterStop", ...next }] : [],
        );
      },
    ),
    "S7: it takes place once, unless something took it back": everyStep(
      ({ before, event, snapshot, accepted }) => {
        if (event.type !== "restart.requested" || event.afterStop !== true || !isTerminal(before)) return;
        const isWished = before.context.next?.sandboxId === event.sandboxId;
        expect(accepted).toBe(isWished && !before.context.deleted);
        if (accepted) expect([snapshot.state, snapshot.context.next]).toEqual(["provisioning", null]);
      },
    ),
    "S8: a running session that no end was asked of stops if its sandbox is too old": everyStep(
      ({ before, event, snapshot, accepted }) => {
        const { ending, sandboxId } = before.context;
        if (event.type === "daemon.outdated")
          expect(accepted).toBe(
            before.state === "running" && ending === null && event.sandboxId === sandboxId,
          );
        if (ending === null && snapshot.context.ending === "outdated")
          expect(event.type).toBe("daemon.outdated");
      },
    ),
    "S5: a terminal session moves by a restart alone": everyStep(
      ({ before, event, snapshot, commands, accepted }) => {
        if (!isTerminal(before) || event.type === "restart.requested") return;
        const deleted = before.context.deleted || event.type === "delete.requested";
        const takesBack = ["stop.requested", "user.deactivated", "delete.requested"].includes(event.type);
        const next = takesBack ? null : before.context.next;
        expect(snapshot).toEqual({ ...before, context: { ...before.context, deleted, next } });
        const isNew = deleted && !before.context.deleted;
        expect(commands).toEqual(isNew ? [{ type: "removeSaves" }] : []);
        const isTaken = event.type === "slot.refused" && !before.context.deleted;
        const isTakenBack = takesBack && before.context.next !== null;
        expect(accepted).toBe(event.type === "delete.requested" || isTaken || isTakenBack);
      },
    ),
    "S6: a refused slot changes nothing, and only a session that may restart takes the event": everyStep(
      ({ before, event, snapshot, commands, accepted }) => {
        if (event.type !== "slot.refused") return;
        expect(snapshot).toEqual(before);
        expect(commands).toEqual([]);
        expect(accepted).toBe(isTerminal(before) && !before.context.deleted);
      },
    ),
    "S5: a session whose deletion was asked for is terminal, or about to be, and stays so": everyStep(
      ({ before, event, snapshot, accepted }) => {
        if (event.type === "delete.requested") expect(snapshot.context.deleted).toBe(true);
        if (!snapshot.context.deleted) return;
        expect(isTerminal(snapshot) || snapshot.context.ending !== null).toBe(true);
        if (before.context.deleted && isTerminal(before))
          expect(accepted).toBe(event.type === "delete.requested");
      },
    ),
    "one signal of a free slot for each end (I12)": everyStep(({ before, snapshot, commands }) => {
      const ended = !isTerminal(before) && isTerminal(snapshot);
      expect(commanded(commands, "signalFreeSlot")).toHaveLength(ended ? 1 : 0);
    }),
  },
);

test("a session's states are the enum's, and queued, branching and completed are not among them", () => {
  const states = Object.keys(sessionMachine.states);
  expect(SESSION_STATUSES.filter((status) => !states.includes(status))).toEqual([
    "queued",
    "branching",
    "completed",
  ]);
  expect(states.filter((state) => !(SESSION_STATUSES as readonly string[]).includes(state))).toEqual([]);
});

test("a restart that waited for a former stop does not take the place of the one that waits now (S7)", () => {
  const next = { sandboxId: "third", restoreSaved: true };
  const stopped: SessionSnapshot = {
    state: "stopped",
    context: { sandboxId: "second", branched: true, deleted: false, ending: null, next },
  };
  const late = { type: "restart.requested", sandboxId: "former", afterStop: true } as const;
  expect(session.step(stopped, late)).toMatchObject({ accepted: false, snapshot: stopped });
  expect(session.step(stopped, { ...late, sandboxId: "third" }).accepted).toBe(true);
});
