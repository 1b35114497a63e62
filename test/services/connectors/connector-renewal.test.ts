/** Tokens are renewed once, on any number of nodes. The authorization server and the database are real. */
import { randomBytes } from "node:crypto";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Result from "effect/Result";
import * as Schedule from "effect/Schedule";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { Connector } from "../../../src/domain/connector/connector.ts";
import type { Grant } from "../../../src/domain/connector/connector-grant.ts";
import type { ServerFault } from "../../../src/connectors/port.ts";
import { ConnectorSignIns } from "../../../src/connectors/sign-in/port.ts";
import { makeSignIns } from "../../../src/connectors/sign-in.ts";
import { openCredential } from "../../../src/services/connectors/credentials.ts";
import { sealGrant } from "../../../src/services/connectors/renewal.ts";
import { Pause, PAUSED, PauseSwitch } from "../../../src/ground/pause.ts";
import { withCredential, type Used } from "../../../src/services/connectors/use.ts";
import { keyringLayer } from "../../../src/services/keyring.ts";
import { ConnectorGrants } from "../../../src/store/ports/connectors/connector-grants.ts";
import * as Client from "../../../src/store/postgres/connection/client.ts";
import { postgresStore } from "../../../src/assembly/database.ts";
import { freshDatabase } from "../../support/postgres/postgres.ts";
import { OAuthServer } from "../../support/servers/oauth-server.ts";
import { makeWorld } from "../../support/world/world.ts";

const CONNECTOR: Connector = {
  slug: "wiki",
  kind: "mcp",
  source: { from: "server" },
  headers: {},
  url: "https://wiki.example.com/mcp",
  auth: { kind: "oauth", clientId: null, scope: null, issuer: null, clientAuth: null },
  credential: "project",
  sessions: ["user"],
  direct: [],
  rules: [],
};

let login: OAuthServer;
beforeAll(async () => {
  login = await OAuthServer.open();
});
beforeEach(() => login.reset());
afterAll(() => login.close());

/** Runs on several nodes over one database: each has its own connections, and its own way to the server. */
const onNodes = async <A>(
  count: number,
  run: (nodes: readonly Layer.Layer<Needs>[]) => Effect.Effect<A, unknown>,
): Promise<A> =>
  Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const url = yield* freshDatabase("migrated");
        const master = { version: 1, bytes: new Uint8Array(randomBytes(32)) };
        const nodes = yield* Effect.forEach(Array.from({ length: count }), () =>
          Effect.map(
            Layer.build(
              Layer.mergeAll(
                Layer.provide(postgresStore, Client.layer({ url })),
                Layer.effect(
                  ConnectorSignIns,
                  makeSignIns(["127.0.0.1"], { answerMs: 3000, clientName: "Platform" }),
                ),
                keyringLayer({ current: master, former: [] }),
              ),
            ),
            Layer.succeedContext,
          ),
        );
        return yield* run(nodes);
      }),
    ),
  );
type Needs =
  | Effect.Services<ReturnType<typeof openCredential>>
  | Effect.Services<ReturnType<typeof makeWorld>>;

/** A grant as a sign-in makes it, whose access token has ended. */
const expired = (fields: Partial<Grant> = {}): Effect.Effect<Grant> =>
  Effect.sync(() => ({
    kind: "oauth",
    server: { issuer: login.issuer, token_endpoint: `${login.issuer}/token` },
    client: { id: "c", secret: null },
    resource: CONNECTOR.url,
    scope: null,
    ...login.grantTo({ client: "c", resource: CONNECTOR.url }),
    expiresAt: 1,
    ...fields,
  }));

/** A project with this grant. */
const storeGrant = Effect.fnUntraced(function* (grant: Grant) {
  const { projectId, userId } = yield* makeWorld(1);
  const place = { projectId, slug: "wiki", personId: null, version: 1, origin: "https://wiki.example.com" };
  yield* (yield* ConnectorGrants).put(yield* sealGrant(place, grant), { userId, now: 0 });
  return projectId;
});

/** What a call sends as its token. */
const tokenOf = Effect.fnUntraced(function* (projectId: string) {
  const { credential, missing } = yield* openCredential(projectId, CONNECTOR, null);
  if (missing !== null) return missing;
  return said(yield* withCredential(CONNECTOR, credential, (value) => Effect.succeed(value ?? "")));
});

const said = ({ answer }: Used<string>): string => {
  if (Result.isSuccess(answer)) return answer.success;
  return answer.failure._tag === "CredentialFault" ? answer.failure.message : answer.failure.why;
};

test("50 calls at once on two nodes with an expired token that rotates cause exactly one refresh", async () => {
  const { tokens, stored } = await onNodes(2, ([one, two]) =>
    Effect.gen(function* () {
      if (one === undefined || two === undefined) throw new Error("there are two nodes");
      const projectId = yield* Effect.provide(Effect.flatMap(expired(), storeGrant), one);
      const calls = Array.from({ length: 50 }, (_, n) =>
        Effect.provide(tokenOf(projectId), n % 2 === 0 ? one : two),
      );
      const all = yield* Effect.all(calls, { concurrency: "unbounded" });
      const row = yield* Effect.provide(
        Effect.flatMap(ConnectorGrants, (grants) => grants.get({ projectId, slug: "wiki", personId: null })),
        one,
      );
      return { tokens: all, stored: row };
    }),
  );
  expect(login.refreshes).toBe(1);
  expect(new Set(tokens).size).toBe(1);
  expect(login.secrets).toContain(tokens[0]);
  expect(login.liveGrants).toBeGreaterThan(0);
  expect(stored).toMatchObject({ version: 2, status: "held", failure: null });
});

test("50 calls at once after the server refused their token cause one refresh and no second one each", async () => {
  const tokens = await onNodes(2, ([one, two]) =>
    Effect.gen(function* () {
      if (one === undefined || two === undefined) throw new Error("there are two nodes");
      const grant = yield* expired({ expiresAt: null });
      const projectId = yield* Effect.provide(storeGrant(grant), one);
      const refusing = (value: string | null): Effect.Effect<string, ServerFault> =>
        value === grant.accessToken
          ? Effect.fail({ _tag: "ServerFault", why: "says no", isUnknown: false, status: 401 })
          : Effect.succeed(value ?? "");
      const call = Effect.gen(function* () {
        const { credential } = yield* openCredential(projectId, CONNECTOR, null);
        if (credential === null) throw new Error("the credential is missing");
        return said(yield* withCredential(CONNECTOR, credential, refusing));
      });
      const calls = Array.from({ length: 50 }, (_, n) => Effect.provide(call, n % 2 === 0 ? one : two));
      return yield* Effect.all(calls, { concurrency: "unbounded" });
    }),
  );
  expect(login.refreshes).toBe(1);
  expect(new Set(tokens).size).toBe(1);
});

test("a restored copy that is paused asks no server with a key, or without a credential", async () => {
  const pause = Object.assign(new PauseSwitch(), { since: 0 });
  let uses = 0;
  const use = () => Effect.sync(() => void (uses += 1));
  const answers = await onNodes(1, ([node]) =>
    Effect.forEach([{ kind: "value", value: "key" }, { kind: "none" }] as const, (credential) => {
      if (node === undefined) throw new Error("there is a node");
      return Effect.provide(withCredential(CONNECTOR, credential, use), node);
    }).pipe(Effect.provideService(Pause, pause)),
  );
  expect(answers.map(({ answer }) => Result.isFailure(answer) && answer.failure)).toMatchObject([
    { message: PAUSED },
    { message: PAUSED },
  ]);
  expect(uses).toBe(0);
});

test("a restored copy that is paused asks no server, and renews no token of its original", async () => {
  const pause = Object.assign(new PauseSwitch(), { since: 0 });
  const told = await onNodes(1, ([node]) =>
    Effect.gen(function* () {
      if (node === undefined) throw new Error("there is a node");
      const projectId = yield* Effect.provide(Effect.flatMap(expired(), storeGrant), node);
      return yield* Effect.provide(tokenOf(projectId), node);
    }).pipe(Effect.provideService(Pause, pause)),
  );
  expect(told).toContain("platform admin resume");
  expect(login.refreshes).toBe(0);
});

test("a server that does not answer is asked once by all that wait, and ends nothing", async () => {
  const { told, again } = await onNodes(1, ([node]) =>
    Effect.gen(function* () {
      if (node === undefined) throw new Error("there is a node");
      const projectId = yield* Effect.provide(Effect.flatMap(expired(), storeGrant), node);
      login.instead = (_, response) => {
        response.writeHead(503).end();
        return true;
      };
      const ten = Array.from({ length: 10 }, () => Effect.provide(tokenOf(projectId), node));
      const first = yield* Effect.all(ten, { concurrency: "unbounded" });
      login.instead = () => false;
      const asking = Effect.repeat(Effect.provide(tokenOf(projectId), node), {
        until: (token) => login.secrets.includes(token),
        schedule: Schedule.spaced("100 millis"),
      });
      return { told: first, again: yield* asking };
    }),
  );
  expect(login.refreshes).toBe(2);
  expect(new Set(told)).toEqual(
    new Set([
      expect.stringMatching(
        /^The tokens of the connector wiki could not be renewed: 127\.0\.0\.1:\d+ answered with something that is no answer of the protocol\. Try again later\.$/,
      ),
    ]),
  );
  expect(login.secrets).toContain(again);
});

/** Long enough for a cut to go through the secret that follows. */
const LONG = `No ${"x".repeat(280)}`;

test("a server that refuses ends the sign-in with a sentence for a person, once for all calls", async () => {
  const told = await onNodes(1, ([node]) =>
    Effect.gen(function* () {
      if (node === undefined) throw new Error("there is a node");
      const grant = yield* expired();
      const projectId = yield* Effect.provide(storeGrant(grant), node);
      login.instead = (_, response) => {
        response.writeHead(400, { "content-type": "application/json" });
        response.end(
          JSON.stringify({ error: "invalid_grant", error_description: `${LONG} ${grant.refreshToken}` }),
        );
        return true;
      };
      const ten = Array.from({ length: 10 }, () => Effect.provide(tokenOf(projectId), node));
      return yield* Effect.all([...ten, Effect.provide(tokenOf(projectId), node)], {
        concurrency: "unbounded",
      });
    }),
  );
  expect(login.refreshes).toBe(1);
  expect(new Set(told)).toEqual(
    new Set([
      expect.stringMatching(
        /^The sign-in of the connector wiki has ended: 127\.0\.0\.1:\d+ says: invalid_grant: No x{280} \[redacted\]\. A person can sign in again: platform connectors authorize wiki\.$/,
      ),
    ]),
  );
});

let interrupt: () => void = () => undefined;
afterEach(() => interrupt());

test("a call that is interrupted while the server rotates does not lose the new token", async () => {
  const { answer } = await onNodes(1, ([node]) =>
    Effect.gen(function* () {
      if (node === undefined) throw new Error("there is a node");
      const projectId = yield* Effect.provide(Effect.flatMap(expired(), storeGrant), node);
      const asked = Promise.withResolvers<void>();
      const go = Promise.withResolvers<void>();
      interrupt = go.resolve;
      login.before = async () => {
        asked.resolve();
        await go.promise;
      };
      const fiber = yield* Effect.forkChild(Effect.provide(tokenOf(projectId), node));
      yield* Effect.promise(() => asked.promise);
      fiber.interruptUnsafe();
      go.resolve();
      return { answer: yield* Effect.provide(tokenOf(projectId), node) };
    }),
  );
  expect(login.refreshes).toBe(1);
  expect(login.secrets).toContain(answer);
});
