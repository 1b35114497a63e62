/** The signature of Standard Webhooks over id, timestamp and body, so that a receiver knows who sent a request. */
import { createHmac } from "node:crypto";

/** A fresh secret has so many random bytes. */
export const OUTBOUND_SECRET_BYTES = 32;
/** The standard's bounds of a secret, in bytes. */
const SECRET_MIN = 24;
const SECRET_MAX = 64;
const PREFIX = "whsec_";

/** @param random `OUTBOUND_SECRET_BYTES` bytes from a cryptographic source. */
export const makeOutboundSecret = (random: Uint8Array): string =>
  `${PREFIX}${Buffer.from(random).toString("base64")}`;

/** The bytes of a secret `whsec_<base64 of 24 to 64 bytes>`. Null for any other text. */
const secretBytes = (secret: string): Buffer | null => {
  if (!secret.startsWith(PREFIX)) return null;
  const text = secret.slice(PREFIX.length);
  const bytes = Buffer.from(text, "base64");
  const isExact = bytes.toString("base64") === text;
  return isExact && bytes.length >= SECRET_MIN && bytes.length <= SECRET_MAX ? bytes : null;
};

/** Null for a valid secret, otherwise a sentence for the person who gave it. */
export const outboundSecretFault = (secret: string): string | null =>
  secretBytes(secret) === null
    ? `A signing secret is ${PREFIX} and the base64 form of ${SECRET_MIN} to ${SECRET_MAX} bytes. Leave it out, and the service makes one.`
    : null;

export interface Signed {
  readonly id: string;
  /** Seconds since 1970. */
  readonly timestamp: number;
  readonly body: string;
}

/**
 * The request's three headers. With several secrets there are several signatures, and a receiver accepts any of them.
 *
 * @param secrets valid ones, the newest first.
 * @throws RangeError for a secret that is not valid: a defect of the caller.
 */
export const signatureHeaders = (
  secrets: readonly string[],
  { id, timestamp, body }: Signed,
): Readonly<Record<string, string>> => {
  const signatures = secrets.map((secret) => {
    const key = secretBytes(secret);
    if (key === null) throw new RangeError("a signing secret is not valid");
    return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`;
  });
  return {
    "webhook-id": id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": signatures.join(" "),
  };
};
