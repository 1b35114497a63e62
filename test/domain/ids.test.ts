import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  MIN_TOKEN_BYTES,
  TOKEN_BYTES,
  derivedUuid,
  makeToken,
  parseUuid,
  tokenHash,
  tokenKind,
  uuidV7,
} from "../../src/domain/ids.ts";

const seed = 20261120;
const bytes = (length: number): fc.Arbitrary<Uint8Array> =>
  fc.uint8Array({ minLength: length, maxLength: length });

test("lays out a UUID like RFC 9562's example of version 7", () => {
  const random = Buffer.from("0000000000000cc318c4dc0c0c07398f", "hex");
  expect(uuidV7(0x017f22e279b0, random)).toBe("017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
});

test("makes UUIDs that are canonical, carry version and variant, and sort by their instant", () => {
  const at = fc.integer({ min: 0, max: 2 ** 48 - 1 });
  fc.assert(
    fc.property(at, at, bytes(16), bytes(16), (a, b, randomA, randomB) => {
      const [one, two] = [uuidV7(a, randomA), uuidV7(b, randomB)];
      expect(parseUuid(one)).toBe(one);
      expect(one).toMatch(/^.{14}7.{4}[89ab]/);
      if (a < b) expect(one < two).toBe(true);
    }),
    { seed },
  );
});

test.each([-1, 0.5, Number.NaN, 2 ** 48])("refuses to make a UUID of the instant %s", (at) => {
  expect(() => uuidV7(at, new Uint8Array(16))).toThrow(RangeError);
});

test("refuses to make a UUID of too few random bytes", () => {
  expect(() => uuidV7(0, new Uint8Array(15))).toThrow(RangeError);
});

const id = "01930f1e-2b3c-7d4e-8f5a-6b7c8d9e0f1a";

test("reads a lower-case UUID of any version", () => {
  expect(parseUuid(id)).toBe(id);
  expect(parseUuid("f47ac10b-58cc-4372-a567-0e02b2c3d479")).toBe("f47ac10b-58cc-4372-a567-0e02b2c3d479");
});

test.each([
  ["empty", ""],
  ["no UUID", "nope"],
  ["upper case", id.toUpperCase()],
  ["one upper-case digit", id.replace("a", "A")],
  ["braces", `{${id}}`],
  ["urn", `urn:uuid:${id}`],
  ["nil", "00000000-0000-0000-0000-000000000000"],
  ["37 characters", `${id}0`],
  ["35 characters", id.slice(0, -1)],
  ["no hyphens", id.replaceAll("-", "")],
  ["hyphens elsewhere", `${id.slice(0, 7)}-${id.slice(7, 8)}${id.slice(9)}`],
  ["a letter beyond f", id.replace("a", "g")],
  ["a trailing newline", `${id}\n`],
  ["a leading space", ` ${id}`],
  ["full-width digits", id.replace("0", "０")],
  ["a path upwards", ".."],
  ["an escaped path upwards", "%2e%2e"],
  ["an escaped slash", "a%2fb"],
  ["a twice escaped slash", "%252f"],
  ["an escaped NUL", "%00"],
  ["an escaped byte that is no text", "%ff"],
  ["a broken escape", "%E0%A4%A"],
])("refuses an id that is %s [W25]", (_what, text) => {
  expect(parseUuid(text)).toBeNull();
});

test("makes tokens with a prefix that scanners recognise [T04]", () => {
  fc.assert(
    fc.property(
      fc.constantFrom("pat" as const, "sbx" as const),
      fc.uint8Array({ minLength: MIN_TOKEN_BYTES, maxLength: 96 }),
      (kind, random) => {
        const token = makeToken(kind, random);
        expect(token.startsWith(`platform_${kind}_`)).toBe(true);
        expect(tokenKind(token)).toBe(kind);
        expect(Buffer.from(token.slice("platform_pat_".length), "base64url")).toEqual(Buffer.from(random));
      },
    ),
    { seed },
  );
});

test("refuses to make a token of fewer than 160 random bits [T04]", () => {
  expect(() => makeToken("pat", new Uint8Array(19))).toThrow(RangeError);
  expect(makeToken("pat", new Uint8Array(TOKEN_BYTES))).toHaveLength("platform_pat_".length + 43);
});

test.each([
  "",
  "platform_pat_",
  "platform_pat_short",
  `platform_xyz_${"a".repeat(43)}`,
  `PLATFORM_PAT_${"a".repeat(43)}`,
  `platform_pat_${"a".repeat(42)}\n`,
  `platform_pat_${"a".repeat(42)}=`,
  `platform_pat_${"a".repeat(42)}é`,
  `platform_pat_${"a".repeat(129)}`,
  `xplatform_pat_${"a".repeat(43)}`,
])("finds no token in %j", (text) => {
  expect(tokenKind(text)).toBeNull();
});

test("hashes a token with SHA-256, in lower-case hex [T04]", () => {
  expect(tokenHash("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
});

test("derives an id from texts: the same for the same ones, another one for any other", () => {
  const derived = derivedUuid("session", "native");
  // RFC 9562, 5.8: version 8, and the variant.
  expect(derived).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(parseUuid(derived)).toBe(derived);
  expect(derivedUuid("session", "native")).toBe(derived);
  const others = [
    ["session"],
    ["native", "session"],
    ["sessionnative"],
    ["session", "native", ""],
    ["session,native"],
  ];
  expect(new Set([derived, ...others.map((texts) => derivedUuid(...texts))]).size).toBe(others.length + 1);
});
