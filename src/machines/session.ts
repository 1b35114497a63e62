/**
 * A session's life: spec.md 3.1 and api.md 3 "Session transitions".
 *
 *  S1 States are the enum's written values. No transition enters queued, branching or completed.
 *  S2 `running` is entered only on the word of the session's current sandbox. A former sandbox changes nothing.
 *  S3 A sandbox is requested only after the session branch exists (threats.md I8).
 *  S4 Leaving provisioning for stopped tears the current sandbox down; a failed sandbox has torn itself down. A running
 *     session that is to end keeps running, with its slot and its credentials, until its sandbox has saved its work and
 *     ended.
 *  S5 Only a restart moves a terminal session, and nothing moves a deleted one. Deleting a terminal session does not
 *     change its state.
 *  S6 A restart needs a slot. If the account has none, the session stays as it is.
 *  S7 A restart that is asked for while a running session is about to stop waits. When the sandbox has ended, it takes
 *     place, once, as soon as there is a slot. A deletion, a deactivation or another stop takes the wish back.
 *  S8 A running session whose sandbox has a daemon of too early a version stops as an idle one does. It starts again with its
 *     next message.
 *  S9 A sandbox that must save everything, and cannot, stays: the session runs on, and its end and a waiting restart are
 *     taken back. A more urgent order replaces the one under way, a less urgent one changes nothing (domain/save/order.ts).
 *     A restart that is asked for while an idle session saves has its sandbox stay, too.
 *  S10 The saves of a deleted session are deleted once no sandbox of it saves any more.
 */
import { assign, setup } from "xstate";
import { isMoreUrgent, type SaveOrder } from "../domain/save/order.ts";
import type {
  NextSandbox,
  SessionCommand,
  SessionContext,
  SessionEvent,
  SessionSnapshot,
} from "./session-events.ts";
import { pureMachine } from "./step.ts";
import type { Words } from "./word-types.ts";

export type { SessionCommand, SessionContext, SessionEvent, SessionSnapshot } from "./session-events.ts";

type TearDown = Omit<Extract<SessionCommand, { type: "tearDownSandbox" }>, "type">;

/**
 * How the sandbox of a session that is to end saves its work.
 *
 * @param hasEnded whether the session has ended already, so that its sandbox may not stay
 */
const orderBy = (event: SessionEvent, hasEnded = false): SaveOrder => {
  if (event.type === "stop.requested")
    return hasEnded && event.save === "require" ? "try" : (event.save ?? "try");
  if (event.type === "user.deactivated") return "dismiss";
  if (event.type === "idle.elapsed" || event.type === "daemon.outdated")
    return event.isLast === true ? "last" : "pause";
  return "skip";
};

/** The number of the next order to end. */
const nextEnd = ({ context }: { context: SessionContext }): number => (context.ends ?? 0) + 1;

/**
 * Every transition that tears down is guarded by `hasSandbox` or leaves `running`, and S2 enters `running` with a
 * sandbox.
 */
function requireSandbox(context: SessionContext): string {
  if (context.sandboxId === null) throw new Error("the session has no sandbox to tear down");
  return context.sandboxId;
}

const tearDown = (as: TearDown["as"], hasEnded = false) => ({
  type: "tearDownSandbox" as const,
  params: ({ context, event }: { context: SessionContext; event: SessionEvent }): TearDown => ({
    sandboxId: requireSandbox(context),
    as,
    save: orderBy(event, hasEnded),
    ...(context.ends !== undefined && { end: context.ends }),
  }),
});
/** A stop of a boot. The sandbox may be up before it hears of it. */
const tearDownBoot = tearDown("stopped", true);

const recallEnd = {
  type: "recallEnd" as const,
  params: ({ context }: { context: SessionContext }) => ({ sandboxId: requireSandbox(context) }),
};

const provision = {
  type: "provisionSandbox" as const,
  params: ({ event }: { event: SessionEvent }) => ({
    sandboxId: "sandboxId" in event ? event.sandboxId : "",
  }),
};

/** S7: the wish takes place after the stop. */
const restartAfterStop = {
  type: "restartAfterStop" as const,
  params: ({ context }: { context: SessionContext }): NextSandbox => ({
    sandboxId: context.next?.sandboxId ?? "",
    restoreSaved: context.next?.restoreSaved === true,
  }),
};
const wishedEnd = <State extends "stopped" | "failed">(target: State) => ({
  guard: "isNextCurrent" as const,
  target,
  actions: ["settle" as const, restartAfterStop],
});
/** S7: after the stop, too. */
const takeBack = { guard: "isNext" as const, actions: "forgetNext" as const };

/** The events that may follow the end of a session. */
const ENDED = {
  next: {
    "restart.requested": "A restart boots a new sandbox on the same branch, if a slot is free.",
    "stop.requested": "Another stop takes back a restart that waited for the first one.",
    "user.deactivated": "If the person who started it is deactivated, a waiting restart is taken back.",
    "delete.requested": "A deletion removes the session from the list.",
  },
};

const restart = {
  "restart.requested": [
    {
      guard: "isRestartableBranched" as const,
      target: "provisioning" as const,
      actions: ["adoptSandbox" as const, provision],
    },
    { guard: "isRestartable" as const, target: "provisioning" as const, actions: "createBranch" as const },
  ],
};

/** A restart that waited for a stop counts only if nothing took it back. */
const isWished = ({ next }: SessionContext, event: SessionEvent): boolean =>
  !(event.type === "restart.requested" && event.afterStop === true) || next?.sandboxId === event.sandboxId;

export const sessionMachine = setup({
  types: {
    context: {} as SessionContext,
    events: {} as SessionEvent,
    meta: {} as Words<SessionSnapshot["state"], SessionEvent, SessionCommand>,
  },
  guards: {
    isBranchPending: ({ context }) => !context.branched,
    isRestartable: ({ context, event }) => !context.deleted && isWished(context, event),
    isRestartableBranched: ({ context, event }) =>
      !context.deleted && context.branched && isWished(context, event),
    hasSandbox: ({ context }) => context.sandboxId !== null,
    isWanted: ({ context }) => context.ending === null,
    isWantedCurrent: ({ context, event }) =>
      context.ending === null && "sandboxId" in event && event.sandboxId === context.sandboxId,
    isUrgent: ({ context, event }) => isMoreUrgent(orderBy(event), context.save ?? "try"),
    isKeptCurrent: ({ context, event }) =>
      event.type === "sandbox.kept" &&
      event.sandboxId === context.sandboxId &&
      context.ending !== null &&
      event.order === context.save,
    isDeleted: ({ context }) => context.deleted,
    isDeletedCurrent: ({ context, event }) =>
      context.deleted && "sandboxId" in event && event.sandboxId === context.sandboxId,
    isPausing: ({ context }) =>
      (context.ending === "idle" || context.ending === "made_room") && context.save === "pause",
    isStopping: ({ context }) =>
      context.ending !== null && context.ending !== "user_deactivated" && !context.deleted,
    isNext: ({ context }) => context.next != null,
    isNextCurrent: ({ context, event }) =>
      context.next != null && "sandboxId" in event && event.sandboxId === context.sandboxId,
    isCurrentSandbox: ({ context, event }) => "sandboxId" in event && event.sandboxId === context.sandboxId,
  },
  actions: {
    signalFreeSlot: () => undefined,
    recallEnd: (_, _params: { readonly sandboxId: string }) => undefined,
    removeSaves: () => undefined,
    restartAfterStop: (_, _params: NextSandbox) => undefined,
    createBranch: () => undefined,
    provisionSandbox: (_, _params: { readonly sandboxId: string }) => undefined,
    tearDownSandbox: (_, _params: TearDown) => undefined,
    adoptSandbox: assign({
      branched: true,
      sandboxId: ({ event, context }) => ("sandboxId" in event ? event.sandboxId : context.sandboxId),
      next: null,
      asked: null,
    }),
    wishNext: assign(({ context, event }) =>
      event.type === "restart.requested" && context.next == null
        ? { next: { sandboxId: event.sandboxId, restoreSaved: event.restoreSaved === true } }
        : {},
    ),
    forgetNext: assign(({ context }) => (context.next == null ? {} : { next: null })),
    markDeleted: assign({ deleted: true }),
    stopSoon: assign({ ending: "requested", save: ({ event }) => orderBy(event), ends: nextEnd }),
    deleteSoon: assign({ ending: "deleted", save: ({ event }) => orderBy(event), ends: nextEnd }),
    hibernateSoon: assign({
      ending: ({ event }) =>
        event.type === "idle.elapsed" && event.makesRoom === true ? "made_room" : "idle",
      save: ({ event }) => orderBy(event),
      asked: ({ event }) => (event.type === "idle.elapsed" && event.asked) || null,
      ends: nextEnd,
    }),
    replaceSoon: assign({ ending: "outdated", save: ({ event }) => orderBy(event), ends: nextEnd }),
    dismissSoon: assign({ ending: "user_deactivated", save: ({ event }) => orderBy(event), ends: nextEnd }),
    settle: assign({ ending: null, save: null }),
  },
}).createMachine({
  id: "session",
  meta: {
    events: {
      created: "The session was created.",
      "branch.created": "The session's branch was created.",
      "branch.failed": "The session's branch could not be created.",
      "sandbox.live": "The sandbox reported that it is ready.",
      "sandbox.failed": "The sandbox could not boot.",
      "sandbox.lost": "The sandbox ended by itself.",
      "sandbox.ended": "The sandbox ended as requested.",
      "sandbox.kept": "The sandbox stays, because its work is not saved, or something waits for its agent.",
      "daemon.outdated": "The sandbox's daemon is too old for this version of the service.",
      "stop.requested": "Somebody asked for a stop.",
      "delete.requested": "Somebody deleted the session.",
      "idle.elapsed": "The session was idle for too long, or made room for one that waited.",
      "user.deactivated": "The person who started the session was deactivated.",
      "restart.requested": "Somebody asked for a restart.",
      "slot.refused": "A restart found no free slot.",
    },
    commands: {
      createBranch: "create the session's branch",
      provisionSandbox: "order the sandbox",
      tearDownSandbox: "end the sandbox",
      recallEnd: "have the sandbox stay",
      removeSaves: "delete the session's saved work",
      signalFreeSlot: "tell the queue that a slot is free",
      restartAfterStop: "restart the session after its stop",
    },
  },
  context: {
    sandboxId: null,
    branched: false,
    deleted: false,
    ending: null,
    next: null,
    save: null,
    asked: null,
  },
  initial: "provisioning",
  // Creation starts with the branch. A restart of a session that has a branch enters by its own transition below.
  entry: "createBranch",
  states: {
    provisioning: {
      description: "The session starts: its branch is created, then its sandbox boots.",
      meta: {
        next: {
          "branch.created": "When the branch exists, the sandbox is ordered.",
          "branch.failed": "If the branch cannot be created, the session fails.",
          "sandbox.live": "When the sandbox answers, the session runs.",
          "sandbox.failed": "If the sandbox does not answer in time, or its boot fails, the session fails.",
          "sandbox.lost": "If the sandbox ends by itself, the session fails.",
          "stop.requested": "A stop ends the session at once.",
          "delete.requested": "A deletion ends the session at once and removes it from the list.",
          "user.deactivated": "If the person who started it is deactivated, the session ends at once.",
        },
      },
      on: {
        "branch.created": { guard: "isBranchPending", actions: ["adoptSandbox", provision] },
        "branch.failed": { guard: "isBranchPending", target: "failed" },
        "sandbox.live": { guard: "isCurrentSandbox", target: "running" },
        "sandbox.failed": { guard: "isCurrentSandbox", target: "failed" },
        "sandbox.lost": { guard: "isCurrentSandbox", target: "failed" },
        "stop.requested": [
          { guard: "hasSandbox", target: "stopped", actions: tearDownBoot },
          { target: "stopped" },
        ],
        "user.deactivated": [
          { guard: "hasSandbox", target: "stopped", actions: tearDownBoot },
          { target: "stopped" },
        ],
        "delete.requested": [
          {
            guard: "hasSandbox",
            target: "stopped",
            actions: ["markDeleted", tearDown("archived"), "removeSaves"],
          },
          { target: "stopped", actions: ["markDeleted", "removeSaves"] },
        ],
      },
    },
    running: {
      description: "The session runs in its sandbox.",
      meta: {
        next: {
          "sandbox.lost": "If the sandbox ends by itself, the session fails.",
          "sandbox.ended": "When the sandbox has saved its work and ended, the session is stopped.",
          "sandbox.kept": "If it must save everything and cannot, the session runs on.",
          "daemon.outdated":
            "If an upgraded service finds that the sandbox is too old for it, the sandbox saves its work and ends. The next message starts another one.",
          "restart.requested":
            "During a stop, a restart waits until the sandbox has ended. An idle session that saves its work runs on.",
          "stop.requested": "After a stop, the sandbox saves its work and ends. Then the session is stopped.",
          "delete.requested":
            "A deletion removes the session from the list. Its sandbox ends at once, and its saved work is deleted.",
          "idle.elapsed":
            "If the session is unused and its agent does no work until then, the sandbox saves its work and ends.",
          "user.deactivated":
            "If the person who started it is deactivated, all processes end at once. Then the work is saved and the sandbox ends.",
        },
      },
      on: {
        "sandbox.lost": [
          wishedEnd("failed"),
          { guard: "isDeletedCurrent", target: "failed", actions: ["settle", "removeSaves"] },
          { guard: "isCurrentSandbox", target: "failed", actions: "settle" },
        ],
        "sandbox.ended": [
          wishedEnd("stopped"),
          { guard: "isDeletedCurrent", target: "stopped", actions: ["settle", "removeSaves"] },
          { guard: "isCurrentSandbox", target: "stopped", actions: "settle" },
        ],
        "sandbox.kept": { guard: "isKeptCurrent", actions: ["settle", "forgetNext"] },
        "daemon.outdated": { guard: "isWantedCurrent", actions: ["replaceSoon", tearDown("archived")] },
        "restart.requested": [
          { guard: "isPausing", actions: ["wishNext", recallEnd] },
          { guard: "isStopping", actions: "wishNext" },
        ],
        "stop.requested": [
          { guard: "isWanted", actions: ["stopSoon", tearDown("stopped")] },
          { guard: "isUrgent", actions: ["forgetNext", "stopSoon", tearDown("stopped")] },
          takeBack,
        ],
        "delete.requested": [
          { guard: "isWanted", actions: ["markDeleted", "deleteSoon", tearDown("archived")] },
          { guard: "isUrgent", actions: ["markDeleted", "forgetNext", "deleteSoon", tearDown("archived")] },
          { actions: ["markDeleted", "forgetNext"] },
        ],
        "idle.elapsed": { guard: "isWanted", actions: ["hibernateSoon", tearDown("archived")] },
        "user.deactivated": [
          { guard: "isWanted", actions: ["dismissSoon", tearDown("stopped")] },
          { guard: "isUrgent", actions: ["forgetNext", "dismissSoon", tearDown("stopped")] },
          takeBack,
        ],
      },
    },
    stopped: {
      description: "The session is stopped. It uses no slot.",
      meta: ENDED,
      entry: "signalFreeSlot",
      on: {
        ...restart,
        "slot.refused": { guard: "isRestartable", target: "stopped" },
        "stop.requested": takeBack,
        "user.deactivated": takeBack,
        "delete.requested": [
          { guard: "isDeleted", target: "stopped" },
          { target: "stopped", actions: ["markDeleted", "forgetNext", "removeSaves"] },
        ],
      },
    },
    failed: {
      description: "The session has failed. It uses no slot.",
      meta: ENDED,
      entry: "signalFreeSlot",
      on: {
        ...restart,
        "slot.refused": { guard: "isRestartable", target: "failed" },
        "stop.requested": takeBack,
        "user.deactivated": takeBack,
        "delete.requested": [
          { guard: "isDeleted", target: "failed" },
          { target: "failed", actions: ["markDeleted", "forgetNext", "removeSaves"] },
        ],
      },
    },
  },
});

/** `start({})` is a new session's first snapshot. After that, only `step` changes the state. */
export const session = pureMachine<SessionSnapshot, SessionEvent, SessionCommand, Record<string, never>>(
  sessionMachine,
);
