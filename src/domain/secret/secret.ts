/**
 * Project secrets: which names and values are allowed (api.md 5, spec.md 2.5), and how values are sealed at rest.
 *
 * Sealing: AES-256-GCM with a key per project, derived from a master key by HKDF-SHA-256. Project, name and version are
 * authenticated with the value, so that a sealed value opens only in its own row (threats.md S07). The envelope names
 * the version of its master key, so that everything stays readable if a rotation stops half way (S09):
 *
 *   1 byte format | 4 bytes version of the master key | 12 bytes nonce | 16 bytes tag | ciphertext
 */
import { createCipheriv, createDecipheriv, createHmac, timingSafeEqual } from "node:crypto";
import * as Result from "effect/Result";
import { derivedKey } from "./derived-keys.ts";

/** The longest name, in characters. A B-tree row ends at about 2.7 kB (threats.md M17). */
export const SECRET_NAME_LIMIT = 2048;
/** The largest value, in bytes of UTF-8. */
export const SECRET_VALUE_LIMIT = 64 * 1024;
/** The largest set of a project: names and values together, in bytes (threats.md S04). */
export const SECRET_SET_LIMIT = 1024 * 1024;
/** Shorter values, in bytes of UTF-8, are not masked in logs: they occur in ordinary text by chance. */
const MASKED_FROM_BYTES = 6;
/** The longest comma-separated list of all names. It is one environment string, PLATFORM_PROJECT_SECRET_NAMES. */
export const SECRET_NAMES_LIMIT = 96 * 1024;

/** A refused secret in the API's terms: `code` for programs, `message` for people. */
export interface SecretIssue {
  readonly code: "reserved_name" | "unsafe_name" | "invalid_name" | "invalid_value" | "secrets_too_large";
  readonly message: string;
}

const NAME = /^[A-Z_][A-Z0-9_]*$/;
/**
 * Names that the sandbox sets itself, or that influence the programs which start the agent and drop its privileges.
 * LANG is allowed: a secret of that name overrides the sandbox's.
 */
const UNSAFE_NAME = new RegExp(
  `^(?:${[
    "PATH|HOME|PWD|OLDPWD|SHELL|ENV|BASH_ENV|IFS|NODE_OPTIONS|AGENT_CONFIG_DIR",
    "LD_.*|LIBMOUNT_.*|GCONV_PATH|GLIBC_TUNABLES|LOCPATH",
    "(?:HTTP|HTTPS|ALL|NO)_PROXY",
    "OPENCODE_CONFIG(?:_.*)?|OPENCODE_DISABLE_.*",
    // Variables that point git to another repository, configuration or program than the sandbox's. Other git variables
    // are allowed.
    "GIT_(?:DIR|WORK_TREE|COMMON_DIR|INDEX_FILE|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|NAMESPACE)",
    "GIT_(?:SHALLOW_FILE|GRAFT_FILE|QUARANTINE_PATH|CEILING_DIRECTORIES|DISCOVERY_ACROSS_FILESYSTEM)",
    "GIT_(?:CONFIG(?:_.*)?|EXEC_PATH|TEMPLATE_DIR|TERMINAL_PROMPT|ASKPASS|ALLOW_PROTOCOL|SSL_NO_VERIFY)",
  ].join("|")})$`,
  "i",
);

/** @returns null for a valid name. Reserved and unsafe names are refused in any letter case (threats.md S01). */
export const checkSecretName = (name: string): SecretIssue | null => {
  if (/^platform_/i.test(name)) {
    return {
      code: "reserved_name",
      message: "Names that begin with PLATFORM_ are reserved for the platform.",
    };
  }
  if (name.length <= SECRET_NAME_LIMIT && UNSAFE_NAME.test(name)) {
    return {
      code: "unsafe_name",
      message: `${name} cannot be the name of a secret, because the sandbox or its programs use it. Choose another name.`,
    };
  }
  if (name.length > SECRET_NAME_LIMIT || !NAME.test(name)) {
    return {
      code: "invalid_name",
      message: `A secret name must have 1 to ${SECRET_NAME_LIMIT} characters of A-Z, 0-9 and _, and must not begin with a digit.`,
    };
  }
  return null;
};

/** @returns null for a valid value: 1 byte to 64 KiB of text without NUL, kept byte for byte (S04). */
export const checkSecretValue = (value: string): SecretIssue | null => {
  const bytes = Buffer.byteLength(value, "utf8");
  if (bytes === 0) return { code: "invalid_value", message: "The value of a secret must not be empty." };
  if (bytes > SECRET_VALUE_LIMIT) {
    return {
      code: "invalid_value",
      message: `The value of a secret must have at most ${SECRET_VALUE_LIMIT} bytes.`,
    };
  }
  if (value.includes("\0")) {
    return {
      code: "invalid_value",
      message: "The value of a secret must not contain NUL characters.",
    };
  }
  if (!value.isWellFormed()) {
    return {
      code: "invalid_value",
      message: "The value of a secret must be valid Unicode text. This one contains an unpaired surrogate.",
    };
  }
  return null;
};

const EDGE_BEFORE = /^[\s\uFEFF]+/u;
const EDGE_AFTER = /[\s\uFEFF]+$/u;
const LINE_END = /[\n\r\u0085\u2028\u2029]/u;
/** Characters without width, those that turn the direction of a text, and control characters but tabs and line ends. */
const NO_WIDTH = /[\u00AD\u200B-\u200F\u202A-\u202E\u2060-\u2069\uFEFF]/gu;
const CONTROL = /(?![\t\n\r\u0085])\p{Cc}/gu;

/** The invisible characters of a value, in words that follow "the value". A line end inside a value is no surprise: a key has many. */
export const invisibleCharacters = (value: string): readonly string[] => {
  const before = EDGE_BEFORE.exec(value)?.[0] ?? "";
  const after = EDGE_AFTER.exec(value)?.[0] ?? "";
  const inner = value.replace(EDGE_BEFORE, "");
  const notes: readonly (readonly [boolean, string])[] = [
    [before.includes("\uFEFF"), "begins with a byte order mark"],
    [LINE_END.test(before), "begins with a line end"],
    [/[^\S\n\r\u0085\u2028\u2029\uFEFF]/u.test(before), "begins with a blank"],
    [LINE_END.test(after), "ends with a line end"],
    [/[^\S\n\r\u0085\u2028\u2029\uFEFF]/u.test(after), "ends with a blank"],
    [inner.search(NO_WIDTH) !== -1, "has characters without width"],
    [inner.search(CONTROL) !== -1, "has control characters"],
  ];
  return notes.flatMap(([isSo, note]) => (isSo ? [note] : []));
};

/** The value as a person sees it. */
export const visibleCharacters = (value: string): string =>
  value.replace(NO_WIDTH, "").replace(CONTROL, "").trim();

/** Whether a value of this many bytes is masked in logs and error texts. */
export const isMasked = (valueBytes: number): boolean => valueBytes >= MASKED_FROM_BYTES;

/**
 * Whether a project's whole set after a write still fits an environment.
 *
 * @param secrets every secret of the project with the bytes of its value.
 */
export const checkSecretSet = (
  secrets: readonly { readonly name: string; readonly valueBytes: number }[],
): SecretIssue | null => {
  const names = secrets.reduce((total, { name }) => total + name.length + 1, 0);
  const values = secrets.reduce((total, { valueBytes }) => total + valueBytes, 0);
  if (names > SECRET_NAMES_LIMIT) {
    return {
      code: "secrets_too_large",
      message: `The names of a project's secrets can have at most ${SECRET_NAMES_LIMIT} bytes in total.`,
    };
  }
  if (names + values > SECRET_SET_LIMIT) {
    return {
      code: "secrets_too_large",
      message: `A project's secrets can have at most ${SECRET_SET_LIMIT} bytes in total.`,
    };
  }
  return null;
};

/** A key that is kept outside the database, 32 bytes. Its number never names another key. */
export interface MasterKey {
  readonly version: number;
  readonly bytes: Uint8Array;
}

/** The key that seals, and the keys that may still have to open values from before a rotation. */
export interface Keyring {
  readonly current: MasterKey;
  readonly former: readonly MasterKey[];
}

/** The row of a sealed value. `version` counts the writes of one secret. */
export interface SecretPlace {
  readonly projectId: string;
  readonly name: string;
  readonly version: number;
}

/** `unknown_key`: sealed under a master key that is not in the ring. `corrupt`: changed, or from another row. */
export type UnsealRefusal = "unknown_key" | "corrupt";

export const MASTER_KEY_BYTES = 32;
export const NONCE_BYTES = 12;
const FORMAT = 1;
const TAG_BYTES = 16;
const HEADER_BYTES = 5;
const OVERHEAD_BYTES = HEADER_BYTES + NONCE_BYTES + TAG_BYTES;

/** Reads a master key from text: 64 hexadecimal digits, or base64 of 32 bytes. Null for anything else. */
export const parseMasterKey = (text: string): Uint8Array | null => {
  if (/^[0-9A-Fa-f]{64}$/.test(text)) return Buffer.from(text, "hex");
  return /^[A-Za-z0-9+/]{43}=$/.test(text) ? Buffer.from(text, "base64") : null;
};

/**
 * Seals a value into its row.
 *
 * @param secret the value and 12 random bytes that were never used before.
 */
export const sealSecret = (
  keyring: Keyring,
  place: SecretPlace,
  secret: { readonly value: string; readonly nonce: Uint8Array },
): Uint8Array => {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt8(FORMAT, 0);
  header.writeUInt32BE(keyring.current.version, 1);
  const cipher = createCipheriv("aes-256-gcm", projectKey(keyring.current, place.projectId), secret.nonce);
  cipher.setAAD(additionalData(header, place));
  const ciphertext = Buffer.concat([cipher.update(secret.value, "utf8"), cipher.final()]);
  return Buffer.concat([header, secret.nonce, cipher.getAuthTag(), ciphertext]);
};

/** Opens a sealed value of this row with the key of the ring that sealed it. */
export const unsealSecret = (
  keyring: Keyring,
  place: SecretPlace,
  envelope: Uint8Array,
): Result.Result<string, UnsealRefusal> => {
  const version = sealedKeyVersion(envelope);
  if (version === null) return Result.fail("corrupt");
  const master = [keyring.current, ...keyring.former].find((key) => key.version === version);
  if (master === undefined) return Result.fail("unknown_key");
  const header = envelope.subarray(0, HEADER_BYTES);
  const nonce = envelope.subarray(HEADER_BYTES, HEADER_BYTES + NONCE_BYTES);
  const tag = envelope.subarray(HEADER_BYTES + NONCE_BYTES, OVERHEAD_BYTES);
  const decipher = createDecipheriv("aes-256-gcm", projectKey(master, place.projectId), nonce, {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(additionalData(header, place));
  decipher.setAuthTag(tag);
  try {
    const value = Buffer.concat([decipher.update(envelope.subarray(OVERHEAD_BYTES)), decipher.final()]);
    return Result.succeed(value.toString("utf8"));
  } catch {
    return Result.fail("corrupt");
  }
};

/**
 * The version of an envelope's master key, so that a rotation finds the values that are left. Null if the bytes are not
 * an envelope.
 */
export const sealedKeyVersion = (envelope: Uint8Array): number | null =>
  envelope.length >= OVERHEAD_BYTES && envelope[0] === FORMAT ? Buffer.from(envelope).readUInt32BE(1) : null;

/** The size of the value inside an envelope, for `checkSecretSet`. The cipher keeps the length. */
export const sealedValueBytes = (envelope: Uint8Array): number =>
  Math.max(0, envelope.length - OVERHEAD_BYTES);

/** A value that identifies a master key without revealing it. The database keeps it from the first start on. */
export const keyCheck = (key: MasterKey): Uint8Array =>
  createHmac("sha256", derive(key, "key check")).update(String(key.version)).digest();

/** Whether the data beside `check` was sealed under this key. If not, the service must not start (threats.md S08). */
export const matchesKeyCheck = (key: MasterKey, check: Uint8Array): boolean => {
  const expected = keyCheck(key);
  return check.length === expected.length && timingSafeEqual(expected, check);
};

const projectKey = (master: MasterKey, projectId: string): Uint8Array =>
  derive(master, `project ${projectId}`);

const derive = (master: MasterKey, purpose: string): Uint8Array => {
  if (master.bytes.length !== MASTER_KEY_BYTES) {
    throw new RangeError(`a master key has ${MASTER_KEY_BYTES} bytes`);
  }
  return derivedKey(master.bytes, { salt: "platform secrets", purpose, bytes: MASTER_KEY_BYTES });
};

/** JSON separates the parts unambiguously, whatever they contain. */
const additionalData = (header: Uint8Array, place: SecretPlace): Uint8Array =>
  Buffer.concat([header, Buffer.from(JSON.stringify([place.projectId, place.name, place.version]))]);
