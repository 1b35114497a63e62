/**
 * How a provider is asked whether it accepts a key: by one read with that key, which costs nothing. No model is called.
 */
import { isRecord, parseJson } from "../../ground/record.ts";
import { MODEL_PROVIDERS, type ModelProvider } from "./model.ts";
import { cutText, storableText } from "../text.ts";

/** A request to the provider's host, over HTTPS. */
export interface KeyQuestion {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The provider's answer to it. */
export interface KeyAnswer {
  readonly status: number;
  readonly text: string;
  readonly redirect?: URL | null;
}

export interface KeyVerdict {
  /** `unknown`: the provider gave no answer about the key. */
  readonly outcome: "accepted" | "rejected" | "unknown";
  /** The finding, as a sentence. It contains no part of the key. */
  readonly message: string;
  /** The remedy, as a sentence. */
  readonly advice: string | null;
}

const bearer =
  (path: string) =>
  (key: string): KeyQuestion => ({
    path,
    headers: { authorization: `Bearer ${key}` },
  });

/**
 * Each read must need a key. OpenRouter lists its models without one, so it is asked about the key itself. A provider without
 * a row is not asked. The rows were not tried against the providers.
 */
const QUESTIONS: Readonly<Record<string, (key: string) => KeyQuestion>> = {
  anthropic: (key) => ({
    path: "/v1/models?limit=1",
    headers: { "x-api-key": key, "anthropic-version": "2023-06-01" },
  }),
  openai: bearer("/v1/models"),
  google: (key) => ({ path: "/v1beta/models?pageSize=1", headers: { "x-goog-api-key": key } }),
  openrouter: bearer("/api/v1/key"),
  mistral: bearer("/v1/models"),
  groq: bearer("/openai/v1/models"),
  deepseek: bearer("/models"),
  xai: bearer("/v1/models"),
};

/** The provider whose key a secret of this name is, if it is known how to ask it. */
export const triedProvider = (secretName: string): ModelProvider | null =>
  MODEL_PROVIDERS.find(({ id, keys }) => keys.includes(secretName) && QUESTIONS[id] !== undefined) ?? null;

/** What may stand in a header. Other values are not sent. */
const IN_A_HEADER = /^[\u0021-\u007e]+$/;

/** @returns null if the value cannot be a key. */
export const keyQuestion = ({ id }: ModelProvider, key: string): KeyQuestion | null =>
  IN_A_HEADER.test(key) ? (QUESTIONS[id]?.(key) ?? null) : null;

export const NOT_A_KEY: KeyVerdict = {
  outcome: "rejected",
  message: "The value has a blank, a line break or another character that no key has.",
  advice: "Copy the key alone, and set it again.",
};

/** The longest part of a provider's own words that is shown. */
const WORDS_MAX = 300;

/** The provider's own words, if they are where all of these APIs have them. */
const wordsIn = (text: string, key: string): string => {
  const body = parseJson(text);
  const inner = isRecord(body) && "error" in body ? body["error"] : body;
  const message = isRecord(inner) && "message" in inner ? inner["message"] : inner;
  if (typeof message !== "string") return "";
  return cutText(storableText(key === "" ? message : message.replaceAll(key, "(key)")), WORDS_MAX);
};

export const isRedirect = (status: number): boolean => status >= 300 && status < 400;

/** A redirect, as part of a sentence about its host. It is not followed: the key would go to another place. */
const redirectWords = (to: string): string => `answers with a redirect${to}, which is not followed`;
export const UNFOLLOWED = redirectWords("");

/** The place without its query, which may have a secret. */
const placeWords = (to: URL | null, key: string): string => {
  if (to === null || !/^https?:$/.test(to.protocol)) return "";
  const place = `${to.origin}${to.pathname}`;
  return ` to ${cutText(key === "" ? place : place.replaceAll(key, "(key)"), WORDS_MAX)}`;
};

const quoteProvider = (words: string): string => (words === "" ? "" : ` It says: ${words}`);

/** Google refuses a wrong key with 400. */
const isWrongKey = (status: number, words: string): boolean =>
  status === 401 || status === 403 || (status === 400 && /api key/i.test(words));

/** Reads the provider's answer. */
export const keyVerdict = (
  { host }: Pick<ModelProvider, "host">,
  key: string,
  { status, text, redirect = null }: KeyAnswer,
): KeyVerdict => {
  if (status >= 200 && status < 300)
    return { outcome: "accepted", message: `${host} accepts the key.`, advice: null };
  if (isRedirect(status))
    return {
      outcome: "unknown",
      message: `${host} ${redirectWords(placeWords(redirect, key))}.`,
      advice:
        "Check whether the API has moved, or whether a proxy or a sign-in page answers in place of the provider.",
    };
  const words = wordsIn(text, key);
  if (isWrongKey(status, words))
    return {
      outcome: "rejected",
      message: `${host} rejects the key (${status}).${quoteProvider(words)}`,
      advice: "Copy the key again from the provider's page, or make a new one there, and set it.",
    };
  return {
    outcome: "unknown",
    message: `${host} says nothing about the key (${status}).${quoteProvider(words)}`,
    advice:
      status === 429
        ? "The provider limits requests now. Try again in a minute, and look at the account's quota."
        : "Try again in a minute. If it stays so, look at the provider's status page.",
  };
};

/** A failed call as a sentence, if the provider or the key is at fault. Null if the request may be. */
export const callRefusal = (
  { host }: Pick<ModelProvider, "host">,
  key: string,
  { status, text }: KeyAnswer,
): string | null => {
  const words = wordsIn(text, key);
  if (isWrongKey(status, words)) return `${host} rejects the key (${status}).${quoteProvider(words)}`;
  const isRefused = status === 402 || status === 429 || status >= 500 || /credit|billing|quota/i.test(words);
  return isRefused ? `${host} refuses calls (${status}).${quoteProvider(words)}` : null;
};

/** There was no answer. */
export const noVerdict = ({ host }: Pick<ModelProvider, "host">, why: string): KeyVerdict => ({
  outcome: "unknown",
  message: `${host} ${why}.`,
  advice: "Check whether this service's machine can reach the provider. Sandboxes need to reach it, too.",
});
