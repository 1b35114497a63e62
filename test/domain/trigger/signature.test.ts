import { createHmac } from "node:crypto";
import * as fc from "fast-check";
import * as Result from "effect/Result";
import { expect, test } from "vitest";
import {
  parseSignature,
  signBody,
  signatureKey,
  verifySignature,
} from "../../../src/domain/trigger/signature.ts";

const secret = "It's a Secret to Everybody";
const body = Buffer.from("Hello, World!");
/** GitHub's own published example for this secret and body. */
const digest = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

const keyOf = (text: string) => {
  const key = signatureKey(text);
  if (key === null) throw new Error("no key");
  return key;
};
const key = keyOf(secret);

const verify = (platform: string | undefined, hub?: string, bytes: Uint8Array = body): string => {
  const result = verifySignature(bytes, { platform, hub }, key);
  return Result.isSuccess(result) ? "accepted" : result.failure;
};

test("signs as GitHub does", () => {
  expect(signBody(body, key)).toBe(digest);
});

test("accepts 64 lower-case digits with the prefix [W01]", () => {
  expect(verify(`sha256=${digest}`)).toBe("accepted");
});

test("accepts the bare digits [W02]", () => {
  expect(verify(digest)).toBe("accepted");
});

test("accepts upper and mixed case [W03]", () => {
  expect(verify(digest.toUpperCase())).toBe("accepted");
  expect(verify(`sha256=${digest.slice(0, 32)}${digest.slice(32).toUpperCase()}`)).toBe("accepted");
});

test.each([
  "SHA256=",
  "Sha256=",
  "sha256:",
  "sha1=",
  "sha256==",
  "sha256=sha256=",
  "sha256 =",
  "=",
  "sha-256=",
])("refuses the prefix %j: it is literal and stripped once [W04]", (prefix) => {
  expect(verify(`${prefix}${digest}`)).toBe("malformed");
});

test.each([
  "",
  "sha256=",
  digest.slice(1),
  `${digest}0`,
  digest + digest,
  `g${digest.slice(1)}`,
  `${digest.slice(0, 63)}g`,
  `sha256=${digest.slice(0, 62)}`,
])("refuses %j, which is not exactly 64 hexadecimal digits [W05]", (value) => {
  expect(verify(value)).toBe("malformed");
});

test.each([
  ` ${digest}`,
  `${digest} `,
  `\t${digest}`,
  `${digest}\n`,
  `sha256= ${digest}`,
  `\u00a0${digest}`,
  `${digest}\u00a0`,
  digest.replace("7", "７"),
])("refuses %j, which has more than digits [W06]", (value) => {
  expect(verify(value)).toBe("malformed");
});

test("refuses two signature headers as Node joins them [W07]", () => {
  expect(verify(`${digest}, ${digest}`)).toBe("malformed");
  expect(verify(`sha256=${digest}, sha256=${digest}`)).toBe("malformed");
  expect(verify(undefined, `sha256=${digest}, sha256=${digest}`)).toBe("malformed");
});

test("accepts X-Hub-Signature-256 alone, and both headers if both are correct [W08]", () => {
  expect(verify(undefined, `sha256=${digest}`)).toBe("accepted");
  expect(verify(digest, `sha256=${digest}`)).toBe("accepted");
});

test("lets X-Platform-Signature alone decide if it is present [W09]", () => {
  const wrong = "0".repeat(64);
  expect(verify(digest, wrong)).toBe("accepted");
  expect(verify(wrong, digest)).toBe("mismatched");
  expect(verify("", digest)).toBe("malformed");
});

test("refuses a request with neither header [W10]", () => {
  expect(verify(undefined)).toBe("missing");
});

test("accepts an empty body with the right digest [W12]", () => {
  const empty = new Uint8Array();
  expect(verify(createHmac("sha256", secret).update("").digest("hex"), undefined, empty)).toBe("accepted");
  expect(verify(digest, undefined, empty)).toBe("mismatched");
});

test("signs bytes, not text: invalid UTF-8 and a byte order mark count [W14] [W15]", () => {
  const bytes = Buffer.from([0xef, 0xbb, 0xbf, 0x7b, 0xff, 0x7d]);
  const right = createHmac("sha256", secret).update(bytes).digest("hex");
  expect(verify(right, undefined, bytes)).toBe("accepted");
  expect(verify(right, undefined, bytes.subarray(3))).toBe("mismatched");
  expect(verify(right, undefined, Buffer.from(bytes.toString("utf8")))).toBe("mismatched");
});

test("makes no key from an empty secret [W30]", () => {
  expect(signatureKey("")).toBeNull();
});

test("uses a secret byte for byte, with its trailing newline [W32]", () => {
  const withNewline = keyOf(`${secret}\n`);
  expect(Result.isFailure(verifySignature(body, { platform: digest, hub: undefined }, withNewline))).toBe(
    true,
  );
  expect(signBody(body, withNewline)).toBe(createHmac("sha256", `${secret}\n`).update(body).digest("hex"));
});

test("accepts exactly the digest of body and secret, and never throws", () => {
  const anyHeader = fc.oneof(
    fc.string(),
    fc.string({ unit: fc.constantFrom(..."0123456789abcdefABCDEFsha256=, "), maxLength: 80 }),
    fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString("hex")),
  );
  fc.assert(
    fc.property(fc.uint8Array(), fc.string({ minLength: 1 }), anyHeader, (bytes, text, header) => {
      const right = createHmac("sha256", text).update(bytes).digest("hex");
      const accepts = (platform: string): boolean =>
        Result.isSuccess(verifySignature(bytes, { platform, hub: undefined }, keyOf(text)));
      expect(accepts(right)).toBe(true);
      expect(accepts(header)).toBe(header.replace(/^sha256=/, "").toLowerCase() === right);
    }),
    { seed: 20261120 },
  );
});

test("refuses a flip of any bit of the digest", () => {
  const bytes = Buffer.from(digest, "hex");
  for (let bit = 0; bit < 256; bit += 1) {
    const flipped = Buffer.from(bytes);
    flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    expect(verify(flipped.toString("hex"))).toBe("mismatched");
  }
});

test("refuses the digest of a body with any flipped bit, and any changed digit", () => {
  const digits = fc.constantFrom(..."0123456789abcdef");
  const filled = fc.uint8Array({ minLength: 1, maxLength: 300 });
  fc.assert(
    fc.property(filled, fc.nat(), fc.nat({ max: 63 }), digits, (bytes, anyBit, place, digit) => {
      const right = signBody(bytes, key);
      expect(verify(right, undefined, bytes)).toBe("accepted");
      const bit = anyBit % (bytes.length * 8);
      const flipped = Buffer.from(bytes);
      flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      expect(verify(right, undefined, flipped)).toBe("mismatched");
      const changed = right.slice(0, place) + digit + right.slice(place + 1);
      expect(verify(changed, undefined, bytes)).toBe(changed === right ? "accepted" : "mismatched");
    }),
  );
});

test("reads a signature into its 32 bytes", () => {
  expect(parseSignature(`sha256=${digest}`)).toEqual(Buffer.from(digest, "hex"));
});
