/**
 * The host reports each actor's steps here, for people who inspect live actors (`npm run inspect`). The default is
 * silent: an unobserved service pays one call a step. The adapter is http/inspect/inspect.ts.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import type { Named, Snapshot } from "../machines/step.ts";

export interface InspectedStep {
  readonly machine: string;
  readonly actorId: string;
  /** Null for an actor that was just loaded. */
  readonly event: Named | null;
  readonly accepted: boolean;
  readonly snapshot: Snapshot<string, object>;
  readonly commands: readonly Named[];
  /** The actor left memory. This record is not a step. */
  readonly left: boolean;
}

export type Inspect = (step: InspectedStep) => Effect.Effect<void>;

export const Inspector = Context.Reference<Inspect>("platform/actors/Inspector", {
  defaultValue: () => () => Effect.void,
});
