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
const world = () => {
  const asked: string[] = [];
  const ask: Ask = (target, { method = "GET", body = null } = {}) => {
    const url = target.toString();
    asked.push(`${method} ${url} ${body === null ? "without" : "with"} a body`);
    const document = DOCUMENTS[url];
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
