/**
 * Webhook signatures (spec.md 5.4, api.md 4 "Webhook"): HMAC-SHA256 over the raw bytes of the body, as 64 hexadecimal
 * digits, in `X-Platform-Signature` or else `X-Hub-Signature-256`. Nothing here throws on what a sender wrote.
 */
import { createHmac, createSecretKey, timingSafeEqual } from "node:crypto";
import type { KeyObject } from "node:crypto";
import * as Result from "effect/Result";

/** Lower case, as Node hands out header names. */
export const PLATFORM_SIGNATURE_HEADER = "x-platform-signature";
export const HUB_SIGNATURE_HEADER = "x-hub-signature-256";

const PREFIX = "sha256=";
const DIGEST = /^[0-9A-Fa-f]{64}$/;

/**
 * The two headers as Node's `headers` gives them: undefined where absent, a repeated one joined by a comma, which no
 * signature contains, so that it is refused (threats.md W07).
 */
export interface SignatureHeaders {
  readonly platform: string | undefined;
  readonly hub: string | undefined;
}

/** Why a body is not authentic. All of them are 401; the reason is for the sender's person, not for a decision. */
export type SignatureRefusal = "missing" | "malformed" | "mismatched";

/**
 * The key for a secret's value, used byte for byte (threats.md W32). Made once by whoever keeps the trigger in memory:
 * with it a check costs half of what it costs with the string.
 *
 * @returns null for an empty secret, which must never verify anything (threats.md W30).
 */
export const signatureKey = (secret: string): KeyObject | null =>
  secret === "" ? null : createSecretKey(secret, "utf8");

/** A body's signature, without prefix, in lower case: what a sender puts behind `sha256=`. */
export const signBody = (body: Uint8Array, key: KeyObject): string =>
  createHmac("sha256", key).update(body).digest("hex");

/**
 * The 32 bytes that a header's value names; null for anything but 64 hexadecimal digits after at most one literal
 * `sha256=` (threats.md W01 to W06).
 */
export const parseSignature = (value: string): Uint8Array | null => {
  const digest = value.startsWith(PREFIX) ? value.slice(PREFIX.length) : value;
  // `Buffer.from(…, "hex")` stops in silence at the first wrong digit, so the form is checked before it.
  return DIGEST.test(digest) ? Buffer.from(digest, "hex") : null;
};

/**
 * Whether a webhook is authentic. `X-Platform-Signature` alone decides where it is present, also when it is wrong and
 * the other is right (threats.md W09). The comparison takes the same time wherever the digests differ.
 */
export const verifySignature = (
  body: Uint8Array,
  headers: SignatureHeaders,
  key: KeyObject,
): Result.Result<void, SignatureRefusal> => {
  const value = headers.platform ?? headers.hub;
  if (value === undefined) return Result.fail("missing");
  const given = parseSignature(value);
  if (given === null) return Result.fail("malformed");
  const expected = createHmac("sha256", key).update(body).digest();
  return timingSafeEqual(expected, given) ? Result.succeed(undefined) : Result.fail("mismatched");
};
