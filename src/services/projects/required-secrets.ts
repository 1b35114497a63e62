/** Warns of secrets that a project's manifest requires and that have no value, from the state in memory. */
import * as Effect from "effect/Effect";
import { missingSecrets, missingSecretsMessage } from "../../domain/manifest/required-secrets.ts";
import type { KnownProject } from "../directory.ts";

export const missingRequired = (knownProject: KnownProject | null): readonly string[] =>
  knownProject === null ? [] : missingSecrets(knownProject.manifest.env.required, knownProject.secretNames);

/** Logs a line for the operator if a session starts, or a fire waits, without required secrets. */
export const logMissingSecrets = (
  knownProject: KnownProject | null,
  start: { readonly session: string } | { readonly fire: string },
): Effect.Effect<void> => {
  const missing = missingRequired(knownProject);
  if (knownProject === null || missing.length === 0) return Effect.void;
  return Effect.logWarning("required secrets have no value", {
    project: knownProject.project.id,
    ...start,
    message: missingSecretsMessage(missing),
  });
};
