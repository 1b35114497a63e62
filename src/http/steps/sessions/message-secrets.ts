/** Secrets in what people give to the agent (conversation.md, limits). */
import * as Effect from "effect/Effect";
import { isMasked } from "../../../domain/secret/secret.ts";
import { namedSecrets } from "../../../services/projects/project-secrets.ts";
import { Unprocessable } from "../../api/errors.ts";

/**
 * Refuses what contains a secret of the project: it would be kept, and shown to everyone who may read the conversation.
 *
 * @param what the subject of the error's sentence
 */
export const refuseSecrets = Effect.fnUntraced(function* (
  projectId: string,
  what: string,
  contains: (value: string) => boolean,
) {
  for (const { name, value } of yield* namedSecrets(projectId))
    if (isMasked(Buffer.byteLength(value)) && contains(value))
      return yield* new Unprocessable({
        error: `${what} contains the value of the secret ${name}. Name the secret instead of its value.`,
        code: "secret_in_message",
        details: { secret: name },
      });
});
