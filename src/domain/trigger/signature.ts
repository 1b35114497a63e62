/**
 * Webhook signatures (spec.md 5.4, api.md 4 "Webhook"): HMAC-SHA256 over the raw bytes of the body, as 64 hexadecimal
 * digits, in `X-Platform-Signature` or otherwise `X-Hub-Signature-256`. No input from a sender makes this code throw.
 */
import { createHmac, createSecretKey, timingSafeEqual } from "node:crypto";
import type { KeyObject } from "node:crypto";
import * as Result from "effect/Result";

/** In lower case, as Node gives header names. */
export const PLATFORM_SIGNATURE_HEADER = "x-platform-signature";
export const HUB_SIGNATURE_HEADER = "x-hub-signature-256";

const PREFIX = "sha256=";
const DIGEST = /^[0-9A-Fa-f]{64}$/;

/**
 * The two headers as Node's `headers` gives them: undefined if absent. Node joins a repeated header by a comma. No
 * signature contains a comma, so a repeated header is refused (threats.md W07).
 */
export interface SignatureHeaders {
  readonly platform: string | undefined;
  readonly hub: string | undefined;
}

/**
 * Why a body is not authentic. Each reason is answered with 401. The reason helps the sender to debug and decides
 * nothing.
 */
export type SignatureRefusal = "missing" | "malformed" | "mismatched";

/**
 * The key for a secret's value, used byte for byte (threats.md W32). The cache that holds the trigger creates it once:
 * a check with the key costs half as much as one with the string.
 *
 * @returns null for an empty secret, which must never verify anything (threats.md W30).
 */
export const signatureKey = (secret: string): KeyObject | null =>
  secret === "" ? null : createSecretKey(secret, "utf8");

/** A body's signature in lower case, without the prefix: the part that a sender puts after `sha256=`. */
export const signBody = (body: Uint8Array, key: KeyObject): string =>
  createHmac("sha256", key).update(body).digest("hex");

/**
 * The 32 bytes in a header's value. Null unless the value is 64 hexadecimal digits after at most one literal `sha256=`
 * (threats.md W01 to W06).
 */
export const parseSignature = (value: string): Uint8Array | null => {
  const digest = value.startsWith(PREFIX) ? value.slice(PREFIX.length) : value;
  // `Buffer.from(…, "hex")` stops silently at the first wrong digit, so the form is checked first.
  return DIGEST.test(digest) ? Buffer.from(digest, "hex") : null;
};

/**
 * Whether a webhook is authentic. If `X-Platform-Signature` is present, it alone decides, even if it is wrong and the
 * other is right (threats.md W09). The comparison takes the same time wherever the digests differ.
 */
export const verifySignature = (
  body: Uint8Array,
  headers: SignatureHeaders,
  key: KeyObject,
): Result.Result<void, SignatureRefusal> => {
  const value = headers.platform ?? headers.hub;
  if (value === undefined) return Result.fail("missing");
  const signature = parseSignature(value);
  if (signature === null) return Result.fail("malformed");
  const expected = createHmac("sha256", key).update(body).digest();
  return timingSafeEqual(expected, signature) ? Result.succeed(undefined) : Result.fail("mismatched");
};
