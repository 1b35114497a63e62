/**
 * What the machines' states, events and commands mean, in sentences for people. The machines carry them as `description`
 * and `meta`. The API, the dashboard and the command line show them. A test checks that no state, event, command or
 * possible step is without one.
 */
import type { AnyStateNode } from "xstate";
import { ACTOR_MACHINES, type MachineName } from "./definition.ts";
import type { Named } from "./step.ts";
import type { Words } from "./word-types.ts";

type AnyWords = Words<string, Named, Named>;

const wordsAt = (place: AnyStateNode | undefined): AnyWords => (place?.meta ?? {}) as AnyWords;

const stateAt = (machine: MachineName, state: string): AnyStateNode | undefined =>
  (ACTOR_MACHINES[machine].states as Readonly<Record<string, AnyStateNode>>)[state];

export const stateWords = (machine: MachineName, state: string): string | null =>
  stateAt(machine, state)?.description ?? null;

export const eventWords = (machine: MachineName, event: string): string | null =>
  wordsAt(ACTOR_MACHINES[machine].root).events?.[event] ?? null;

export const commandWords = (machine: MachineName, command: string): string | null =>
  wordsAt(ACTOR_MACHINES[machine].root).commands?.[command] ?? null;

export interface Possible {
  readonly from: string;
  readonly event: string;
  readonly to: string;
}

/** What would happen. Null if there is no sentence for this step. */
export const nextWords = (machine: MachineName, { from, event, to }: Possible): string | null => {
  const words = wordsAt(stateAt(machine, from)).next?.[event];
  return typeof words === "object" ? (words[to] ?? null) : (words ?? null);
};
