/**
 * A trigger's life between two readings of the manifest: spec.md 2.4 (`enabled`, `type`), api.md 4 "Cron".
 *
 * Webhooks and manual fires pass by this machine: they are admitted at once. It owns the timer of a cron trigger.
 *
 *  T1 A due instant of one definition is fired once: while it is being admitted no other of its timers is armed. (An
 *     instant that two definitions share has one ledger row: I2.)
 *  T2 A timer that was armed for another instant, or for an earlier definition, changes nothing.
 *  T3 An instant that was admitted, queued or skipped is accounted for before the next one is armed.
 *  T4 Hearing of the same instant of the same schedule again changes nothing, and while one is being fired of no other of
 *     its schedule: a due instant whose timer is on its way is not passed over.
 */
import { assign, setup } from "xstate";
import { pureMachine, type Snapshot } from "./step.ts";

export interface TriggerContext {
  /** The due instant that is armed or being fired, in ms since the epoch; null when there is none. */
  readonly due: number | null;
  /** What `due` was computed from: expression and zone in one text; null when nothing is scheduled. */
  readonly schedule: string | null;
}
export type TriggerSnapshot = Snapshot<"disabled" | "listening" | "armed" | "firing", TriggerContext>;

export type TriggerEvent =
  /** What it is now, and the instant that falls due next, while it does so soon; both null where nothing is due. */
  | {
      readonly type: "definition.changed";
      readonly enabled: boolean;
      readonly schedule: string | null;
      readonly next: number | null;
    }
  | { readonly type: "timer.elapsed"; readonly due: number }
  /** The instant has its ledger row; `next` is the one after it, null when the expression has no more. */
  | { readonly type: "instant.accounted"; readonly due: number; readonly next: number | null };

export type TriggerCommand =
  /** `schedule` goes with the timer, so that an actor that left memory is found again as it was armed. */
  | { readonly type: "armTimer"; readonly due: number; readonly schedule: string }
  | { readonly type: "disarmTimer" }
  | { readonly type: "fireInstant"; readonly due: number };

type NextEvent = Extract<TriggerEvent, { next: number | null }>;

/** Taken with a definition: what the due instants come from. */
const takeSchedule = assign<TriggerContext, TriggerEvent, undefined, TriggerEvent, never>({
  schedule: ({ event, context }) => ("schedule" in event ? event.schedule : context.schedule),
});
const takeNext = assign<TriggerContext, NextEvent, undefined, TriggerEvent, never>({
  due: ({ event }) => event.next,
});
const arm = {
  type: "armTimer" as const,
  // Behind takeSchedule and takeNext: both are known by now.
  params: ({ context }: { context: TriggerContext }) => ({
    due: context.due ?? 0,
    schedule: context.schedule ?? "",
  }),
};

const redefined = [
  {
    guard: "isDisabled" as const,
    target: "disabled" as const,
    actions: ["forgetDue" as const, "disarmTimer" as const],
  },
  { guard: "hasNext" as const, target: "armed" as const, actions: [takeSchedule, takeNext, arm] },
  { target: "listening" as const, actions: ["forgetDue" as const, "disarmTimer" as const] },
];
/** T4: selected, they do nothing. */
const sameInstant = { guard: "isSameInstant" as const };
const sameSchedule = { guard: "isSameSchedule" as const };

export const triggerMachine = setup({
  types: { context: {} as TriggerContext, events: {} as TriggerEvent },
  guards: {
    isDisabled: ({ event }) => event.type === "definition.changed" && !event.enabled,
    isSameSchedule: ({ context, event }) =>
      event.type === "definition.changed" && event.enabled && event.schedule === context.schedule,
    isSameInstant: ({ context, event }) =>
      event.type === "definition.changed" &&
      event.enabled &&
      event.schedule === context.schedule &&
      event.next === context.due,
    hasNext: ({ event }) => "next" in event && event.next !== null,
    isDue: ({ context, event }) => "due" in event && event.due === context.due,
    isDueWithNext: ({ context, event }) =>
      event.type === "instant.accounted" && event.due === context.due && event.next !== null,
  },
  actions: {
    armTimer: (_, _params: { readonly due: number; readonly schedule: string }) => undefined,
    disarmTimer: () => undefined,
    fireInstant: (_, _params: { readonly due: number }) => undefined,
    forgetDue: assign({ due: null, schedule: null }),
  },
}).createMachine({
  id: "trigger",
  context: { due: null, schedule: null },
  initial: "disabled",
  states: {
    disabled: { on: { "definition.changed": redefined } },
    listening: { on: { "definition.changed": redefined } },
    armed: {
      on: {
        "definition.changed": [sameInstant, ...redefined],
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
        "definition.changed": [sameSchedule, ...redefined],
        "instant.accounted": [
          {
            guard: "isDueWithNext",
            target: "armed",
            actions: [takeNext, arm],
          },
          { guard: "isDue", target: "listening", actions: ["forgetDue", "disarmTimer"] },
        ],
      },
    },
  },
});

export const trigger = pureMachine<TriggerSnapshot, TriggerEvent, TriggerCommand, Record<string, never>>(
  triggerMachine,
);
