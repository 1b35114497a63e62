/**
 * What the service knows of each kind of provider: which requests pass, where the key stands, and how models are listed.
 *
 *  K1 Only calls of models pass. A provider's other paths, such as files, stored answers and the administration of its account, are shut:
 *     they could show the work of others that use the same key.
 *  K2 No credential of a sandbox reaches a provider, in whatever header or parameter a kind takes one.
 */
import type { ProviderKind } from "../../../domain/sandbox/account-provider.ts";
import { isRecord, parseJson } from "../../../ground/record.ts";

type Headers = Readonly<Record<string, string>>;

interface Kind {
  /** The base URL of the API's maker. Null without one. */
  readonly baseUrl: string | null;
  readonly keyHeaders: (key: string) => Headers;
  /** `METHOD /path` below the base URL, without a query. */
  readonly open: RegExp;
  /** Lists the models. */
  readonly list: string;
  /** Further headers of the list's request. */
  readonly listHeaders: Headers;
  /** An error of a limit of spend, in the form that the kind's clients read. */
  readonly error: (message: string) => object;
}

const bearer = (key: string): Headers => ({ authorization: `Bearer ${key}` });

/** The form of Anthropic and OpenAI, which most clients read. */
const usualError = (message: string): object => ({
  type: "error",
  error: { type: "spend_limit", code: "spend_limit", message },
});

/** One segment of a path, which is not `.` or `..`, and has no encoded slash. */
const SEGMENT = String.raw`(?!\.{1,2}(?:\/|:|$))(?:[A-Za-z0-9._~@+-]|%(?!2[fF]|5[cC]|2[eE])[0-9A-Fa-f]{2})+`;
/** A model's id, which may have slashes. */
const MODEL = `${SEGMENT}(?:\\/${SEGMENT})*`;

const OPENAI = {
  keyHeaders: bearer,
  open: new RegExp(
    `^(?:POST \\/(?:chat\\/completions|completions|responses|responses\\/compact|embeddings)|GET \\/models(?:\\/${MODEL})?)$`,
  ),
  list: "/models",
  listHeaders: {},
  error: usualError,
} satisfies Omit<Kind, "baseUrl">;

const KINDS: Readonly<Record<ProviderKind, Kind>> = {
  anthropic: {
    baseUrl: "https://api.anthropic.com",
    keyHeaders: (key) => ({ "x-api-key": key }),
    open: new RegExp(`^(?:POST \\/v1\\/messages(?:\\/count_tokens)?|GET \\/v1\\/models(?:\\/${MODEL})?)$`),
    list: "/v1/models?limit=1000",
    listHeaders: { "anthropic-version": "2023-06-01" },
    error: usualError,
  },
  openai: { ...OPENAI, baseUrl: "https://api.openai.com/v1" },
  "openai-compatible": { ...OPENAI, baseUrl: null },
  gemini: {
    baseUrl: "https://generativelanguage.googleapis.com",
    keyHeaders: (key) => ({ "x-goog-api-key": key }),
    open: new RegExp(
      `^(?:POST \\/v1(?:beta)?\\/models\\/${SEGMENT}:(?:generateContent|streamGenerateContent|countTokens|embedContent|batchEmbedContents)|GET \\/v1(?:beta)?\\/models(?:\\/${SEGMENT})?)$`,
    ),
    list: "/v1beta/models?pageSize=1000",
    listHeaders: {},
    error: (message) => ({ error: { code: 402, message, status: "SPEND_LIMIT" } }),
  },
};

/** Headers by which any kind takes a credential. */
const CREDENTIALS: ReadonlySet<string> = new Set([
  "authorization",
  "x-api-key",
  "x-goog-api-key",
  "api-key",
  "cookie",
]);

export const defaultBaseUrl = (kind: ProviderKind): string | null => KINDS[kind].baseUrl;

/** The headers that carry the key. @param key empty: the provider needs none */
export const keyHeaders = (kind: ProviderKind, key: string): Headers =>
  key === "" ? {} : KINDS[kind].keyHeaders(key);

/** The headers of a sandbox's request that go on (K2). */
export const withoutCredentials = <T>(headers: Readonly<Record<string, T>>): Record<string, T> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !CREDENTIALS.has(name.toLowerCase())));

/** Whether a request is a call of a model (K1). @param path below the base URL, with its query */
export const passes = (kind: ProviderKind, method: string, path: string): boolean =>
  KINDS[kind].open.test(`${method} ${path.split("?", 1)[0] ?? ""}`);

/** Whether a call is paid by tokens. */
export const isCounted = (method: string, path: string): boolean =>
  method === "POST" && !/(?:count_tokens|:countTokens)(?:\?|$)/.test(path);

/** The path without a parameter that carries a key (K2). */
export const withoutKey = (path: string): string => {
  const [before = "", query] = path.split("?", 2);
  if (query === undefined) return before;
  const parts = query.split("&").filter((part) => !/^(?:key|api[-_]key|access_token)=/i.test(part));
  return parts.length === 0 ? before : `${before}?${parts.join("&")}`;
};

/** The request that lists a provider's models, which costs nothing. */
export const listRequest = (kind: ProviderKind, { baseUrl, key }: { baseUrl: string; key: string }) => ({
  url: `${baseUrl}${KINDS[kind].list}`,
  headers: {
    accept: "application/json",
    "user-agent": "platform",
    ...KINDS[kind].listHeaders,
    ...keyHeaders(kind, key),
  },
});

const modelId = (entry: unknown): string | null => {
  if (!isRecord(entry)) return null;
  const id = entry["id"] ?? entry["name"];
  return typeof id === "string" ? id.replace(/^models\//, "") : null;
};

/** The ids in a list of models, in its order. Null if the answer is not a list of models. */
export const listedModels = (text: string): readonly string[] | null => {
  const body = parseJson(text);
  const list = isRecord(body) ? (body["data"] ?? body["models"]) : null;
  return Array.isArray(list) ? list.flatMap((entry) => modelId(entry) ?? []) : null;
};

/** The model that a path names, as Gemini's do. */
export const modelInPath = (path: string): string | null => /\/models\/([^/:?]+):/.exec(path)?.[1] ?? null;

/** An error of a limit of spend. @param kind null: it is not known */
export const errorBody = (kind: ProviderKind | null, message: string): string =>
  JSON.stringify((kind === null ? usualError : KINDS[kind].error)(message));
