/** Warnings in answers: the request succeeded, but may not work as its project intends. */
import type { KnownProject } from "../../services/directory.ts";
import { missingSecretsOf } from "../../services/required-secrets.ts";
import { missingSecretsMessage } from "../../domain/required-secrets.ts";

export const warningsOf = (known: KnownProject | null) => {
  const missing = missingSecretsOf(known);
  return missing.length === 0
    ? []
    : [{ code: "secret_missing" as const, message: missingSecretsMessage(missing) }];
};
