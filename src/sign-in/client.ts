/** What both providers share: the requests of the code flow with PKCE, and faults without secrets. */
import * as Effect from "effect/Effect";
import { cutText } from "../domain/text.ts";
import { NetClient } from "../ground/net/client.ts";
import { NetFault } from "../ground/net/fault.ts";
import {
  AuthorizationResponseError,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  ClientError,
  ResponseBodyError,
  WWWAuthenticateChallengeError,
  type Configuration,
  type CustomFetch,
} from "openid-client";
import type { FlowSecrets, ProviderFault } from "./port.ts";

/** How long an answer of a provider may take, in seconds. */
export const ANSWER_SECONDS = 10;

/** The operator has set the providers, so they may have any address, and plain HTTP. */
const client = new NetClient({
  allowances: { hosts: "every" },
  connectMs: 10_000,
  silentMs: ANSWER_SECONDS * 1000,
  connections: 16,
});

/** How openid-client sends requests. */
export const sendRequest: CustomFetch = async (url, { method, headers, body, signal }) => {
  const limits = signal === undefined ? {} : { signal };
  // The library reads status, headers and JSON, which are the same here.
  return (await client.fetch(new URL(url), {
    method,
    headers,
    body: body ?? null,
    ...limits,
  })) as unknown as Response;
};

/** A refusal that the provider decides itself, for example of a user without a verified address. */
export class AnswerRefused extends Error {}

const faultKind = (error: unknown): ProviderFault["kind"] => {
  if (error instanceof AuthorizationResponseError) return "denied";
  const isAnswer =
    error instanceof AnswerRefused ||
    error instanceof ResponseBodyError ||
    error instanceof WWWAuthenticateChallengeError;
  if (isAnswer) return "refused";
  return error instanceof ClientError && error.code !== "OAUTH_TIMEOUT" && error.code !== "OAUTH_ABORT"
    ? "refused"
    : "unreachable";
};

/** A parser quotes what it could not read. */
const errorText = (error: unknown): string =>
  error instanceof Error && !(error instanceof SyntaxError) ? error.message : "an answer that cannot be read";

/** A provider's own text, in one line. */
const WORDS_MAX = 300;
const cleanText = (text: string): string => cutText(text.replaceAll(/\p{C}+/gu, " ").trim(), WORDS_MAX);

/**
 * The provider's code of its refusal, and what it says about it. The text of an answer to the code or to a token is left
 * out: it may quote them (port.ts L3).
 */
const refusalIn = (error: unknown): { readonly code: string | null; readonly text: string | null } => {
  if (error instanceof AuthorizationResponseError)
    return { code: cleanText(error.error), text: cleanText(error.error_description ?? "") || null };
  if (error instanceof ResponseBodyError) return { code: cleanText(error.error), text: null };
  if (error instanceof WWWAuthenticateChallengeError) {
    const code = error.cause
      .map(({ parameters }) => parameters.error)
      .find((candidate) => candidate !== undefined);
    return { code: code === undefined ? null : cleanText(code), text: null };
  }
  return { code: null, text: null };
};

/** Whether the provider did not accept the client's secret in the way it was sent. */
export const isClientRefused = (error: unknown): boolean =>
  refusalIn(error).code === "invalid_client" || error instanceof WWWAuthenticateChallengeError;

/**
 * The library's messages name fields, never their values (port.ts L3). Its first cause says which field. The causes of that one have
 * the values, so they are left out.
 */
const toFault = (error: unknown): ProviderFault => {
  // The library wraps what its `fetch` throws.
  for (let at = error; at instanceof Error; at = at.cause)
    if (at instanceof NetFault)
      return { _tag: "ProviderFault", kind: "unreachable", why: at.message, code: null };
  const cause = error instanceof Error && error.cause instanceof Error ? `: ${errorText(error.cause)}` : "";
  const { code, text } = refusalIn(error);
  const answer = [code, text].filter((part) => part !== null).join(": ");
  const why = `${errorText(error)}${cause}${answer === "" ? "" : ` (it says ${answer})`}`;
  return { _tag: "ProviderFault", kind: faultKind(error), why, code };
};

export const asking = <A>(ask: () => Promise<A>): Effect.Effect<A, ProviderFault> =>
  Effect.tryPromise({ try: ask, catch: toFault });

/** Where the browser goes, with PKCE S256 and the state. */
export const authorizationUrl = async (
  configuration: Configuration,
  secrets: FlowSecrets,
  more: Readonly<Record<string, string>>,
): Promise<string> =>
  buildAuthorizationUrl(configuration, {
    state: secrets.state,
    code_challenge: await calculatePKCECodeChallenge(secrets.verifier),
    code_challenge_method: "S256",
    ...more,
  }).href;

/** The tokens for the code that the browser brought. */
export const tokensFor = (
  configuration: Configuration,
  callback: URL,
  checks: {
    readonly pkceCodeVerifier: string;
    readonly expectedState: string;
    readonly expectedNonce?: string;
    readonly idTokenExpected?: boolean;
  },
) => authorizationCodeGrant(configuration, callback, checks);
