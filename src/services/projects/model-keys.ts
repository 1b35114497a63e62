/** Asks a model provider, when a person wants to know, whether it accepts a project's key. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import {
  keyQuestion,
  keyVerdict,
  NOT_A_KEY,
  noVerdict,
  type KeyAnswer,
  type KeyVerdict,
} from "../../domain/sandbox/model-key.ts";
import type { ModelProvider } from "../../domain/sandbox/model.ts";

/** A list of models has up to some hundred kilobytes. */
const ANSWER_BYTES = 4 * 1024 * 1024;
const ANSWER_MS = 15_000;

export interface ProviderRequest {
  readonly method: "GET";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: null;
  readonly maxBytes: number;
  /** Milliseconds until the answer's last byte. */
  readonly deadlineMs: number;
}

export interface ProviderAnswer extends Omit<KeyAnswer, "redirect"> {
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
}

/** One exchange without redirects. `why`: why there is no answer, as part of a sentence. */
export type AskProvider = (
  request: ProviderRequest,
) => Effect.Effect<ProviderAnswer, { readonly why: string }>;

/** The way to providers. Without one, no key is tried. */
export const Providers = Context.Reference<AskProvider>("platform/services/Providers", {
  defaultValue: () => () => Effect.fail({ why: "is not asked by this service" }),
});

/** @param key the secret's value. No part of it is in the verdict. */
export const tryKey = Effect.fnUntraced(function* (
  provider: ModelProvider,
  key: string,
): Effect.fn.Return<KeyVerdict> {
  const question = keyQuestion(provider, key);
  if (question === null) return NOT_A_KEY;
  const ask = yield* Providers;
  const { path, headers } = question;
  const url = `https://${provider.host}${path}`;
  return yield* ask({
    method: "GET",
    url,
    headers: { accept: "application/json", "user-agent": "platform", ...headers },
    body: null,
    maxBytes: ANSWER_BYTES,
    deadlineMs: ANSWER_MS,
  }).pipe(
    Effect.match({
      onSuccess: ({ status, text, headers: { location } }) => {
        const redirect = location === undefined ? null : URL.parse(location, url);
        return keyVerdict(provider, key, { status, text, redirect });
      },
      onFailure: ({ why }) => noVerdict(provider, why),
    }),
  );
});
