/**
 * The timer of a cron trigger: spec.md 2.4, api.md 4 "Cron". Webhooks and manual fires do not use this machine: they
 * are admitted at once.
 *
 * The machine holds no due instant. The store's cursor says up to which instant the trigger is accounted for, and each
 * look starts there: it writes rows for the due instants and returns the next one.
 *
 *  T1 One look at a time: before its outcome arrives, no other look begins and no timer is armed.
 *  T2 `timer.elapsed` carries no instant. It asks for a look, so it cannot be stale, and may come any number of times.
 *  T3 A timer that elapses during a look leads to another look, since the first may have read older state.
 *  T4 A timer is armed only for the instant that the last look found.
 */
import { assign, setup } from "xstate";
import { pureMachine, type Snapshot } from "./step.ts";
import type { Words } from "./word-types.ts";

/** The next due instant, in ms since the epoch, with its expression and zone in one text. */
export interface NextInstant {
  readonly due: number;
  readonly schedule: string;
}

export interface TriggerContext {
  /** A timer elapsed during this look: another look follows. */
  readonly again: boolean;
}
export type TriggerSnapshot = Snapshot<"waiting" | "armed" | "firing", TriggerContext>;

export type TriggerEvent =
  /** It is time to look. */
  | { readonly type: "timer.elapsed" }
  /** The due instants have their rows. Null if no instant lies ahead, or this node does not know the trigger yet. */
  | { readonly type: "due.accounted"; readonly next: NextInstant | null }
  /** The look was given up. Its timer is not armed again, so the scheduler's poll asks for another look. */
  | { readonly type: "look.failed" };

export type TriggerCommand =
  | { readonly type: "accountForDue" }
  | { readonly type: "armTimer"; readonly due: number; readonly schedule: string };

const look = { target: "firing" as const, actions: ["begin" as const, "accountForDue" as const] };

export const triggerMachine = setup({
  types: {
    context: {} as TriggerContext,
    events: {} as TriggerEvent,
    meta: {} as Words<TriggerSnapshot["state"], TriggerEvent, TriggerCommand>,
  },
  guards: {
    isAgain: ({ context }) => context.again,
    hasNext: ({ event }) => event.type === "due.accounted" && event.next !== null,
  },
  actions: {
    begin: assign({ again: false }),
    remember: assign({ again: true }),
    accountForDue: () => undefined,
    armTimer: (_, _params: NextInstant) => undefined,
  },
}).createMachine({
  id: "trigger",
  meta: {
    events: {
      created: "The trigger was loaded.",
      "timer.elapsed": "It was time to look.",
      "due.accounted": "Every due instant got its row in the ledger.",
      "look.failed": "The look failed too often and was given up.",
    },
    commands: {
      accountForDue: "fire or skip the instants that are due",
      armTimer: "set the timer",
    },
  },
  context: { again: false },
  initial: "waiting",
  states: {
    waiting: {
      description: "The trigger has no timer.",
      meta: { next: { "timer.elapsed": "The scheduler asks for a look." } },
      on: { "timer.elapsed": look },
    },
    armed: {
      description: "The trigger waits for its next instant.",
      meta: { next: { "timer.elapsed": "At its next instant, the trigger fires." } },
      on: { "timer.elapsed": look },
    },
    firing: {
      description: "The trigger looks which instants are due, and fires.",
      meta: {
        next: {
          "timer.elapsed": "If another instant comes, a second look follows this one.",
          "due.accounted": {
            armed: "When every due instant has its row, the timer is set for the next one.",
            waiting: "If no instant lies ahead, the trigger waits without a timer.",
            firing: "If another instant came meanwhile, a second look follows.",
          },
          "look.failed": "If the look fails too often, the scheduler asks for another one.",
        },
      },
      on: {
        "timer.elapsed": { actions: "remember" },
        "due.accounted": [
          { guard: "isAgain", ...look },
          {
            guard: "hasNext",
            target: "armed",
            actions: {
              type: "armTimer",
              params: ({ event }) => event.next ?? { due: 0, schedule: "" },
            },
          },
          { target: "waiting" },
        ],
        "look.failed": { target: "waiting", actions: "begin" },
      },
    },
  },
});

export const trigger = pureMachine<TriggerSnapshot, TriggerEvent, TriggerCommand, Record<string, never>>(
  triggerMachine,
);
