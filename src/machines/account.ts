/**
 * An account's queue at work: which fire starts next when a slot is free (api.md 4 "Queue").
 *
 * Only the database's admission statement decides whether a slot is free (threats.md fact 2). This machine ensures that
 * the queue is checked often enough and by one drain at a time.
 *
 *  A1 One drain at a time. A signal that arrives during a drain leads to another drain after it: no signal is lost.
 *  A2 A failed drain is retried after a pause, as long as it takes: a database outage is waited out.
 */
import { assign, setup } from "xstate";
import { pureMachine, type Snapshot } from "./step.ts";

export interface AccountContext {
  /** A signal came during the drain: drain again. */
  readonly again: boolean;
}
export type AccountSnapshot = Snapshot<"idle" | "draining" | "pausing", AccountContext>;

export type AccountEvent =
  /** A session of the account left provisioning or running. */
  | { readonly type: "slot.freed" }
  /** A fire went into the queue. */
  | { readonly type: "fire.queued" }
  /** The tier or its cap changed, or the account was loaded: a slot may be free. */
  | { readonly type: "cap.changed" }
  /** `more`: fires were admitted and others still wait. */
  | { readonly type: "drain.finished"; readonly more: boolean }
  | { readonly type: "drain.failed" }
  | { readonly type: "pause.elapsed" };

export type AccountCommand = { readonly type: "drainQueue" } | { readonly type: "pause" };

const drainNow = { target: "draining" as const, actions: ["forgetSignal" as const, "drainQueue" as const] };
const remember = { actions: "rememberSignal" as const };

export const accountMachine = setup({
  types: { context: {} as AccountContext, events: {} as AccountEvent },
  guards: {
    isWorkLeft: ({ context, event }) => context.again || (event.type === "drain.finished" && event.more),
  },
  actions: {
    drainQueue: () => undefined,
    pause: () => undefined,
    rememberSignal: assign({ again: true }),
    forgetSignal: assign({ again: false }),
  },
}).createMachine({
  id: "account",
  context: { again: false },
  initial: "idle",
  states: {
    idle: { on: { "slot.freed": drainNow, "fire.queued": drainNow, "cap.changed": drainNow } },
    draining: {
      on: {
        "slot.freed": remember,
        "fire.queued": remember,
        "cap.changed": remember,
        "drain.finished": [{ guard: "isWorkLeft", ...drainNow, reenter: true }, { target: "idle" }],
        "drain.failed": { target: "pausing", actions: "pause" },
      },
    },
    // Signals change nothing here: a drain follows the pause in any case.
    pausing: { on: { "pause.elapsed": drainNow } },
  },
});

export const account = pureMachine<AccountSnapshot, AccountEvent, AccountCommand, Record<string, never>>(
  accountMachine,
);
