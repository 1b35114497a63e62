/**
 * A sandbox's life: spec.md 3.2 and api.md 3 "Sandbox transitions". One record a boot; it never comes back.
 *
 *  B1 The last three states are final: whatever a provider or an old owner says later moves nothing.
 *  B2 Entering a final state destroys the sandbox at the provider, exactly where it is decided (I9).
 *  B3 The session hears once of `active`, and once of an error it did not ask for.
 */
import { setup } from "xstate";
import type { Failure } from "../domain/failure.ts";
import type { SandboxStatus } from "../domain/session.ts";
import { pureMachine, type Snapshot } from "./step.ts";

export type SandboxSnapshot = Snapshot<SandboxStatus, Record<string, never>>;

export type SandboxEvent =
  | { readonly type: "daemon.ready" }
  | { readonly type: "boot.failed"; readonly failure: Failure }
  | { readonly type: "sandbox.lost"; readonly failure: Failure }
  | { readonly type: "stop.requested" }
  | { readonly type: "archive.requested" };

export type SandboxCommand =
  /** Create at the provider, then wait for the daemon's health; ends as daemon.ready or boot.failed. */
  | { readonly type: "bootSandbox" }
  /** Wait for the sandbox to end by itself; ends as sandbox.lost. */
  | { readonly type: "watchSandbox" }
  | { readonly type: "destroySandbox" }
  | { readonly type: "reportLive" }
  | { readonly type: "reportFailed"; readonly failure: Failure }
  | { readonly type: "reportLost"; readonly failure: Failure };

type FailureReport = "reportFailed" | "reportLost";

const report = (type: FailureReport) => ({
  type,
  params: ({ event }: { event: Extract<SandboxEvent, { failure: Failure }> }) => ({ failure: event.failure }),
});

const takeDown = {
  "stop.requested": { target: "stopped" as const, actions: "destroySandbox" as const },
  "archive.requested": { target: "archived" as const, actions: "destroySandbox" as const },
};

export const sandboxMachine = setup({
  types: { context: {} as Record<string, never>, events: {} as SandboxEvent },
  actions: {
    bootSandbox: () => undefined,
    watchSandbox: () => undefined,
    destroySandbox: () => undefined,
    reportLive: () => undefined,
    reportFailed: (_, _params: { readonly failure: Failure }) => undefined,
    reportLost: (_, _params: { readonly failure: Failure }) => undefined,
  },
}).createMachine({
  id: "sandbox",
  context: {},
  initial: "provisioning",
  entry: "bootSandbox",
  states: {
    provisioning: {
      on: {
        "daemon.ready": { target: "active", actions: ["reportLive", "watchSandbox"] },
        "boot.failed": { target: "error", actions: ["destroySandbox", report("reportFailed")] },
        ...takeDown,
      },
    },
    active: {
      on: {
        "sandbox.lost": { target: "error", actions: ["destroySandbox", report("reportLost")] },
        ...takeDown,
      },
    },
    stopped: { type: "final" },
    error: { type: "final" },
    archived: { type: "final" },
  },
});

/** `start({})` is a new sandbox record's first snapshot; `step` is its only way on. */
export const sandbox = pureMachine<SandboxSnapshot, SandboxEvent, SandboxCommand, Record<string, never>>(
  sandboxMachine,
);
