/**
 * Identifiers and tokens (api.md 1): lower-case UUIDs (version 7 if the service makes them), and bearer tokens with a
 * prefix that secret scanners find (threats.md T04). Pure: the caller provides the instant and the random bytes.
 */
import { createHash, hash } from "node:crypto";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const NIL_UUID = "00000000-0000-0000-0000-000000000000";

/** A UUID v7 stores its instant in 48 bits of milliseconds. */
const LAST_UUID_INSTANT = 2 ** 48 - 1;
const UUID_BYTES = 16;

/** 16 bytes in the text form of a UUID. */
const hyphenate = (bytes: Buffer): string => {
  const hex = bytes.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
};

/**
 * A version 7 UUID (RFC 9562, 5.7): sorts by its instant.
 *
 * @param atMs milliseconds since 1970, whole, 0 to 2^48 - 1.
 * @param random 16 random bytes; the instant replaces the first six.
 * @throws RangeError if an argument is out of range: a defect of the caller.
 */
export const uuidV7 = (atMs: number, random: Uint8Array): string => {
  if (!Number.isInteger(atMs) || atMs < 0 || atMs > LAST_UUID_INSTANT) {
    throw new RangeError(`a UUID v7 cannot hold the instant ${atMs}`);
  }
  if (random.length !== UUID_BYTES) throw new RangeError(`a UUID needs ${UUID_BYTES} random bytes`);
  const bytes = Buffer.from(random);
  bytes.writeUIntBE(atMs, 0, 6);
  bytes.writeUInt8(0x70 | (bytes.readUInt8(6) & 0x0f), 6);
  bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8);
  return hyphenate(bytes);
};

/** The instant in a version 7 UUID, ms since the epoch; null for any other. */
export const uuidInstant = (id: string): number | null =>
  /^[0-9a-f]{8}-[0-9a-f]{4}-7/.test(id) ? Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) : null;

/**
 * Reads an id from a request. Only the canonical spelling counts (threats.md W25): 36 characters, lower case, and not
 * the nil UUID, which names nothing. Any version and variant is valid: an id is compared, never interpreted.
 *
 * @returns the id itself, or null if the text is not an id.
 */
export const parseUuid = (text: string): string | null =>
  UUID.test(text) && text !== NIL_UUID ? text : null;

/** `pat`: personal access token; `sbx`: sandbox service key, the value of PLATFORM_TOKEN (spec.md 5.2). */
export type TokenKind = "pat" | "sbx";

const TOKEN = /^platform_(pat|sbx)_[A-Za-z0-9_-]{27,128}$/;
/** api.md 1: at least 160 random bits. */
export const MIN_TOKEN_BYTES = 20;
/** How many bytes callers pass to `makeToken`. */
export const TOKEN_BYTES = 32;
const MAX_TOKEN_BYTES = 96;

/**
 * A bearer token: `platform_<kind>_<base64url of the bytes>`.
 *
 * @param random 20 to 96 bytes from a cryptographic source; the usual number is 32.
 * @throws RangeError for too few or too many bytes: a defect of the caller.
 */
export const makeToken = (kind: TokenKind, random: Uint8Array): string => {
  if (random.length < MIN_TOKEN_BYTES || random.length > MAX_TOKEN_BYTES) {
    throw new RangeError(`a token needs ${MIN_TOKEN_BYTES} to ${MAX_TOKEN_BYTES} random bytes`);
  }
  return `platform_${kind}_${Buffer.from(random).toString("base64url")}`;
};

/** A token's kind by its form. Null if the text is not one of our tokens. Does not check whether the token is valid. */
export const tokenKind = (text: string): TokenKind | null => {
  const kind = TOKEN.exec(text)?.[1];
  return kind === "pat" || kind === "sbx" ? kind : null;
};

/**
 * The stored form of a token, also used to look it up: lower-case hex SHA-256. A token has at least 160 random bits, so
 * a plain hash cannot be reversed by guessing, and the timing of an index lookup reveals nothing useful (threats.md
 * T04).
 */
export const tokenHash = (token: string): string => hash("sha256", token, "hex");

/**
 * A version 8 UUID (RFC 9562, 5.8) that follows from texts: the same texts give the same id. Two lists of texts give the
 * same id with a chance of about 2^-122.
 */
export const derivedUuid = (...texts: readonly string[]): string => {
  const bytes = createHash("sha256").update(JSON.stringify(texts), "utf8").digest().subarray(0, UUID_BYTES);
  bytes.writeUInt8(0x80 | (bytes.readUInt8(6) & 0x0f), 6);
  bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8);
  return hyphenate(bytes);
};
