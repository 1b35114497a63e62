/** Asks a provider for its models before it is saved, which costs nothing. */
import * as Effect from "effect/Effect";
import type { ProviderKind } from "../../domain/sandbox/account-provider.ts";
import { isRedirect, keyVerdict, noVerdict } from "../../domain/sandbox/model-key.ts";
import { ModelServers, type Unreached } from "./ports/model-servers.ts";
import { listedModels, listRequest } from "./rules/kinds.ts";

export interface Trial {
  readonly kind: ProviderKind;
  readonly baseUrl: string;
  /** Empty: none. */
  readonly key: string;
}

/** `models`: those that the provider lists. Otherwise why it cannot be used, in sentences without any part of the key. */
export type TrialResult = { readonly models: readonly string[] } | TrialRefusal;
export interface TrialRefusal {
  readonly refusal: string;
  readonly advice: string | null;
}

const refusedBy = ({
  message,
  advice,
}: {
  readonly message: string;
  readonly advice: string | null;
}): TrialRefusal => ({ refusal: message, advice });

/** A provider of an account is called by the service only, unlike that of a project's own key. */
const WHO_CALLS =
  "The service calls the provider, sandboxes do not: the URL counts as the service's machine reaches it.";

const notReached = (host: string, { why }: Pick<Unreached, "why">): TrialRefusal =>
  refusedBy({ ...noVerdict({ host }, why), advice: WHO_CALLS });

/** Why the service may not reach a base URL, without asking it. Null if it may. */
export const placeRefusal = Effect.fnUntraced(function* (
  baseUrl: string,
): Effect.fn.Return<TrialRefusal | null> {
  const url = new URL(baseUrl);
  return yield* (yield* ModelServers)
    .check(url)
    .pipe(Effect.match({ onFailure: (fault) => notReached(url.host, fault), onSuccess: () => null }));
});

export const tryProvider = Effect.fnUntraced(function* ({
  kind,
  ...trial
}: Trial): Effect.fn.Return<TrialResult> {
  const { url, headers } = listRequest(kind, trial);
  const { host } = new URL(url);
  return yield* (yield* ModelServers).read(new URL(url), headers).pipe(
    Effect.match({
      onFailure: (fault) => notReached(host, fault),
      onSuccess: (answer): TrialResult => {
        const verdict = keyVerdict({ host }, trial.key, answer);
        if (isRedirect(answer.status))
          return refusedBy({ ...verdict, advice: "Its base URL may be another one." });
        if (verdict.outcome !== "accepted") return refusedBy(verdict);
        const models = listedModels(answer.text);
        return models === null
          ? {
              refusal: `${host} does not answer with a list of models.`,
              advice: "Check the base URL and the kind.",
            }
          : { models };
      },
    }),
  );
});
