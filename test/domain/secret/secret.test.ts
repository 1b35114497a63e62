import * as fc from "fast-check";
import * as Result from "effect/Result";
import { expect, test } from "vitest";
import {
  SECRET_NAMES_LIMIT,
  SECRET_SET_LIMIT,
  SECRET_VALUE_LIMIT,
  checkSecretName,
  checkSecretSet,
  checkSecretValue,
  isMasked,
  keyCheck,
  matchesKeyCheck,
  parseMasterKey,
  sealSecret,
  sealedKeyVersion,
  sealedValueBytes,
  visibleCharacters,
  unsealSecret,
  invisibleCharacters,
} from "../../../src/domain/secret/secret.ts";
import type { Keyring, MasterKey, SecretPlace } from "../../../src/domain/secret/secret.ts";

const seed = 20261120;

test.each([
  "A",
  "_",
  "ANTHROPIC_API_KEY",
  "_X9",
  "PLATFORM",
  "PLATFORMX",
  "MY_PLATFORM_X",
  "PATHS",
  "LD",
  "GIT_AUTHOR_NAME",
  "GIT_TOKEN",
  "GIT_SSH_COMMAND",
  "GITHUB_TOKEN",
  "LANG",
  "LC_ALL",
  "TMPDIR",
  "OPENCODE_API_KEY",
  "MY_HTTP_PROXY",
])("accepts the name %s", (name) => {
  expect(checkSecretName(name)).toBeNull();
});

test.each([
  ["PLATFORM_X", "reserved_name"],
  ["PLATFORM_", "reserved_name"],
  ["platform_x", "reserved_name"],
  ["Platform_x", "reserved_name"],
  ["pLATFORM_TOKEN", "reserved_name"],
  [" PLATFORM_X", "invalid_name"],
  ["ＰＬＡＴＦＯＲＭ_X", "invalid_name"],
  ["PLATſORM_X", "invalid_name"],
  ["PLATFORM\u200b_X", "invalid_name"],
  ["lower", "invalid_name"],
  ["1X", "invalid_name"],
])("refuses the name %j as %s [S01]", (name, code) => {
  expect(checkSecretName(name)?.code).toBe(code);
});

test("refuses a name with an equals sign [S02]", () => {
  expect(checkSecretName("A=B")?.code).toBe("invalid_name");
});

test.each(["", "A\nB", "A\n", "A,B", "A\0B", "A B", "A-B", "A".repeat(2049)])(
  "refuses the name %j [S03]",
  (name) => {
    expect(checkSecretName(name)?.code).toBe("invalid_name");
  },
);

test.each([5, 6])("reports whether a value of %i bytes can be masked", (bytes) => {
  expect(isMasked(bytes)).toBe(bytes === 6);
});

test.each([
  "AGENT_CONFIG_DIR",
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "NO_PROXY",
  "ALL_PROXY",
  "http_proxy",
  "No_Proxy",
  "GIT_DIR",
  "GIT_WORK_TREE",
  "GIT_CONFIG_SYSTEM",
  "GIT_CONFIG_COUNT",
  "GIT_TERMINAL_PROMPT",
  "GIT_ASKPASS",
  "GIT_EXEC_PATH",
  "OPENCODE_CONFIG",
  "OPENCODE_CONFIG_CONTENT",
  "OPENCODE_DISABLE_AUTOUPDATE",
  "LIBMOUNT_FORCE_MOUNT2",
  "GCONV_PATH",
  "PWD",
  "PATH",
  "HOME",
  "LD_PRELOAD",
  "LD_LIBRARY_PATH",
  "LD_",
  "NODE_OPTIONS",
  "BASH_ENV",
  "ENV",
  "SHELL",
  "IFS",
])("refuses the unsafe name %s [S05]", (name) => {
  expect(checkSecretName(name)?.code).toBe("unsafe_name");
});

test.each([
  "x",
  "line\nline",
  "Zoë 🎉",
  " ",
  "\t",
  "a".repeat(SECRET_VALUE_LIMIT),
  "é".repeat(SECRET_VALUE_LIMIT / 2),
])("accepts values unchanged [S04]", (value) => {
  expect(checkSecretValue(value)).toBeNull();
});

test.each([
  ["empty", ""],
  ["with a NUL", "a\0b"],
  ["one byte over 64 KiB", "a".repeat(SECRET_VALUE_LIMIT + 1)],
  ["over 64 KiB in bytes, not in characters", "é".repeat(SECRET_VALUE_LIMIT / 2 + 1)],
  ["with half a surrogate pair", "a\ud83d"],
])("refuses a value that is %s [S04]", (_what, value) => {
  expect(checkSecretValue(value)?.code).toBe("invalid_value");
});

const setOf = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ name: `K${index}`, valueBytes: SECRET_VALUE_LIMIT }));

test("refuses a set over 1 MiB in total [S04]", () => {
  expect(checkSecretSet([])).toBeNull();
  expect(checkSecretSet(setOf(SECRET_SET_LIMIT / SECRET_VALUE_LIMIT - 1))).toBeNull();
  expect(checkSecretSet(setOf(SECRET_SET_LIMIT / SECRET_VALUE_LIMIT))?.code).toBe("secrets_too_large");
});

test("refuses names that together do not fit one environment string [S04]", () => {
  const names = Array.from({ length: SECRET_NAMES_LIMIT / 2048 }, () => ({
    name: "N".repeat(2047),
    valueBytes: 1,
  }));
  expect(checkSecretSet(names)).toBeNull();
  expect(checkSecretSet([...names, { name: "N", valueBytes: 1 }])?.code).toBe("secrets_too_large");
});

// Sealing -------------------------------------------------------------------------------------------------------------

const masterKey = (version: number, fill: number): MasterKey => ({
  version,
  bytes: new Uint8Array(32).fill(fill),
});
const one = masterKey(1, 1);
const two = masterKey(2, 2);
const ring: Keyring = { current: one, former: [] };
const place: SecretPlace = { projectId: "01930f1e-0000-7000-8000-000000000001", name: "API_KEY", version: 1 };
const nonce = new Uint8Array(12).fill(7);
const sealed = sealSecret(ring, place, { value: "canary-value", nonce });

test("decrypts what it encrypted, byte for byte", () => {
  const text = fc.string({ unit: "grapheme" });
  fc.assert(
    fc.property(text, fc.uint8Array({ minLength: 12, maxLength: 12 }), (value, random) => {
      const envelope = sealSecret(ring, place, { value, nonce: random });
      expect(unsealSecret(ring, place, envelope)).toEqual(Result.succeed(value));
      expect(sealedValueBytes(envelope)).toBe(Buffer.byteLength(value));
    }),
    { seed },
  );
});

test("an envelope contains no part of its value in plain text [S10]", () => {
  expect(Buffer.from(sealed).includes("canary")).toBe(false);
});

test("the same value encrypts differently under another nonce", () => {
  const other = sealSecret(ring, place, { value: "canary-value", nonce: new Uint8Array(12).fill(8) });
  expect(Buffer.from(other.subarray(33)).equals(Buffer.from(sealed.subarray(33)))).toBe(false);
});

test.each([
  ["another secret", { ...place, name: "API_KEZ" }],
  ["another project", { ...place, projectId: "01930f1e-0000-7000-8000-000000000002" }],
  ["an older version", { ...place, version: 0 }],
  ["parts that join to the same text", { ...place, name: 'API_KEY",1' }],
])("a value copied into the row of %s does not decrypt [S07]", (_what, other) => {
  expect(unsealSecret(ring, other, sealed)).toEqual(Result.fail("corrupt"));
});

test("an envelope with any flipped bit does not decrypt [S08]", () => {
  for (let bit = 0; bit < sealed.length * 8; bit += 1) {
    const flipped = Buffer.from(sealed);
    flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    expect(Result.isFailure(unsealSecret({ current: one, former: [two] }, place, flipped))).toBe(true);
  }
});

test("a truncated envelope, and one with extra bytes, does not decrypt [S08]", () => {
  for (let length = 0; length < sealed.length; length += 1) {
    expect(Result.isFailure(unsealSecret(ring, place, sealed.subarray(0, length)))).toBe(true);
  }
  expect(unsealSecret(ring, place, Buffer.concat([sealed, Buffer.alloc(1)]))).toEqual(Result.fail("corrupt"));
});

test("a wrong master key decrypts nothing and fails the key check [S08]", () => {
  const wrong = masterKey(1, 9);
  expect(unsealSecret({ current: wrong, former: [] }, place, sealed)).toEqual(Result.fail("corrupt"));
  expect(matchesKeyCheck(wrong, keyCheck(one))).toBe(false);
  expect(matchesKeyCheck(one, keyCheck(one))).toBe(true);
  expect(matchesKeyCheck(one, keyCheck(one).subarray(1))).toBe(false);
  expect(matchesKeyCheck({ ...one, version: 2 }, keyCheck(one))).toBe(false);
});

test("during a rotation values of both master keys decrypt, and each names its own [S09]", () => {
  const rotating: Keyring = { current: two, former: [one] };
  const renewed = sealSecret(rotating, place, { value: "canary-value", nonce });
  expect([sealedKeyVersion(sealed), sealedKeyVersion(renewed)]).toEqual([1, 2]);
  expect(unsealSecret(rotating, place, sealed)).toEqual(Result.succeed("canary-value"));
  expect(unsealSecret(rotating, place, renewed)).toEqual(Result.succeed("canary-value"));
  expect(unsealSecret(ring, place, renewed)).toEqual(Result.fail("unknown_key"));
});

test("reads a master key in hex and in base64, and no other text", () => {
  const bytes = Buffer.from(Array.from({ length: 32 }, (_, index) => index * 7));
  expect(parseMasterKey(bytes.toString("hex"))).toEqual(bytes);
  expect(parseMasterKey(bytes.toString("hex").toUpperCase())).toEqual(bytes);
  expect(parseMasterKey(bytes.toString("base64"))).toEqual(bytes);
  for (const text of [
    "",
    "secret",
    bytes.toString("hex").slice(2),
    `${bytes.toString("hex")}\n`,
    bytes.toString("base64url"),
  ]) {
    expect(parseMasterKey(text)).toBeNull();
  }
});

test("a master key of another length is a defect", () => {
  const short: Keyring = { current: { version: 1, bytes: new Uint8Array(16) }, former: [] };
  expect(() => sealSecret(short, place, { value: "x", nonce })).toThrow(RangeError);
});

test.each([
  ["s\n", ["ends with a line end"]],
  ["s\r\n", ["ends with a line end"]],
  ["s\r", ["ends with a line end"]],
  ["\uFEFFs", ["begins with a byte order mark"]],
  [" s", ["begins with a blank"]],
  ["s\u00A0", ["ends with a blank"]],
  ["\ts \n", ["begins with a blank", "ends with a line end", "ends with a blank"]],
  ["a\u200Bb", ["has characters without width"]],
  ["a\u001Bb", ["has control characters"]],
  ["a\nb c\td", []],
  ["", []],
])("the invisible characters of the value %j have words", (value, notes) => {
  expect(invisibleCharacters(value)).toEqual(notes);
  expect(invisibleCharacters(visibleCharacters(value))).toEqual([]);
});
