/** The rules of a provider: its fields, and its owner. */
import * as Result from "effect/Result";
import type { ProviderOwner } from "../../../domain/sandbox/account-provider.ts";
import { parseModelId } from "../../../domain/sandbox/model.ts";

/** Whose a provider is. Without a project and a person: the account's. At most one of them is set. */
export interface ProviderPlace {
  readonly accountId: string;
  readonly projectId: string | null;
  readonly userId: string | null;
}

export const ownerAt = ({ projectId, userId }: Pick<ProviderPlace, "projectId" | "userId">): ProviderOwner =>
  userId !== null ? "person" : projectId !== null ? "project" : "account";

/** How many providers an owner may have. */
export const PROVIDERS_MAX = 20;
/** How many models a provider may offer. */
export const MODELS_MAX = 200;
/** The longest key, in characters. */
export const KEY_MAX = 4096;

const NAME = /^[a-z][a-z0-9-]{0,39}$/;
/** First parts of paths and of models that mean something else: the gateway's paths, and providers of the platform and of opencode. */
const TAKEN: ReadonlySet<string> = new Set(["v1", "v1beta", "api", "managed", "opencode"]);

/** The fault of a name. Null without one. */
export const nameFault = (name: string): string | null => {
  if (!NAME.test(name)) return "must be a-z, 0-9 and -, begin with a letter, and have at most 40 characters";
  return TAKEN.has(name) ? "has another meaning. Choose another name" : null;
};

/** The fault of ids of models. Null without one. */
export const modelsFault = (models: readonly string[]): string | null => {
  for (const model of models) {
    const parsed = parseModelId(model);
    if (Result.isFailure(parsed)) return `must each be ${parsed.failure}: ${JSON.stringify(model)} is not`;
  }
  return null;
};

/**
 * Reads a base URL. Which addresses may be reached is the outbound client's to say.
 *
 * @returns the URL without a slash at its end, or what is wrong with it.
 */
export const parseBaseUrl = (text: string): Result.Result<string, string> => {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || url.hostname === "")
    return Result.fail("must be an http or https URL");
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "")
    return Result.fail("must have no credentials, query or fragment. Give the key apart");
  return Result.succeed(`${url.origin}${url.pathname.replace(/\/+$/, "")}`);
};

/** May stand in a header. */
const KEY = /^[\u0021-\u007e]+$/;

/** The fault of a key. Null without one. The empty text is no key, for servers that need none. */
export const keyFault = (key: string): string | null =>
  key === "" || KEY.test(key) ? null : "has a blank, a line break or another character that no key has";

/** The name under which a provider's key is sealed. */
export const sealedName = (id: string): string => `model provider ${id}`;
