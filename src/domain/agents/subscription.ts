/**
 * A person's own subscription at the maker of a runtime: a token, or the runtime's own file (docs/use/subscriptions.md).
 *
 *  S1 A session uses that of its person, while she alone steers it (../connector/own-credential.ts). A key of the project wins. A model that
 *     names a provider wins, too.
 *  S2 It is inside the sandbox, because its runtime signs in by itself. So it comes in with the sandbox's start only, and nothing brings it
 *     back into a sandbox that lost it.
 *  S3 A file that the runtime has renewed is taken back into the same subscription, if it is newer than the one that is kept and of the
 *     same account.
 */
import type { JsonPath, RuntimeSubscription, SubscriptionFile } from "../runtimes/runtime.ts";
import { isRecord, parseJson } from "../../ground/record.ts";
import type { LaunchAgent } from "../sandbox/launch.ts";
import type { Agent } from "./agents.ts";
import { isAgentModel } from "../sandbox/agent.ts";

/** The longest token or file, bytes. */
export const SUBSCRIPTION_BYTES_MAX = 64 * 1024;
/** A file that says that it is newer than this may be a lie of the sandbox, ms. */
const AHEAD_MAX_MS = 24 * 60 * 60 * 1000;
/** Shorter texts of a file are names, and instants are known. */
const isSecret = (text: string): boolean => text.length >= 20 && !/^\d{4}-\d\d-\d\dT/.test(text);

export interface SubscriptionChoice {
  readonly secretNames: readonly string[];
  /** The runtimes for which the session's person keeps a subscription. */
  readonly kept: readonly string[];
}

/**
 * The subscription that an agent uses (S1).
 *
 * @param model the session's or the agent's
 */
export const usedSubscription = (
  { runtime }: Pick<Agent, "runtime">,
  model: string | null,
  { secretNames, kept }: SubscriptionChoice,
): RuntimeSubscription | null => {
  const { subscription, name } = runtime;
  if (subscription === null || !kept.includes(name)) return null;
  if (runtime.providers?.keys.some((key) => secretNames.includes(key)) === true) return null;
  return model !== null && isAgentModel(model) ? null : subscription;
};

const valueAt = (value: unknown, [name, ...rest]: JsonPath): unknown => {
  if (name === undefined) return value;
  return isRecord(value) ? valueAt(value[name], rest) : undefined;
};

const tokenFault = ({ begins }: { readonly begins: string }, how: string, text: string): string | null =>
  text.startsWith(begins) && /^[\u0021-\u007e]+$/.test(text)
    ? null
    : `must be the one line that \`${how}\` prints, which begins with ${begins}`;

const fileFault = ({ path, needs }: SubscriptionFile, text: string): string | null => {
  const value = parseJson(text);
  if (!isRecord(value)) return `must be the file ~/${path}, which is a JSON object`;
  const missing = needs.find((one) => {
    const field = valueAt(value, one);
    return typeof field !== "string" || field === "";
  });
  return missing === undefined
    ? null
    : `must be the file ~/${path} of a sign-in: it has no ${missing.join(".")}`;
};

/** Why a token or a file that a person saves cannot be right. Null if only its maker can tell. */
export const subscriptionFault = ({ token, file, how }: RuntimeSubscription, text: string): string | null => {
  if (Buffer.byteLength(text) > SUBSCRIPTION_BYTES_MAX)
    return `must have at most ${SUBSCRIPTION_BYTES_MAX / 1024} KiB`;
  if (token !== null) return tokenFault(token, how, text);
  return file === null ? null : fileFault(file, text);
};

/** When a file was renewed, ms since the epoch. */
const parseInstant = (value: unknown): number => {
  const at = typeof value === "string" ? Date.parse(value) : value;
  return typeof at === "number" && Number.isFinite(at) ? at : 0;
};

/**
 * What becomes of a file that a sandbox gives back (S3).
 *
 * @returns null if it is taken, or why it is not
 */
export const renewalFault = (
  subscription: RuntimeSubscription,
  { kept, given, now }: { readonly kept: string; readonly given: string; readonly now: number },
): string | null => {
  const { renewed = null } = subscription.file ?? {};
  if (renewed === null) return "the runtime does not renew it";
  const fault = subscriptionFault(subscription, given);
  if (fault !== null) return fault;
  const [before, after] = [parseJson(kept), parseJson(given)];
  if (valueAt(before, renewed.keeps) !== valueAt(after, renewed.keeps)) return "it is of another account";
  const at = parseInstant(valueAt(after, renewed.at));
  if (at > now + AHEAD_MAX_MS) return "it says that it is of the future";
  return at > parseInstant(valueAt(before, renewed.at)) ? null : "the kept one is as new";
};

const textsIn = (value: unknown): readonly string[] => {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
};

/** What must not be read in a log, in output and in saved work. */
export const subscriptionSecrets = (text: string): readonly string[] => {
  const value = parseJson(text);
  const texts = isRecord(value) ? textsIn(value).filter(isSecret) : [];
  return [text, ...texts];
};

/**
 * What a sandbox gets of a subscription.
 *
 * @param agent without what points it to a provider
 */
export const launchedSubscription = (
  { token, file, variables, files, traces, title }: RuntimeSubscription,
  content: string,
  agent: Pick<LaunchAgent, "variables" | "files">,
): NonNullable<LaunchAgent["subscription"]> => ({
  title,
  content,
  variable: token?.variable ?? null,
  file: file?.path ?? null,
  isRenewed: (file?.renewed ?? null) !== null,
  traces,
  variables: { ...agent.variables, ...variables },
  files: { ...agent.files, ...files },
});
