import * as Result from "effect/Result";
import { expect, test } from "vitest";
import {
  checkClient,
  flowPlace,
  grantPlace,
  mustRenew,
  readGrant,
  grantSecrets,
  type Grant,
} from "../../../src/domain/connector/connector-grant.ts";
import { sealSecret, unsealSecret } from "../../../src/domain/secret/secret.ts";

const KEYRING = { current: { version: 1, bytes: new Uint8Array(32) }, former: [] };
const PLACE: Parameters<typeof grantPlace>[0] = {
  projectId: "p",
  slug: "docs",
  personId: null,
  origin: "https://docs.example.com",
  kind: "oauth",
  version: 1,
};

const GRANT: Grant = {
  kind: "oauth",
  server: { issuer: "https://login.example.com", token_endpoint: "https://login.example.com/token" },
  client: { id: "c", secret: "the-secret" },
  resource: "https://docs.example.com/mcp",
  scope: null,
  accessToken: "the-access-token",
  refreshToken: "the-refresh-token",
  expiresAt: 100_000,
};

test("opens a grant for its own connector, origin, kind and version only [K04]", () => {
  const sealed = sealSecret(KEYRING, grantPlace(PLACE), { value: "tokens", nonce: new Uint8Array(12) });
  const open = (change: Partial<typeof PLACE>) =>
    unsealSecret(KEYRING, grantPlace({ ...PLACE, ...change }), sealed);
  expect(open({})).toEqual(Result.succeed("tokens"));
  for (const change of [
    { origin: "https://evil.example.com" },
    { slug: "other" },
    { kind: "client_credentials" as const },
    { version: 2 },
  ])
    expect(open(change)).toEqual(Result.fail("corrupt"));
  expect(unsealSecret(KEYRING, flowPlace({ ...PLACE, stateHash: "s" }), sealed)).toEqual(
    Result.fail("corrupt"),
  );
});

test("reads what it wrote, and nothing else", () => {
  expect(readGrant(JSON.stringify(GRANT))).toEqual(GRANT);
  for (const text of ["", "null", "{}", "a-bearer-token"]) expect(readGrant(text)).toBeNull();
});

test("names everything that must be masked", () => {
  expect(grantSecrets(GRANT)).toEqual(["the-access-token", "the-refresh-token", "the-secret"]);
});

test.each([
  [39_999, false],
  [40_000, true],
  [200_000, true],
])("must renew a token at %i: %o", (now, expected) => {
  expect(mustRenew(GRANT, now)).toBe(expected);
  expect(mustRenew({ expiresAt: null }, now)).toBe(false);
});

test.each([
  [{ id: "c", secret: "long-enough" }, null],
  [{ id: null, secret: "long-enough" }, "client_id"],
  [{ id: "ü", secret: "long-enough" }, "client_id"],
  [{ id: "c", secret: "short" }, "value"],
  [{ id: "c", secret: "with a space" }, "value"],
])("checks the client %o", (client, field) => {
  expect(checkClient(client)?.[0] ?? null).toBe(field);
});
