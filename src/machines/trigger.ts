/**
 * The timer of a cron trigger: spec.md 2.4, api.md 4 "Cron". Webhooks and manual fires pass by this machine: they are
 * admitted at once.
 *
 * It holds no due instant. Up to where the trigger is accounted for stands in the store's cursor, and each look starts
 * from there: it gives due instants their rows and says when the next one falls due.
 *
 *  T1 One look at a time: no other one begins, and no timer is armed, before its outcome is there.
 *  T2 A timer that elapses carries no instant. It asks for a look, so it cannot be stale, and may come any number of
 *     times.
 *  T3 A timer that elapses during a look is followed by another look: the first one may have read what was before.
 *  T4 A timer is armed for the instant that the last look found, and for no other.
 */
import { assign, setup } from "xstate";
import { pureMachine, type Snapshot } from "./step.ts";

/** The next due instant, in ms since the epoch, and the expression and zone that it comes from, in one text. */
export interface NextInstant {
  readonly due: number;
  readonly schedule: string;
}

export interface TriggerContext {
  /** A timer elapsed during this look: another one follows. */
  readonly again: boolean;
}
export type TriggerSnapshot = Snapshot<"waiting" | "armed" | "firing", TriggerContext>;

export type TriggerEvent =
  /** It is time to look. */
  | { readonly type: "timer.elapsed" }
  /** What was due has its rows; null: no instant lies ahead, or it is not known here yet. */
  | { readonly type: "due.accounted"; readonly next: NextInstant | null }
  /** The look was given up. Its timer is not armed anew, so the scheduler's poll asks for another one. */
  | { readonly type: "look.failed" };

export type TriggerCommand =
  | { readonly type: "accountForDue" }
  | { readonly type: "armTimer"; readonly due: number; readonly schedule: string };

const look = { target: "firing" as const, actions: ["begin" as const, "accountForDue" as const] };

export const triggerMachine = setup({
  types: { context: {} as TriggerContext, events: {} as TriggerEvent },
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
  context: { again: false },
  initial: "waiting",
  states: {
    waiting: { on: { "timer.elapsed": look } },
    armed: { on: { "timer.elapsed": look } },
    firing: {
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
