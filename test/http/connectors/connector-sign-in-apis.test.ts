/** Signing in to HTTP APIs: to one that says where its tokens come from, and to one whose authorization server the manifest names. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { OAuthServer } from "../../support/servers/oauth-server.ts";
import { json, PETS, startPetsServer, type PetsServer } from "../../support/servers/pets-server.ts";
import { expectStatus, fields, mergeFiles } from "../../support/service/requests.ts";
import { ConnectorWorld } from "./connector-sign-in-world.ts";
import { textOf } from "./executor-world.ts";

let world: ConnectorWorld;
let api: PetsServer;
/** An authorization server that gets nothing. */
let stranger: OAuthServer;
/** Whether the API says who issues its tokens (RFC 9728). */
let hasMetadata = true;
beforeAll(async () => {
  world = await ConnectorWorld.start();
  api = await startPetsServer();
  stranger = await OAuthServer.open();
});
afterAll(async () => {
  await world.close();
  await api.close();
  await stranger.close();
});
beforeEach(() => {
  world.reset();
  api.requests.length = 0;
  hasMetadata = true;
  api.answer = ({ target, headers }, response) => {
    const metadata = "/.well-known/oauth-protected-resource/api";
    if (target === metadata && hasMetadata)
      return json(response, { resource: api.url, authorization_servers: [world.login.issuer] });
    const token = /^Bearer (.+)$/.exec(headers.authorization ?? "")?.[1] ?? "";
    if (world.login.secrets.includes(token)) return json(response, { token });
    const challenge = hasMetadata ? `Bearer resource_metadata="${api.origin}${metadata}"` : "Bearer";
    response.writeHead(401, { "www-authenticate": challenge }).end();
  };
});

const OPERATION = `[[connectors.operations]]
name = "read"
description = "Reads all pets."
path = "/pets"
`;

type Kind = "http" | "openapi";

const manifest = (auth: string, kind: Kind = "http"): string => `
[[connectors]]
slug = "wiki"
url = "${api.url}"
kind = "${kind}"
${auth}
${kind === "http" ? OPERATION : 'description_file = "pets.yaml"'}
[[connectors.tools]]
match = "*"
policy = "allow"
`;

const newProject = (auth: string, kind?: Kind): Promise<string> =>
  world.executor.newProject(manifest(auth, kind), { "pets.yaml": PETS });

const issuer = (): string => `issuer = "${world.login.issuer}"`;

describe("an HTTP API with oauth", () => {
  it.each(["http", "openapi"] as const)(
    "of the kind %s is signed in to as its own metadata says, and is called with a token that the agent never sees",
    async (kind) => {
      const project = await newProject('auth = "oauth"', kind);
      await world.signIn(project);
      expect(world.login.tokenForms[0]?.get("resource")).toBe(api.url);
      expect(api.requests.every(({ method, body }) => method === "GET" && body === "")).toBe(true);
      const { by } = await world.executor.freshSession(project);
      const name = kind === "http" ? "wiki_read" : "wiki_list_pets";
      expect(textOf(await world.executor.call(name, {}, { by, project }))).toBe('{"token":"[redacted]"}');
    },
  );

  it("that has no metadata cannot be signed in to, and the answer says why", async () => {
    hasMetadata = false;
    const refused = expectStatus(await world.authorize(await newProject('auth = "oauth"')), 502);
    expect(refused.text).toContain("does not say how to sign in there");
    expect(refused.text).toContain("issuer");
  });

  it("that has no metadata is signed in to at the issuer of the manifest, and is not asked where", async () => {
    hasMetadata = false;
    const project = await newProject(`auth = "oauth"\n${issuer()}`);
    await world.signIn(project);
    expect(api.requests).toEqual([]);
    expect(world.login.requests[0]).toBe("/.well-known/oauth-authorization-server");
    expect(await world.connector(project)).toMatchObject({
      state: "ready",
      sign_in: { status: "signed_in", issuer: world.login.issuer },
    });
    expect(textOf(await world.read(project))).toBe('{"token":"[redacted]"}');
  });

  it("needs a new sign-in when a merged manifest names another issuer [K04]", async () => {
    const project = await newProject(`auth = "oauth"\n${issuer()}`);
    await world.signIn(project);
    await mergeFiles(world.service, project, {
      "platform.toml": manifest(`auth = "oauth"\nissuer = "${stranger.issuer}"`),
    });
    await expect.poll(() => world.connector(project)).toMatchObject({ state: "needs_credential" });
    api.requests.length = 0;
    expect(textOf(await world.read(project))).toContain(`(sign-in at ${stranger.issuer})`);
    expect([api.requests, stranger.requests]).toEqual([[], []]);
  });
});

describe("an HTTP API with client credentials", () => {
  it("gets its tokens at the issuer of the manifest, and its secret goes to no issuer that a merge names [K04]", async () => {
    hasMetadata = false;
    const { id, secret } = world.login.client;
    const auth = `auth = "client_credentials"\nclient_id = "${id}"`;
    const project = await newProject(`${auth}\n${issuer()}`);
    const stored = fields(expectStatus(await world.storeClient(project, { value: secret }), 200));
    expect(stored).toMatchObject({ sign_in: { status: "signed_in" } });
    const { pin } = await world.executor.catalogueOf(project);
    expectStatus(await world.executor.change(project, { action: "accept", pin }), 200);
    expect(textOf(await world.read(project))).toBe('{"token":"[redacted]"}');
    await mergeFiles(world.service, project, {
      "platform.toml": manifest(`${auth}\nissuer = "${stranger.issuer}"`),
    });
    await expect.poll(() => world.connector(project)).toMatchObject({ state: "needs_credential" });
    expect(textOf(await world.read(project))).toContain("store the client's secret again");
    expect(stranger.requests).toEqual([]);
  });
});
