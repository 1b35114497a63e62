/** Warnings in answers: the request succeeded, but may not work as its project intends. */
import type { KnownProject } from "../../services/directory.ts";
import { missingRequired } from "../../services/projects/required-secrets.ts";
import { deliveredKeyMessage, missingSecretsMessage } from "../../domain/manifest/required-secrets.ts";

/** Webhook triggers whose senders sign with a secret that agents have. */
export const deliveredKeys = (entry: KnownProject | null) =>
  (entry?.manifest.triggers ?? []).flatMap((trigger) =>
    trigger.type === "webhook" && entry?.deliveredNames.includes(trigger.secretEnv) === true
      ? [
          {
            code: "webhook_secret_delivered" as const,
            message: deliveredKeyMessage(trigger.slug, trigger.secretEnv),
          },
        ]
      : [],
  );

export const sessionWarnings = (entry: KnownProject | null) => {
  const missing = missingRequired(entry);
  return missing.length === 0
    ? []
    : [{ code: "secret_missing" as const, message: missingSecretsMessage(missing) }];
};
