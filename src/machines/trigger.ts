/**
 * A trigger's life between two readings of the manifest: spec.md 2.4 (`enabled`, `type`), api.md 4 "Cron".
 *
 * Webhooks and manual fires pass by this machine: they are admitted at once. It owns the timer of a cron trigger.
 *
 *  T1 A due instant is fired once: while one is being admitted no other timer is armed.
 *  T2 A timer that was armed for another instant, or for an earlier definition, changes nothing.
 *  T3 An instant that was admitted, queued or skipped is accounted for before the next one is armed.
 */
import { assign, setup } from "xstate";
import { pureMachine, type Snapshot } from "./step.ts";

export interface TriggerContext {
  /** The due instant that is armed or being fired, in ms since the epoch; null when there is none. */
  readonly due: number | null;
}
export type TriggerSnapshot = Snapshot<"disabled" | "listening" | "armed" | "firing", TriggerContext>;

export type TriggerEvent =
  /** The manifest was read. `next` is the first due instant of an enabled cron trigger, null for a webhook. */
  | { readonly type: "definition.changed"; readonly enabled: boolean; readonly next: number | null }
  | { readonly type: "timer.elapsed"; readonly due: number }
  /** The instant has its ledger row; `next` is the one after it, null when the expression has no more. */
  | { readonly type: "instant.accounted"; readonly due: number; readonly next: number | null };

export type TriggerCommand =
  | { readonly type: "armTimer"; readonly due: number }
  | { readonly type: "disarmTimer" }
  | { readonly type: "fireInstant"; readonly due: number };

type NextEvent = Extract<TriggerEvent, { next: number | null }>;

const takeNext = assign<TriggerContext, NextEvent, undefined, TriggerEvent, never>({
  due: ({ event }) => event.next,
});
const arm = {
  type: "armTimer" as const,
  params: ({ event }: { event: NextEvent }) => ({ due: event.next ?? 0 }),
};

const redefined = [
  {
    guard: "isDisabled" as const,
    target: "disabled" as const,
    actions: ["forgetDue" as const, "disarmTimer" as const],
  },
  { guard: "hasNext" as const, target: "armed" as const, actions: [takeNext, arm] },
  { target: "listening" as const, actions: ["forgetDue" as const, "disarmTimer" as const] },
];

export const triggerMachine = setup({
  types: { context: {} as TriggerContext, events: {} as TriggerEvent },
  guards: {
    isDisabled: ({ event }) => event.type === "definition.changed" && !event.enabled,
    hasNext: ({ event }) => "next" in event && event.next !== null,
    isDue: ({ context, event }) => "due" in event && event.due === context.due,
  },
  actions: {
    armTimer: (_, _params: { readonly due: number }) => undefined,
    disarmTimer: () => undefined,
    fireInstant: (_, _params: { readonly due: number }) => undefined,
    forgetDue: assign({ due: null }),
  },
}).createMachine({
  id: "trigger",
  context: { due: null },
  initial: "disabled",
  states: {
    disabled: { on: { "definition.changed": redefined } },
    listening: { on: { "definition.changed": redefined } },
    armed: {
      on: {
        "definition.changed": redefined,
        "timer.elapsed": {
          guard: "isDue",
          target: "firing",
          actions: { type: "fireInstant", params: ({ event }) => ({ due: event.due }) },
        },
      },
    },
    // A changed definition takes effect at once; the instant under way is settled by its ledger row alone (C17, C18).
    firing: {
      on: {
        "definition.changed": redefined,
        "instant.accounted": [
          {
            guard: ({ context, event }) => event.due === context.due && event.next !== null,
            target: "armed",
            actions: [takeNext, arm],
          },
          { guard: "isDue", target: "listening", actions: "forgetDue" },
        ],
      },
    },
  },
});

export const trigger = pureMachine<TriggerSnapshot, TriggerEvent, TriggerCommand, Record<string, never>>(
  triggerMachine,
);
