import { expect, it } from "vitest";
import type { Ask } from "../../src/connectors/asking.ts";
import { discover } from "../../src/connectors/sign-in-discovery.ts";

const URL_OF_API = "https://api.example.com/v2";
const META = "https://api.example.com/meta";
const ISSUER = "https://login.example.com";

const DOCUMENTS: Readonly<Record<string, object>> = {
  [META]: { resource: URL_OF_API, authorization_servers: [ISSUER] },
  [`${ISSUER}/.well-known/oauth-authorization-server`]: {
    issuer: ISSUER,
    token_endpoint: `${ISSUER}/token`,
    authorization_endpoint: `${ISSUER}/authorize`,
  },
};

/** A server that wants a sign-in, and says where. */
const world = (documents: Readonly<Record<string, object>> = DOCUMENTS) => {
  const asked: string[] = [];
  const ask: Ask = (target, { method = "GET", body = null } = {}) => {
    const url = target.toString();
    asked.push(`${method} ${url} ${body === null ? "without" : "with"} a body`);
    const document = documents[url];
    const challenge = { "www-authenticate": `Bearer resource_metadata="${META}"` };
    return Promise.resolve(
      document === undefined
        ? new Response(null, { status: 401, headers: challenge })
        : Response.json(document),
    );
  };
  return { asked, ask };
};

it.each([
  ["mcp", `POST ${URL_OF_API} with a body`],
  ["http", `GET ${URL_OF_API} without a body`],
  ["openapi", `GET ${URL_OF_API} without a body`],
] as const)(
  "finds the sign-in of a server of the kind %s by a request that changes nothing there",
  async (kind, first) => {
    const { asked, ask } = world();
    const found = await discover(ask, { url: URL_OF_API, kind, issuer: null });
    expect(found.server.token_endpoint).toBe(`${ISSUER}/token`);
    expect(found.resource).toBe(URL_OF_API);
    expect(asked[0]).toBe(first);
  },
);

it("asks the authorization server alone that the manifest names", async () => {
  const { asked, ask } = world();
  const found = await discover(ask, { url: URL_OF_API, kind: "http", issuer: `${ISSUER}/` });
  expect(found).toMatchObject({ resource: URL_OF_API, scope: null, server: { issuer: ISSUER } });
  expect(asked).toEqual([`GET ${ISSUER}/.well-known/oauth-authorization-server without a body`]);
});

const TENANT = `${ISSUER}/tenant`;
/** Metadata at the address that the resource names, about this issuer. */
const elsewhere = (issuer: string, address = TENANT): Readonly<Record<string, object>> => ({
  [META]: { resource: URL_OF_API, authorization_servers: [address] },
  [`${new URL(address).origin}/.well-known/oauth-authorization-server/tenant`]: {
    issuer,
    token_endpoint: `${address}/token`,
  },
});

it("names both issuers if the metadata are about another one, and the setting that helps", async () => {
  const { ask } = world(elsewhere(ISSUER));
  await expect(discover(ask, { url: URL_OF_API, kind: "mcp", issuer: null })).rejects.toThrow(
    `${JSON.stringify(TENANT)} are about another issuer, ${JSON.stringify(ISSUER)}. If that is the right one, write issuer = ${JSON.stringify(ISSUER)}`,
  );
});

it("takes the metadata that the connector's server names for the issuer that the manifest names", async () => {
  const { ask } = world(elsewhere(ISSUER));
  const found = await discover(ask, { url: URL_OF_API, kind: "mcp", issuer: ISSUER });
  expect(found.server).toMatchObject({ issuer: ISSUER, token_endpoint: `${TENANT}/token` });
});

it.each([
  ["another origin", elsewhere(ISSUER, "https://evil.example.com/tenant")],
  ["another issuer", elsewhere("https://evil.example.com")],
])("takes no metadata of %s", async (_, documents) => {
  const { ask } = world(documents);
  await expect(discover(ask, { url: URL_OF_API, kind: "mcp", issuer: ISSUER })).rejects.toThrow(
    "does not say how to sign in",
  );
});
