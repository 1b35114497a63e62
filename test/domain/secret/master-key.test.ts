import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import {
  keyCheckText,
  keyProvedBy,
  openFormerKeys,
  sealFormerKeys,
} from "../../../src/domain/secret/master-key.ts";
import { keyCheck, NONCE_BYTES } from "../../../src/domain/secret/secret.ts";

const key = (version: number) => ({ version, bytes: new Uint8Array(randomBytes(32)) });
const nonce = () => new Uint8Array(randomBytes(NONCE_BYTES));

test("the first key is proved by the text that databases have from the beginning [S08]", () => {
  const first = key(1);
  const text = Buffer.from(keyCheck(first)).toString("base64");
  expect(keyCheckText(first)).toBe(text);
  expect(keyProvedBy(first.bytes, text)).toEqual(first);
});

test("a later key is proved with its version, and no other key or version is [S08, S09]", () => {
  const later = key(12);
  const text = keyCheckText(later);
  expect(keyProvedBy(later.bytes, text)).toEqual(later);
  expect(keyProvedBy(key(12).bytes, text)).toBeNull();
  expect(keyProvedBy(later.bytes, text.replace("12:", "13:"))).toBeNull();
  for (const wrong of ["", "12:", ":", "0:AAAA", "x", "1:2:AAAA"])
    expect(keyProvedBy(later.bytes, wrong)).toBeNull();
});

test("former keys decrypt under the key that encrypted them, and under no other [S07]", () => {
  const [current, other] = [key(3), key(3)];
  const former = [
    { ...key(1), retiredAt: 10 },
    { ...key(2), retiredAt: 20 },
  ];
  const text = sealFormerKeys(current, former, nonce);
  for (const { bytes } of former) expect(text).not.toContain(Buffer.from(bytes).toString("hex"));
  const found = openFormerKeys(current, text);
  expect(found.map(({ version, retiredAt }) => [version, retiredAt])).toEqual([
    [1, 10],
    [2, 20],
  ]);
  expect(found.map(({ bytes }) => new Uint8Array(bytes))).toEqual(former.map(({ bytes }) => bytes));
  expect(() => openFormerKeys(other, text)).toThrow("cannot be decrypted");
  const moved = text.replace('"version":1', '"version":9');
  expect(() => openFormerKeys(current, moved)).toThrow("cannot be decrypted");
});
