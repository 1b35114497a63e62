import * as Result from "effect/Result";
import { expect, test } from "vitest";
import {
  authorizeRequest,
  checkConnectorCredential,
  credentialMask,
  credentialPlace,
  maskJson,
} from "../../../src/domain/connector/connector-credential.ts";
import { sealSecret, unsealSecret } from "../../../src/domain/secret/secret.ts";

const CREDENTIAL = "s3cr&t+/credential=";
const KEYRING = { current: { version: 1, bytes: new Uint8Array(32) }, former: [] };
const PLACE: Parameters<typeof credentialPlace>[0] = {
  projectId: "p",
  personId: null,
  slug: "docs",
  origin: "https://docs.example.com",
  kind: "value",
  version: 1,
};

test("opens a credential for its own connector, origin and kind only [K04]", () => {
  const sealed = sealSecret(KEYRING, credentialPlace(PLACE), {
    value: CREDENTIAL,
    nonce: new Uint8Array(12),
  });
  const open = (change: Partial<typeof PLACE>) =>
    unsealSecret(KEYRING, credentialPlace({ ...PLACE, ...change }), sealed);
  expect(open({})).toEqual(Result.succeed(CREDENTIAL));
  expect(open({ origin: "https://evil.example.com" })).toEqual(Result.fail("corrupt"));
  expect(open({ slug: "other" })).toEqual(Result.fail("corrupt"));
  expect(open({ kind: "oauth" })).toEqual(Result.fail("corrupt"));
});

test.each([
  ["bearer", { kind: "bearer" } as const, { authorization: "Bearer s3cr&t+/credential=" }],
  ["header", { kind: "header", name: "X-Key" } as const, { "x-key": CREDENTIAL }],
  ["none", { kind: "none" } as const, {}],
])("sends a credential for auth %s", (_, auth, headers) => {
  expect(authorizeRequest("https://a.example/mcp?x=1", auth, CREDENTIAL)).toEqual({
    url: "https://a.example/mcp?x=1",
    headers,
  });
});

test("sends a credential in a parameter of the URL, encoded", () => {
  const { url } = authorizeRequest("https://a.example/mcp?x=1", { kind: "query", name: "key" }, CREDENTIAL);
  expect(new URL(url).searchParams.get("key")).toBe(CREDENTIAL);
  expect(new URL(url).searchParams.get("x")).toBe("1");
});

const bytes = Buffer.from(CREDENTIAL);
test.each([
  ["as it is", CREDENTIAL],
  ["in a URL", encodeURIComponent(CREDENTIAL)],
  ["in a form", new URLSearchParams({ q: CREDENTIAL }).toString().slice(2)],
  ["in base64", bytes.toString("base64")],
  ["in base64url", bytes.toString("base64url")],
  ["in hexadecimal", bytes.toString("hex")],
  ["in JSON", JSON.stringify({ a: CREDENTIAL })],
  ["backwards", [...CREDENTIAL].toReversed().join("")],
])("masks a credential %s [K06]", (_, text) => {
  const masked = credentialMask([CREDENTIAL]).redact(`before ${text} after`);
  expect(masked).toContain("[redacted]");
  expect(masked).not.toContain(text);
  expect(masked).not.toContain("credential");
});

test.each(["", "u", "us", "user"])("masks a credential in base64 after %o [K06]", (before) => {
  const text = Buffer.from(`${before}:${CREDENTIAL}`).toString("base64");
  const masked = credentialMask([CREDENTIAL]).redact(text);
  // At most two characters of the credential share a base64 group with other text.
  expect(masked.replace("[redacted]", "").length).toBeLessThan(14);
});

test("masks texts and names of fields in JSON, and keeps a field that is called __proto__", () => {
  const value: unknown = JSON.parse(`{"__proto__":{"a":"${CREDENTIAL}"},"${CREDENTIAL}":[1,null,"x"]}`);
  const masked = maskJson(credentialMask([CREDENTIAL]), value);
  expect(JSON.stringify(masked)).toBe('{"__proto__":{"a":"[redacted]"},"[redacted]":[1,null,"x"]}');
  expect(({} as Record<string, unknown>)["a"]).toBeUndefined();
});

test.each([
  ["short", "1234567"],
  ["line", "12345678\n"],
  ["ASCII", "12345678é"],
  ["long", "x".repeat(9000)],
])("refuses a credential that is wrong: %s", (_, value) => {
  expect(checkConnectorCredential({ kind: "bearer" }, value)).toMatch(/^must /);
});

test("accepts a credential with spaces inside", () => {
  expect(checkConnectorCredential({ kind: "bearer" }, "Token abcdefgh")).toBeNull();
});
