/**
 * The address of a receiver, and what is stored of it (api.md 12, threats.md O01). Whether a name leads to a private address shows
 * only when it is dialled: the sender checks that again.
 */
import * as Result from "effect/Result";
import { canonicalHost, isPrivateHost } from "../../../ground/net/address.ts";
import type { OutboundFormat } from "./outbound-format.ts";

/** Of one project. */
export const RECEIVERS_MAX = 20;
const URL_LIMIT = 2048;

/** What the service knows of addresses inside. */
export interface ReceiverRules {
  /** Lower-case hosts of PLATFORM_WEBHOOK_ALLOW_HOSTS. */
  readonly allowHosts: ReadonlySet<string>;
  /** The service's own address for people. */
  readonly publicUrl: string;
}

/**
 * Reads the address of a receiver.
 *
 * @returns the address as URLs are written, or one sentence that says what is wrong. It contains no part of the
 * address, which may be a secret.
 */
export const parseReceiver = (
  value: string,
  { allowHosts, publicUrl }: ReceiverRules,
): Result.Result<URL, string> => {
  // Programs disagree on how to read blanks, control characters, backslashes and anything beyond ASCII.
  if (value.length > URL_LIMIT || !/^[!-[\]-~]*$/.test(value) || !URL.canParse(value))
    return Result.fail(
      `The address must be a URL of at most ${URL_LIMIT} printable ASCII characters without spaces.`,
    );
  const url = new URL(value);
  if (url.username !== "" || url.password !== "")
    return Result.fail("The address must not contain a user name or a password.");
  const host = canonicalHost(url.hostname);
  if (host === null) return Result.fail("The host of the address is not valid.");
  url.hash = "";
  if (allowHosts.has(host)) {
    return url.protocol === "https:" || url.protocol === "http:"
      ? Result.succeed(url)
      : Result.fail("The address must begin with https:// or http://.");
  }
  if (url.protocol !== "https:" || url.port !== "")
    return Result.fail(
      "The address must begin with https:// and use port 443. The operator can allow others in PLATFORM_WEBHOOK_ALLOW_HOSTS.",
    );
  if (isPrivateHost(host))
    return Result.fail(
      "The host of the address is private. The operator can allow it in PLATFORM_WEBHOOK_ALLOW_HOSTS.",
    );
  if (host === canonicalHost(new URL(publicUrl).hostname))
    return Result.fail("The address is this service itself.");
  return Result.succeed(url);
};

/** How many characters of a chat's address are shown, at its end. */
const TAIL = 4;

/**
 * The address as people see it. A chat's address opens its channel to everyone who knows it, and a query may contain a
 * token.
 */
export const shownReceiver = (url: URL, format: OutboundFormat): string => {
  if (format !== "standard") return `${url.origin}/…${url.href.slice(-TAIL)}`;
  return `${url.origin}${url.pathname}${url.search === "" ? "" : "?…"}`;
};

/** The sealed part of a receiver, as one value. */
export interface ReceiverSecrets {
  readonly url: string;
  /** Null if its format has no signature. */
  readonly secret: string | null;
  /** The secret before a rotation signs as well until an instant, ms. */
  readonly previous: { readonly secret: string; readonly until: number } | null;
}

/** The name under which a receiver's secrets are sealed. No project secret can have it. */
export const sealedName = (id: string): string => `outbound_webhook/${id}`;

export const writeReceiverSecrets = (secrets: ReceiverSecrets): string => JSON.stringify(secrets);

/** Reads what `writeReceiverSecrets` wrote, from an envelope that was opened. */
export const readReceiverSecrets = (text: string): ReceiverSecrets => JSON.parse(text) as ReceiverSecrets;

/** The secrets that sign at an instant, the newest first. */
export const signingSecrets = ({ secret, previous }: ReceiverSecrets, now: number): readonly string[] => [
  ...(secret === null ? [] : [secret]),
  ...(previous === null || previous.until <= now ? [] : [previous.secret]),
];
