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
import type { Words } from "./word-types.ts";

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
  types: {
    context: {} as AccountContext,
    events: {} as AccountEvent,
    meta: {} as Words<AccountSnapshot["state"], AccountEvent, AccountCommand>,
  },
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
  meta: {
    events: {
      created: "The account was loaded.",
      "slot.freed": "A session ended and freed its slot.",
      "fire.queued": "A fire went into the queue.",
      "cap.changed": "The number of slots may have changed.",
      "drain.finished": "The check of the queue ended.",
      "drain.failed": "The database could not be reached.",
      "pause.elapsed": "The pause after a failed check was over.",
    },
    commands: { drainQueue: "start waiting fires in free slots", pause: "wait before the next check" },
  },
  context: { again: false },
  initial: "idle",
  states: {
    idle: {
      description: "Nothing moves in the queue until a slot is freed or a fire arrives.",
      meta: {
        next: {
          "slot.freed": "When a session ends, the oldest waiting fire starts in its slot.",
          "fire.queued": "When a fire goes into the queue, free slots are looked for.",
          "cap.changed": "When the account gets more slots, waiting fires start.",
        },
      },
      on: { "slot.freed": drainNow, "fire.queued": drainNow, "cap.changed": drainNow },
    },
    draining: {
      description: "The queue is checked: waiting fires start in free slots.",
      meta: {
        next: {
          "slot.freed": "If a session ends during the check, another check follows.",
          "fire.queued": "If a fire goes into the queue during the check, another check follows.",
          "cap.changed": "If the number of slots changes during the check, another check follows.",
          "drain.finished": {
            idle: "When no waiting fire has a free slot, the check ends.",
            draining: "If more fires wait and slots are free, the check goes on.",
          },
          "drain.failed": "If the database cannot be reached, the check is repeated after a second.",
        },
      },
      on: {
        "slot.freed": remember,
        "fire.queued": remember,
        "cap.changed": remember,
        "drain.finished": [{ guard: "isWorkLeft", ...drainNow, reenter: true }, { target: "idle" }],
        "drain.failed": { target: "pausing", actions: "pause" },
      },
    },
    // Signals change nothing here: a drain follows the pause in any case.
    pausing: {
      description: "The last check of the queue failed. Another one follows in a second.",
      meta: { next: { "pause.elapsed": "After the pause, the queue is checked again." } },
      on: { "pause.elapsed": drainNow },
    },
  },
});

export const account = pureMachine<AccountSnapshot, AccountEvent, AccountCommand, Record<string, never>>(
  accountMachine,
);
