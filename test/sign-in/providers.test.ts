/** Sign-in providers that do not answer, or that are not the one that the operator named. */
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import * as Effect from "effect/Effect";
import { OAuth2Server, type MutableResponse } from "oauth2-mock-server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { githubProvider } from "../../src/sign-in/github.ts";
import { oidcProvider } from "../../src/sign-in/oidc.ts";

const SECRETS = { state: "s", nonce: "n", verifier: "v".repeat(43) };
const CALLBACK = new URL("http://127.0.0.1/dashboard/callback/x?state=s&code=canary-code");
const CLIENT = { clientId: "platform", clientSecret: "canary-secret" };

let idp: OAuth2Server;
beforeAll(async () => {
  idp = new OAuth2Server();
  await idp.issuer.keys.generate("RS256");
  await idp.start(0, "127.0.0.1");
});
afterAll(() => idp.stop());

const faultOf = async (asked: Effect.Effect<unknown, unknown>) => {
  const fault = await Effect.runPromise(Effect.flip(asked));
  expect(JSON.stringify(fault)).not.toContain("canary");
  return fault;
};

/** An address at which nothing listens. */
const closedPort = async (): Promise<string> => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return `http://127.0.0.1:${port}`;
};

describe("a provider", () => {
  it("that does not answer is unreachable, and is asked again next time", async () => {
    const issuer = await closedPort();
    const provider = oidcProvider({ ...CLIENT, issuer, allowedDomains: [] });
    const begin = provider.begin(SECRETS, "http://127.0.0.1/dashboard/callback/oidc");
    expect(await faultOf(begin)).toMatchObject({ kind: "unreachable" });
    const late = new OAuth2Server();
    await late.issuer.keys.generate("RS256");
    await late.start(Number(new URL(issuer).port), "127.0.0.1");
    late.issuer.url = issuer;
    expect(await Effect.runPromise(begin)).toContain(`${issuer}/authorize?`);
    await late.stop();
    const web = await closedPort();
    const github = githubProvider({ ...CLIENT, organization: null, web, api: web });
    expect(await faultOf(github.finish(CALLBACK, SECRETS))).toMatchObject({ kind: "unreachable" });
  });

  it("whose discovery document names another issuer is refused [T13]", async () => {
    idp.service.once("beforeWellKnownOpenIdConfiguration", ({ body }: MutableResponse) => {
      if (body !== "") body["issuer"] = "https://evil.example";
    });
    const provider = oidcProvider({ ...CLIENT, issuer: idp.issuer.url ?? "", allowedDomains: [] });
    expect(await faultOf(provider.begin(SECRETS, "http://127.0.0.1/x"))).toMatchObject({ kind: "refused" });
  });

  it("that announces the issuer in its answers is refused without it [T13]", async () => {
    idp.service.once("beforeWellKnownOpenIdConfiguration", ({ body }: MutableResponse) => {
      if (body !== "") body["authorization_response_iss_parameter_supported"] = true;
    });
    const provider = oidcProvider({ ...CLIENT, issuer: idp.issuer.url ?? "", allowedDomains: [] });
    expect(await faultOf(provider.finish(CALLBACK, SECRETS))).toMatchObject({
      kind: "refused",
      why: expect.stringContaining('"iss"') as string,
    });
  });

  it("that refuses the code, or says so with status 200 as GitHub does, is refused", async () => {
    const server = createServer((_, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: "bad_verification_code", error_description: "canary" }));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const web = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const github = githubProvider({ ...CLIENT, organization: null, web, api: web });
    expect(await faultOf(github.finish(CALLBACK, SECRETS))).toMatchObject({ kind: "refused" });
    server.close();
  });
});

/** How the client's secret comes to a provider, sign-in by sign-in, and the faults. It knows no code. */
const clientAuthWith = async (announced: readonly string[] | undefined, accepts: "basic" | "post") => {
  const ways: string[] = [];
  const server = createServer((request, response) => {
    const { authorization } = request.headers;
    const base = `http://${request.headers.host ?? ""}`;
    response.setHeader("content-type", "application/json");
    if (request.method === "GET") {
      const endpoints = { authorization_endpoint: `${base}/authorize`, token_endpoint: `${base}/token` };
      const methods = { token_endpoint_auth_methods_supported: announced };
      response.end(JSON.stringify({ issuer: base, ...endpoints, ...methods }));
      return;
    }
    const way = authorization?.startsWith("Basic ") === true ? "basic" : "post";
    ways.push(way);
    const isKnown = way === accepts;
    response.writeHead(isKnown ? 400 : 401);
    const error = isKnown ? "invalid_grant" : "invalid_client";
    response.end(JSON.stringify({ error, error_description: "it quotes the canary" }));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = oidcProvider({ ...CLIENT, issuer, allowedDomains: [] });
  const faults = [
    await faultOf(provider.finish(CALLBACK, SECRETS)),
    await faultOf(provider.finish(CALLBACK, SECRETS)),
  ];
  server.close();
  return { ways, faults };
};

describe("the client's secret", () => {
  const both = ["client_secret_post", "client_secret_basic"];
  it.each([
    ["says only so", ["client_secret_basic"], "basic", ["basic", "basic"]],
    ["says nothing", undefined, "basic", ["basic", "basic"]],
    ["takes the body alone", ["client_secret_post"], "post", ["post", "post"]],
    ["announces both", both, "basic", ["basic", "basic"]],
    ["announces both and refuses one", both, "post", ["basic", "post", "post"]],
  ] as const)("goes by HTTP Basic or in the body as the provider %s", async (_, announced, accepts, ways) => {
    const { ways: used, faults } = await clientAuthWith(announced, accepts);
    expect(used).toEqual(ways);
    expect(faults).toMatchObject([{ code: "invalid_grant" }, { code: "invalid_grant" }]);
  });

  it("that is refused is named as the provider names it", async () => {
    const { ways, faults } = await clientAuthWith(["client_secret_basic"], "post");
    expect(ways).toEqual(["basic", "basic"]);
    const why = expect.stringContaining("it says invalid_client") as string;
    expect(faults[0]).toMatchObject({ kind: "refused", code: "invalid_client", why });
  });
});

it("a refusal at the provider's page has its code and its words, in one line", async () => {
  const provider = oidcProvider({ ...CLIENT, issuer: idp.issuer.url ?? "", allowedDomains: [] });
  const refused = new URL("http://127.0.0.1/dashboard/callback/oidc?state=s&error=access_denied");
  refused.searchParams.set("error_description", "AADSTS50105: not assigned\r\nTrace ID: 1");
  const fault = await faultOf(provider.finish(refused, SECRETS));
  expect(fault).toMatchObject({
    kind: "denied",
    code: "access_denied",
    why: expect.stringContaining("access_denied: AADSTS50105: not assigned Trace ID: 1") as string,
  });
});
