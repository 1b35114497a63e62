/** Signing in to a connector, using its tokens, and the end of a sign-in. */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import * as SqlClient from "effect/sql/SqlClient";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { sealSecret, unsealSecret, type Keyring as Keys } from "../../../src/domain/secret/secret.ts";
import { grantPlace, readGrant } from "../../../src/domain/connector/connector-grant.ts";
import { Keyring } from "../../../src/services/keyring.ts";
import { ConnectorGrants } from "../../../src/store/ports/connectors/connector-grants.ts";
import { resealDatabase } from "../../../src/assembly/database.ts";
import { textResult } from "../../support/servers/mcp-server.ts";
import { errorCode, expectStatus, fields, listOf, mergeFiles } from "../../support/service/requests.ts";
import { textOf } from "./executor-world.ts";
import { ConnectorWorld, oauthManifest } from "./connector-sign-in-world.ts";

let world: ConnectorWorld;
beforeAll(async () => {
  // All rows of the service are sealed again.
  world = await ConnectorWorld.start({ PLATFORM_NAME: "Workshop" });
});
afterAll(() => world.close());
beforeEach(() => world.reset());

const ENDED =
  /^The sign-in of the connector wiki has ended: .* A person can sign in again: platform connectors authorize wiki\.$/;

describe("a connector with oauth", () => {
  it("is signed in to by a person, and its tools are called with a token that the agent never sees", async () => {
    const project = await world.project();
    expect(await world.connector(project)).toMatchObject({ state: "needs_credential", sign_in: null });
    await world.signIn(project);
    expect(await world.connector(project)).toMatchObject({
      state: "ready",
      auth: "oauth",
      credential: null,
      sign_in: { status: "signed_in", issuer: world.login.issuer, renewed_at: null, failure: null },
    });
    world.server.answers.set("read", ({ headers }) => textResult(`asked with ${headers.authorization}`));
    expect(textOf(await world.read(project))).toBe("asked with Bearer [redacted]");
    expect(world.login.clientNames).toEqual(["Workshop"]);
    const form = world.login.tokenForms[0];
    expect(form?.get("resource")).toBe(world.server.url);
    expect(form?.get("redirect_uri")).toBe(`${world.service.url}/dashboard/callback/connector`);
  });

  it("gets a new token when the server refuses the old one, and the agent notices nothing", async () => {
    const project = await world.project();
    await world.signIn(project);
    const session = await world.executor.freshSession(project);
    world.login.expireAll();
    expect(textOf(await world.read(project, session))).toBe("read ran");
    expect(world.login.refreshes).toBe(1);
    const { sign_in: signIn } = await world.connector(project);
    expect(signIn).toMatchObject({ status: "signed_in", renewed_at: expect.any(String) });
    // At most once for a call, also of a server that refuses every token.
    world.login.tokenForms.length = 0;
    world.server.instead = (_, response) => void response.writeHead(401).end();
    expect(textOf(await world.read(project, session))).toContain("answered with status 401");
    expect(world.login.refreshes).toBe(1);
  });

  it("needs a person when the sign-in was revoked, says so to the agent and in the API, and works again after a new one", async () => {
    const project = await world.project();
    await world.signIn(project);
    world.login.revokeAll();
    const session = await world.executor.freshSession(project);
    expect(textOf(await world.read(project, session))).toMatch(ENDED);
    const now = await world.connector(project);
    expect(now).toMatchObject({ state: "needs_credential", sign_in: { status: "ended" } });
    expect(now["failure"]).toMatch(ENDED);
    world.login.tokenForms.length = 0;
    // It is refused before anything is sent, and it is on record.
    const before = world.login.requests.length;
    const [told, id] = textOf(await world.read(project, session)).split(" The call's id is ");
    expect(told).toMatch(ENDED);
    expect(id).toMatch(/^[0-9a-f-]{36}\.$/);
    expect(world.login.requests).toHaveLength(before);
    expect((await session.rows()).map(({ outcome }) => outcome)).toEqual(["denied", "error"]);
    await world.signIn(project);
    expect(textOf(await world.read(project, session))).toBe("read ran");
  });

  it("forgets the tokens with the credential, and asks the server to revoke them", async () => {
    const project = await world.project();
    await world.signIn(project);
    const live = world.login.liveGrants;
    const target = `/v1/projects/${project}/connectors/wiki/credential`;
    expectStatus(await world.service.request("DELETE", target), 204);
    expect(world.login.liveGrants).toBe(live - 1);
    expect(await world.connector(project)).toMatchObject({ state: "needs_credential", sign_in: null });
    expectStatus(await world.service.request("DELETE", target), 404);
    const record = await world.service.request("GET", `/v1/projects/${project}/audit?limit=3`);
    const row = { target: "wiki", outcome: "done", actor: { kind: "person", name: "admin" } };
    expect(listOf(record, "events")).toMatchObject([
      { ...row, action: "connector.signed_out" },
      { ...row, action: "connector.tools_accepted" },
      {
        ...row,
        action: "connector.signed_in",
        changes: { origin: new URL(world.server.url).origin, credential: "project" },
      },
    ]);
  });

  it("is deleted also if the server does not revoke", async () => {
    const project = await world.project();
    await world.signIn(project);
    world.login.instead = (_, response) => {
      response.destroy();
      return true;
    };
    const target = `/v1/projects/${project}/connectors/wiki/credential`;
    expectStatus(await world.service.request("DELETE", target), 204);
    expect(await world.connector(project)).toMatchObject({ sign_in: null });
  });

  it("needs a new sign-in when a merged manifest makes it another kind, and gets no byte of the old one", async () => {
    const project = await world.project();
    await world.signIn(project);
    await mergeFiles(world.service, project, {
      "platform.toml": oauthManifest(world.server.url, 'auth = "bearer"'),
    });
    await expect.poll(async () => (await world.connector(project))["auth"]).not.toBe("oauth");
    expect(await world.connector(project)).toMatchObject({ state: "needs_credential", sign_in: null });
    world.server.requests.length = 0;
    expect(textOf(await world.read(project))).toContain("has no credential");
    expect(world.server.requests).toEqual([]);
  });

  it("uses a client that an owner registered, with its secret", async () => {
    const { id, secret } = world.login.client;
    const project = await world.project(`auth = "oauth"\nclient_id = "${id}"\nscope = "read write"`);
    expectStatus(await world.storeClient(project, { value: secret }), 200);
    await world.signIn(project);
    expect(world.login.requests).not.toContain("/register");
    expect(world.login.tokenForms[0]?.get("client_secret")).toBe(secret);
    expect(textOf(await world.read(project))).toBe("read ran");
  });

  it("says what to do if the server registers no clients, and none is stored", async () => {
    const project = await world.project();
    world.login.metadata = { registration_endpoint: undefined };
    const refused = await world.authorize(project);
    expect(errorCode(expectStatus(refused, 409))).toBe("needs_client");
    expect(refused.text).toContain("/dashboard/callback/connector");
    expect(refused.text).toContain("platform connectors set-credential wiki");
    const wrong = await world.storeClient(project, { value: "client-secret-1" });
    expect(expectStatus(wrong, 400).text).toContain("client_id");
  });

  it("is not begun for other kinds of auth", async () => {
    const bearer = await world.project('auth = "bearer"');
    expect(errorCode(expectStatus(await world.authorize(bearer), 409))).toBe("no_sign_in_needed");
  });
});

const auth = () => `auth = "client_credentials"\nclient_id = "${world.login.client.id}"`;

describe("a connector with client credentials", () => {
  it("gets its tokens without a person, and new ones when they end", async () => {
    const project = await world.project(auth());
    const stored = fields(
      expectStatus(await world.storeClient(project, { value: world.login.client.secret }), 200),
    );
    expect(stored).toMatchObject({ state: "needs_acceptance", sign_in: { status: "signed_in" } });
    const { pin } = await world.executor.catalogueOf(project);
    await world.executor.change(project, { action: "accept", pin });
    expect(textOf(await world.read(project))).toBe("read ran");
    world.login.expireAll();
    expect(textOf(await world.read(project))).toBe("read ran");
    expect(world.login.tokenForms.map((form) => form.get("grant_type"))).toEqual([
      "client_credentials",
      "client_credentials",
    ]);
  });

  it("proves itself in plain Basic authentication if the manifest says so, to a server that does not decode", async () => {
    world.login.metadata = { token_endpoint_auth_methods_supported: ["client_secret_basic"] };
    const encoded = await world.project(auth());
    await world.storeClient(encoded, { value: world.login.client.secret });
    expect(await world.connector(encoded)).toMatchObject({ state: "needs_credential" });
    const plain = await world.project(`${auth()}\nclient_auth = "basic_plain"`);
    await world.storeClient(plain, { value: world.login.client.secret });
    expect(await world.connector(plain)).toMatchObject({ state: "needs_acceptance" });
  });

  it("needs another secret when the server refuses the client", async () => {
    const project = await world.project(auth());
    const stored = await world.storeClient(project, { value: "not-the-secret" });
    expect(fields(expectStatus(stored, 200))).toMatchObject({
      state: "needs_credential",
      failure: expect.stringMatching(/invalid_client.*store the client's secret again/),
    });
    expectStatus(await world.storeClient(project, { value: world.login.client.secret }), 200);
    expect(await world.connector(project)).toMatchObject({ state: "needs_acceptance" });
  });
});

/** Every row of every table, as text. */
const everyRow = (): Promise<string> =>
  world.service.inside(
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      const tables = yield* sql<{ readonly name: string }>`
        SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'`;
      const texts = yield* Effect.forEach(
        tables,
        ({ name }) =>
          sql<{
            readonly text: string;
          }>`SELECT coalesce(string_agg(t::text, ' '), '') AS text FROM ${sql(name)} t`,
      );
      return texts.flatMap((rows) => rows.map(({ text }) => text)).join("\n");
    }),
  );

describe("tokens", () => {
  it("and the client's secret are in no answer, log, record or plain row, whatever the servers say [K15]", async () => {
    const { id, secret } = world.login.client;
    const project = await world.project(`auth = "oauth"\nclient_id = "${id}"`);
    await world.storeClient(project, { value: secret });
    await world.signIn(project);
    world.server.answers.set("read", () =>
      textResult(
        world.login.secrets
          .map((one) => `${one} ${Buffer.from(one).toString("base64")} ${Buffer.from(one).toString("hex")}`)
          .join(" "),
      ),
    );
    world.login.expireAll();
    const session = await world.executor.freshSession(project);
    const own = world.login.secrets.slice(-4);
    const result = textOf(await world.read(project, session));
    world.login.instead = (url, response, form) => {
      if (url.pathname !== "/token") return false;
      response.writeHead(400, { "content-type": "application/json" });
      response.end(
        JSON.stringify({
          error: "invalid_grant",
          error_description: `${form.get("refresh_token")} ${secret}`,
        }),
      );
      return true;
    };
    world.login.expireAll();
    const last = textOf(await world.read(project, session));
    expect(last).toContain("[redacted] [redacted]");
    const everything = [
      result.split(" ").slice(-6).join(" "),
      last,
      JSON.stringify([await world.connector(project), await session.rows()]),
      world.service.logs.join("\n"),
      await everyRow(),
    ].join("\n");
    expect(own).toHaveLength(4);
    for (const one of [...own, secret])
      for (const form of [one, Buffer.from(one).toString("hex"), Buffer.from(one).toString("base64")])
        expect(everything.split("\n").filter((line) => line.includes(form))).toEqual([]);
  });

  it("and sign-ins that are under way are sealed again when the master key is replaced", async () => {
    const project = await world.project();
    await world.signIn(project);
    await world.address(project);
    const keys: Keys = { current: { version: 2, bytes: new Uint8Array(32).fill(7) }, former: [] };
    const sealedNames: (string | null)[] = [];
    const again = await world.service.inside(
      Effect.gen(function* () {
        const { secrets } = yield* Keyring;
        const sql = yield* SqlClient.SqlClient;
        const found: { grant?: unknown } = {};
        yield* Effect.ignore(
          sql.withTransaction(
            Effect.gen(function* () {
              yield* resealDatabase({
                aliveSince: Date.UTC(2100, 0, 1),
                decide: () => Effect.succeed({ check: "check", former: "former" }),
                reseal: (row) => {
                  sealedNames.push(row.name);
                  const place = { projectId: row.projectId, name: row.name ?? "", version: row.version };
                  const value = Result.getOrThrow(unsealSecret(secrets, place, row.envelope));
                  return Effect.succeed(sealSecret(keys, place, { value, nonce: new Uint8Array(12) }));
                },
                written: () => undefined,
              });
              const row = yield* (yield* ConnectorGrants).get({
                projectId: project,
                slug: "wiki",
                personId: null,
              });
              if (row?.envelope == null) throw new Error("the grant is missing");
              const text = Result.getOrThrow(unsealSecret(keys, grantPlace(row), row.envelope));
              found.grant = readGrant(text);
              return yield* Effect.fail("undone");
            }),
          ),
        );
        return found.grant;
      }),
    );
    expect(again).toMatchObject({ kind: "oauth", resource: world.server.url });
    expect(sealedNames.filter((name) => name?.startsWith("connector-flow wiki"))).not.toEqual([]);
  });
});
