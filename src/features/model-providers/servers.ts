/** The way to providers' servers, by the guarded client (src/ground/net/client.ts). */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import { trustedHosts } from "../../ground/net/address.ts";
import { NetClient, readBody } from "../../ground/net/client.ts";
import type { Network } from "../../ground/net/dial.ts";
import { NetFault } from "../../ground/net/fault.ts";
import { ownAddresses } from "../../ground/net/own-addresses.ts";
import { keyVerdict, noVerdict } from "../../domain/sandbox/model-key.ts";
import type { ProviderKind } from "../../domain/sandbox/account-provider.ts";
import { listedModels, listRequest } from "./rules/kinds.ts";

/** Null: this service asks no provider. */
export const ModelServers = Context.Reference<NetClient | null>("platform/model-providers/ModelServers", {
  defaultValue: () => null,
});

/** How long a model may be silent before a call ends, ms. As the sandboxes' way out. */
const SILENT_MS = 900_000;
/** A list of models has up to some hundred kilobytes. */
const LIST_BYTES = 4 * 1024 * 1024;
const LIST_MS = 15_000;

/** Opens the client in the caller's scope. @param allowHosts PLATFORM_CONNECTOR_ALLOW_HOSTS */
export const makeModelServers = (
  allowHosts: readonly string[],
  network: Network = {},
): Effect.Effect<NetClient, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(
      () =>
        new NetClient({
          ...network,
          allowances: {
            ...trustedHosts(allowHosts, "PLATFORM_CONNECTOR_ALLOW_HOSTS"),
            own: ownAddresses,
          },
          connectMs: 10_000,
          silentMs: SILENT_MS,
          connections: 256,
          keepAliveMs: 10_000,
        }),
    ),
    (client) => Effect.promise(() => client.close()),
  );

export interface Trial {
  readonly kind: ProviderKind;
  readonly baseUrl: string;
  /** Empty: none. */
  readonly key: string;
}

/** `models`: those that the provider lists. Otherwise why it cannot be used, in sentences without any part of the key. */
export type TrialResult =
  | { readonly models: readonly string[] }
  | { readonly refusal: string; readonly advice: string | null };

const verdict = ({ message, advice }: { readonly message: string; readonly advice: string | null }) => ({
  refusal: message,
  advice,
});

/** Asks a provider for its models, which costs nothing. */
export const tryProvider = Effect.fnUntraced(function* ({
  kind,
  ...trial
}: Trial): Effect.fn.Return<TrialResult> {
  const client = yield* ModelServers;
  const { url, headers } = listRequest(kind, trial);
  const { host, hostname } = new URL(url);
  if (client === null) return verdict(noVerdict({ host }, "is not asked by this service"));
  return yield* Effect.tryPromise({
    try: async (signal) => {
      const answer = await client.request({ url: new URL(url), headers, signal, withinMs: LIST_MS });
      const body = await readBody(answer.body, { host: hostname, maxBytes: LIST_BYTES, withinMs: LIST_MS });
      return { status: answer.statusCode, text: body.toString("utf8") };
    },
    catch: (error) => (error instanceof NetFault ? error.why : "cannot be reached"),
  }).pipe(
    Effect.match({
      onFailure: (why): TrialResult => verdict(noVerdict({ host }, why)),
      onSuccess: (answer): TrialResult => {
        const judged = keyVerdict({ host }, trial.key, answer);
        if (judged.outcome !== "accepted") return verdict(judged);
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
