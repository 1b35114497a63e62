/**
 * A sandbox's life: spec.md 3.2 and api.md 3 "Sandbox transitions". Each boot has a record of its own, and an ended
 * record never comes back.
 *
 *  B1 The last three states are final: later events from a provider or an old owner change nothing.
 *  B2 Entering a final state destroys the sandbox at the provider, in the same step (I9).
 *  B3 The session hears once that the sandbox is live, and once that it ended: by an error, or as requested.
 *  B4 An active sandbox that is asked to end saves its work first (api.md 3 "Saving"), while its credentials are still
 *     valid. The first request decides how it ends.
 */
import { assign, setup } from "xstate";
import type { Failure } from "../domain/failure.ts";
import { notSaved, type Saved } from "../domain/saved.ts";
import type { SandboxStatus } from "../domain/session.ts";
import { pureMachine, type Snapshot } from "./step.ts";
import type { Words } from "./word-types.ts";

export interface SandboxContext {
  /** How the sandbox ends once its work is saved. Null while no end is requested. */
  readonly ending: "stopped" | "archived" | null;
}
export type SandboxSnapshot = Snapshot<SandboxStatus, SandboxContext>;

export type SandboxEvent =
  | { readonly type: "daemon.ready" }
  | { readonly type: "boot.failed"; readonly failure: Failure }
  | { readonly type: "sandbox.lost"; readonly failure: Failure }
  | { readonly type: "stop.requested" }
  | { readonly type: "archive.requested" }
  | { readonly type: "work.saved"; readonly saved: Saved };

export type SandboxCommand =
  /** Creates the sandbox at the provider, then waits for the daemon's health. Ends as daemon.ready or boot.failed. */
  | { readonly type: "bootSandbox" }
  /** Waits for the sandbox to end by itself. Ends as sandbox.lost. */
  | { readonly type: "watchSandbox" }
  /** Asks the daemon to save unpushed work. Ends as work.saved, even if the save fails. */
  | { readonly type: "saveWork" }
  | { readonly type: "destroySandbox" }
  | { readonly type: "reportLive" }
  | { readonly type: "reportFailed"; readonly failure: Failure }
  | { readonly type: "reportLost"; readonly failure: Failure }
  | { readonly type: "reportEnded"; readonly saved: Saved };

type FailureReport = "reportFailed" | "reportLost";

const report = (type: FailureReport) => ({
  type,
  params: ({ event }: { event: Extract<SandboxEvent, { failure: Failure }> }) => ({ failure: event.failure }),
});

const ended = (saved: Saved | null) => ({
  type: "reportEnded" as const,
  params: ({ event }: { event: SandboxEvent }) => ({
    saved: saved ?? (event.type === "work.saved" ? event.saved : LOST),
  }),
});
const LOST = notSaved("the sandbox was lost before its work was saved");

/** The end that was requested (B4). */
const asAsked = (told: ReturnType<typeof ended>) => [
  { guard: "isStopping" as const, target: "stopped" as const, actions: ["destroySandbox" as const, told] },
  {
    guard: "isArchiving" as const,
    target: "archived" as const,
    actions: ["destroySandbox" as const, told],
  },
];

export const sandboxMachine = setup({
  types: {
    context: {} as SandboxContext,
    events: {} as SandboxEvent,
    meta: {} as Words<SandboxSnapshot["state"], SandboxEvent, SandboxCommand>,
  },
  guards: {
    isWanted: ({ context }) => context.ending === null,
    isStopping: ({ context }) => context.ending === "stopped",
    isArchiving: ({ context }) => context.ending === "archived",
  },
  actions: {
    saveWork: () => undefined,
    reportEnded: (_, _params: { readonly saved: Saved }) => undefined,
    stopSoon: assign({ ending: "stopped" }),
    archiveSoon: assign({ ending: "archived" }),
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
      "work.saved": "The sandbox answered the request to save its work.",
    },
    commands: {
      bootSandbox: "boot the sandbox",
      watchSandbox: "watch whether the sandbox runs",
      saveWork: "save unpushed work",
      destroySandbox: "remove the sandbox",
      reportLive: "tell the session that the sandbox is ready",
      reportFailed: "tell the session that the boot failed",
      reportLost: "tell the session that the sandbox is lost",
      reportEnded: "tell the session that the sandbox has ended",
    },
  },
  context: { ending: null },
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
          "archive.requested": "If the session is idle or deleted, the sandbox saves its work first.",
          "work.saved": "When the save has ended, the sandbox is removed.",
        },
      },
      on: {
        "sandbox.lost": [
          ...asAsked(ended(LOST)),
          { target: "error", actions: ["destroySandbox", report("reportLost")] },
        ],
        "stop.requested": { guard: "isWanted", actions: ["stopSoon", "saveWork"] },
        "archive.requested": { guard: "isWanted", actions: ["archiveSoon", "saveWork"] },
        "work.saved": asAsked(ended(null)),
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
