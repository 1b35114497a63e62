/** Where this node's disk has something of a project. When the project is gone, the duty `deletions` empties each place. */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";

export interface ProjectPlace {
  /** For the log, e.g. "saved work". */
  readonly what: string;
  /** Removes what it has of the project. It may have nothing. */
  readonly remove: (projectId: string) => Effect.Effect<void, { readonly message: string }>;
}

export const ProjectPlaces = Context.Reference<readonly ProjectPlace[]>("platform/services/ProjectPlaces", {
  defaultValue: () => [],
});
