/**
 * A sandbox's life: spec.md 3.2 and api.md 3 "Sandbox transitions". Each boot has a record of its own, and an ended
 * record never comes back.
 *
 *  B1 The last three states are final: later events from a provider or an old owner change nothing.
 *  B2 Entering a final state destroys the sandbox at the provider, in the same step (I9).
 *  B3 The session hears once that the sandbox is live, and once that it ended: by an error, or as requested.
 *  B4 An active sandbox that is asked to end saves its work first (api.md 3 "Saving"), while its credentials are still
 *     valid. The first request decides how it ends; a more urgent one decides anew how it saves. One that skips the save
 *     ends it at once.
 *  B5 A sandbox that must save everything stays if it cannot, and tells the session. If it ends by itself meanwhile, it
 *     is lost.
 *  B6 An order to end that was taken back changes nothing any more, however late a former owner repeats it: orders have numbers.
 */
import { assign, setup } from "xstate";
import type { Failure } from "../domain/session/failure.ts";
import { isMoreUrgent, isRequired, type SaveOrder } from "../domain/save/order.ts";
import { isSafe, type Saved } from "../domain/save/saved.ts";
import { SKIPPED } from "../domain/save/shown.ts";
import type { SandboxStatus } from "../domain/session/session.ts";
import { pureMachine, type Snapshot } from "./step.ts";
import type { Words } from "./word-types.ts";

export interface SandboxContext {
  /** How the sandbox ends once its work is saved. Null while no end is requested. */
  readonly ending: "stopped" | "archived" | null;
  /** How it saves before that. Absent: `try`, or no end is requested. */
  readonly save?: SaveOrder | null;
  /** The number of the last order to end (B6). Absent: none had one. */
  readonly end?: number;
  /** Orders up to this number were taken back. Absent: none was. */
  readonly takenBack?: number;
}
export type SandboxSnapshot = Snapshot<SandboxStatus, SandboxContext>;

export type SandboxEvent =
  | { readonly type: "daemon.ready" }
  | { readonly type: "boot.failed"; readonly failure: Failure }
  | { readonly type: "sandbox.lost"; readonly failure: Failure }
  /** `save` absent: `try`. `end`: the order's number (B6). Absent: an earlier version gave it. */
  | { readonly type: "stop.requested"; readonly save?: SaveOrder; readonly end?: number }
  | { readonly type: "archive.requested"; readonly save?: SaveOrder; readonly end?: number }
  /** Something waits for the agent of a session that was idle. */
  | { readonly type: "end.recalled" }
  | { readonly type: "work.saved"; readonly saved: Saved };

export type SandboxCommand =
  /** Creates the sandbox at the provider, then waits for the daemon's health. Ends as daemon.ready or boot.failed. */
  | { readonly type: "bootSandbox" }
  /** Waits for the sandbox to end by itself. Ends as sandbox.lost. */
  | { readonly type: "watchSandbox" }
  /** Saves unpushed work. Ends as work.saved, even if the save fails. `order` absent: `try`. */
  | { readonly type: "saveWork"; readonly order?: SaveOrder }
  /** Gives the save up that is under way. Its parts stay. */
  | { readonly type: "putOffSave" }
  | { readonly type: "destroySandbox" }
  | { readonly type: "reportLive" }
  | { readonly type: "reportFailed"; readonly failure: Failure }
  | { readonly type: "reportLost"; readonly failure: Failure }
  /** `saved` null: no save has ended. `error`: why not; null or absent if none was wanted. */
  | { readonly type: "reportEnded"; readonly saved: Saved | null; readonly error?: string | null }
  /** The sandbox stays. `order`: how it was to save. */
  | { readonly type: "reportKept"; readonly saved: Saved | null; readonly order: SaveOrder };

type FailureReport = "reportFailed" | "reportLost";

const report = (type: FailureReport) => ({
  type,
  params: ({ event }: { event: Extract<SandboxEvent, { failure: Failure }> }) => ({ failure: event.failure }),
});

const reportEnd = (error: string | null) => ({
  type: "reportEnded" as const,
  params: ({ event }: { event: SandboxEvent }) => ({
    saved: event.type === "work.saved" ? event.saved : null,
    error,
  }),
});
const LOST = "the sandbox was lost before its work was saved";

const saveOrder = (event: SandboxEvent): SaveOrder =>
  event.type === "stop.requested" || event.type === "archive.requested" ? (event.save ?? "try") : "try";

/** B6. */
const endNumber = (event: SandboxEvent): number | undefined => ("end" in event ? event.end : undefined);
const isTakenBack = ({ takenBack }: SandboxContext, event: SandboxEvent): boolean => {
  const end = endNumber(event);
  return takenBack !== undefined && end !== undefined && end <= takenBack;
};
const noteEnd = (event: SandboxEvent): Pick<SandboxContext, "end"> => {
  const end = endNumber(event);
  return end === undefined ? {} : { end };
};

/** A request to end. */
const endBranches = (as: "stopped" | "archived") => [
  {
    guard: "isSkip" as const,
    target: as,
    actions: [
      as === "stopped" ? ("stopSoon" as const) : ("archiveSoon" as const),
      "destroySandbox" as const,
      reportEnd(SKIPPED),
    ],
  },
  {
    guard: "isUrgent" as const,
    actions: [
      as === "stopped" ? ("stopSoon" as const) : ("archiveSoon" as const),
      {
        type: "saveWork" as const,
        params: ({ event }: { event: SandboxEvent }) => ({ order: saveOrder(event) }),
      },
    ],
  },
];

const reportKept = {
  type: "reportKept" as const,
  params: ({ context, event }: { context: SandboxContext; event: SandboxEvent }) => ({
    saved: event.type === "work.saved" ? event.saved : null,
    order: context.save ?? "try",
  }),
};

/** The end that was requested (B4). */
const asAsked = (action: ReturnType<typeof reportEnd>) => [
  { guard: "isStopping" as const, target: "stopped" as const, actions: ["destroySandbox" as const, action] },
  {
    guard: "isArchiving" as const,
    target: "archived" as const,
    actions: ["destroySandbox" as const, action],
  },
];

export const sandboxMachine = setup({
  types: {
    context: {} as SandboxContext,
    events: {} as SandboxEvent,
    meta: {} as Words<SandboxSnapshot["state"], SandboxEvent, SandboxCommand>,
  },
  guards: {
    isSkip: ({ context, event }) => saveOrder(event) === "skip" && !isTakenBack(context, event),
    isUrgent: ({ context, event }) =>
      !isTakenBack(context, event) &&
      (context.ending === null || isMoreUrgent(saveOrder(event), context.save ?? "try")),
    isPausing: ({ context }) => context.ending !== null && context.save === "pause",
    isDemanded: ({ context }) => context.ending !== null && isRequired(context.save ?? "try"),
    isKept: ({ context, event }) =>
      context.ending !== null &&
      isRequired(context.save ?? "try") &&
      event.type === "work.saved" &&
      !isSafe(event.saved),
    isStopping: ({ context }) => context.ending === "stopped",
    isArchiving: ({ context }) => context.ending === "archived",
  },
  actions: {
    saveWork: (_, _params: { readonly order: SaveOrder }) => undefined,
    putOffSave: () => undefined,
    reportEnded: (_, _params: { readonly saved: Saved | null; readonly error: string | null }) => undefined,
    reportKept: (_, _params: { readonly saved: Saved | null; readonly order: SaveOrder }) => undefined,
    stopSoon: assign(({ context, event }) => ({
      ending: context.ending ?? "stopped",
      save: saveOrder(event),
      ...noteEnd(event),
    })),
    archiveSoon: assign(({ context, event }) => ({
      ending: context.ending ?? "archived",
      save: saveOrder(event),
      ...noteEnd(event),
    })),
    stay: assign(({ context: { end } }) => ({
      ending: null,
      save: null,
      ...(end !== undefined && { takenBack: end }),
    })),
    bootSandbox: () => undefined,
    watchSandbox: () => undefined,
    destroySandbox: () => undefined,
    reportLive: () => undefined,
    reportFailed: (_, _params: { readonly failure: Failure }) => undefined,
    reportLost: (_, _params: { readonly failure: Failure }) => undefined,
  },
}).createMachine({
  id: "sandbox",
  meta: {
    events: {
      created: "The sandbox was ordered.",
      "daemon.ready": "The sandbox's daemon answered.",
      "boot.failed": "The boot failed.",
      "sandbox.lost": "The sandbox ended by itself.",
      "stop.requested": "The session asked the sandbox to stop.",
      "archive.requested": "The session asked the sandbox to hibernate.",
      "end.recalled": "Something waits for the agent of the idle session.",
      "work.saved": "The save of its work has ended.",
    },
    commands: {
      bootSandbox: "boot the sandbox",
      watchSandbox: "watch whether the sandbox runs",
      saveWork: "save unpushed work",
      putOffSave: "put the save off",
      destroySandbox: "remove the sandbox",
      reportLive: "tell the session that the sandbox is ready",
      reportFailed: "tell the session that the boot failed",
      reportLost: "tell the session that the sandbox is lost",
      reportEnded: "tell the session that the sandbox has ended",
      reportKept: "tell the session that the sandbox stays",
    },
  },
  context: { ending: null, save: null },
  initial: "provisioning",
  entry: "bootSandbox",
  states: {
    provisioning: {
      description: "The sandbox boots, or waits for the build of its environment or for a place to boot.",
      meta: {
        next: {
          "daemon.ready": "When its daemon answers, the sandbox is active and the session runs.",
          "boot.failed": "If the boot fails or takes too long, the sandbox is removed and the session fails.",
          "stop.requested":
            "If the session stops, the sandbox is removed at once. It has no work to save yet.",
          "archive.requested": "If the session is deleted, the sandbox is removed at once.",
        },
      },
      on: {
        "daemon.ready": { target: "active", actions: ["reportLive", "watchSandbox"] },
        "boot.failed": { target: "error", actions: ["destroySandbox", report("reportFailed")] },
        // The agent has done nothing yet, so there is no work to save.
        "stop.requested": { target: "stopped", actions: "destroySandbox" },
        "archive.requested": { target: "archived", actions: "destroySandbox" },
      },
    },
    active: {
      description: "The sandbox runs.",
      meta: {
        next: {
          "sandbox.lost": {
            error: "If its processes end, the sandbox is removed and the session fails.",
            stopped: "If its processes end before the work is saved, the sandbox is removed without it.",
            archived: "If its processes end before the work is saved, the sandbox is removed without it.",
          },
          "stop.requested": "If the session stops, the sandbox saves its work first.",
          "archive.requested":
            "If the session is idle, the sandbox saves its work first. If it is deleted, the sandbox is removed at once.",
          "end.recalled": "If something waits for the agent of an idle session, the sandbox stays.",
          "work.saved": {
            active: "If everything must be saved and is not, the sandbox stays.",
            stopped: "When the save has ended, the sandbox is removed.",
            archived: "When the save has ended, the sandbox is removed.",
          },
        },
      },
      on: {
        "sandbox.lost": [
          { guard: "isDemanded", target: "error", actions: ["destroySandbox", report("reportLost")] },
          ...asAsked(reportEnd(LOST)),
          { target: "error", actions: ["destroySandbox", report("reportLost")] },
        ],
        "stop.requested": endBranches("stopped"),
        "archive.requested": endBranches("archived"),
        "end.recalled": { guard: "isPausing", actions: [reportKept, "stay", "putOffSave"] },
        "work.saved": [{ guard: "isKept", actions: [reportKept, "stay"] }, ...asAsked(reportEnd(null))],
      },
    },
    stopped: { description: "The sandbox was stopped and removed.", type: "final" },
    error: { description: "The sandbox failed and was removed.", type: "final" },
    archived: { description: "The sandbox was hibernated and removed. Its work is saved.", type: "final" },
  },
});

/** `start({})` is a new sandbox record's first snapshot. After that, only `step` changes the state. */
export const sandbox = pureMachine<SandboxSnapshot, SandboxEvent, SandboxCommand, Record<string, never>>(
  sandboxMachine,
);
