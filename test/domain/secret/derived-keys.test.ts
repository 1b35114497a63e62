import { hkdfSync, randomBytes } from "node:crypto";
import { expect, it } from "vitest";
import { derivedKey } from "../../../src/domain/secret/derived-keys.ts";

const master = new Uint8Array(randomBytes(32));
const DERIVATION = { salt: "salt", purpose: "purpose", bytes: 32 };

it("derives by HKDF-SHA-256, the first time and each time after it", () => {
  const expected = new Uint8Array(hkdfSync("sha256", master, "salt", "purpose", 32));
  expect(derivedKey(master, DERIVATION)).toEqual(expected);
  expect(derivedKey(master, DERIVATION)).toEqual(expected);
});

it("gives another key for another master key, salt, purpose or length, also where their texts join to the same", () => {
  const keys = [
    derivedKey(master, DERIVATION),
    derivedKey(new Uint8Array(randomBytes(32)), DERIVATION),
    derivedKey(master, { ...DERIVATION, salt: "saltp", purpose: "urpose" }),
    derivedKey(master, { ...DERIVATION, purpose: "other" }),
    derivedKey(master, { ...DERIVATION, bytes: 16 }),
  ].map((key) => Buffer.from(key).toString("hex"));
  expect(new Set(keys).size).toBe(keys.length);
});

it("keeps 1,000 keys of a master key, and derives one that has left again", () => {
  const own = new Uint8Array(randomBytes(32));
  const first = derivedKey(own, DERIVATION);
  for (let at = 1; at < 1_000; at += 1) derivedKey(own, { ...DERIVATION, purpose: `purpose ${at}` });
  expect(derivedKey(own, DERIVATION)).toBe(first);
  derivedKey(own, { ...DERIVATION, purpose: "one more" });
  const again = derivedKey(own, DERIVATION);
  expect(again).not.toBe(first);
  expect(again).toEqual(first);
});
