/** When a session at a connector's server ends that is kept for a session of ours: over the service in memory, on the test clock. */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { describe, expect } from "vitest";
import { ConnectorServers, type Servers, type SessionOwner } from "../../src/connectors/port.ts";
import { cataloguePin, readCatalogue } from "../../src/domain/connector/catalogue.ts";
import type { Connector } from "../../src/domain/connector/connector.ts";
import { credentialPlace } from "../../src/domain/connector/connector-credential.ts";
import { sealSecret } from "../../src/domain/secret/secret.ts";
import { Actors } from "../../src/services/actors.ts";
import type { Credential } from "../../src/services/connectors/credentials.ts";
import { callTool } from "../../src/services/connectors/executor.ts";
import { endedOwners, IDLE_MS, sessionOwner } from "../../src/services/connectors/server-sessions.ts";
import { Keyring } from "../../src/services/keyring.ts";
import type { StoredGrant } from "../../src/store/ports/connectors/connector-grants.ts";
import { Connectors } from "../../src/store/ports/connectors/connectors.ts";
import { advance } from "../support/world/clock.ts";
import { inLife, projectWith, PROJECT, push, twins, type Services } from "../support/world/service.ts";
import { admitSession } from "../support/world/sessions.ts";
import { NUMBERED } from "../support/world/world.ts";

const URL = "https://mcp.example.com/mcp";
const entry = (more = "") => `
[executor]
default = "allow"
[[connectors]]
slug = "wiki"
kind = "mcp"
url = "${URL}"
auth = "bearer"
${more}`;

/** A server whose sessions are kept in a list, until they are ended. */
class ListedSessions {
  readonly owners: SessionOwner[] = [];
  readonly service: Servers = {
    list: () => Effect.die(new Error("the catalogue is in the store")),
    document: () => Effect.die(new Error("the catalogue is in the store")),
    call: (_, wanted) =>
      Effect.sync(() => {
        if (wanted.kind === "mcp" && wanted.owner !== null) this.owners.push(wanted.owner);
        return { content: [], isError: false, status: 200 };
      }),
    sessions: {
      any: Effect.void,
      list: () => this.owners.map((owner) => ({ owner, idleSince: null })),
      end: (ended) =>
        Effect.sync(() => {
          for (const owner of ended) this.owners.splice(this.owners.indexOf(owner), 1);
        }),
    },
  };
}

const setCredential = Effect.fnUntraced(function* (value: string) {
  const connectors = yield* Connectors;
  const holder = { projectId: PROJECT, slug: "wiki", personId: null };
  const version = yield* connectors.nextVersion(holder);
  const place = { ...holder, version, kind: "value" as const, origin: "https://mcp.example.com" };
  const sealing = { value, nonce: new Uint8Array(12) };
  const envelope = sealSecret((yield* Keyring).secrets, credentialPlace(place), sealing);
  yield* connectors.putCredential({ ...place, envelope }, { userId: NUMBERED.userId, now: 0 });
});

/** A running session whose agent has called the connector once. @returns the id of the session */
const begin = Effect.gen(function* () {
  yield* projectWith(entry());
  const connectors = yield* Connectors;
  const catalogue = readCatalogue("wiki", [
    { name: "read", description: "", inputSchema: { type: "object" } },
  ]);
  const key = { projectId: PROJECT, slug: "wiki", url: URL };
  const pin = cataloguePin(catalogue);
  yield* connectors.saw(key, { catalogue, pin, protocol: "2025-11-25", at: 0 });
  yield* connectors.accept(key, { pin, userId: NUMBERED.userId, now: 0 });
  yield* setCredential("first-credential");
  const sessionId = yield* admitSession({ ...NUMBERED });
  yield* (yield* Actors).wake("session", sessionId);
  yield* advance(5);
  const caller = { projectId: PROJECT, sessionId, userId: NUMBERED.userId, startedBy: "user" } as const;
  const result = yield* callTool(caller, { name: "wiki_read", given: {} }, () => Effect.void);
  expect(result.isError).toBe(false);
  return sessionId;
});

/** Runs a test over a session that has one at the server. */
const withKept = (
  test: (owners: readonly SessionOwner[], sessionId: string) => Effect.Effect<void, unknown, Services>,
) => {
  const { owners, service } = new ListedSessions();
  return Effect.gen(function* () {
    const parts = Layer.merge(Layer.fresh(twins), Layer.succeed(ConnectorServers, service));
    const memory = Layer.succeedContext(yield* Layer.build(parts)) as typeof twins;
    yield* inLife(
      memory,
      Effect.gen(function* () {
        const sessionId = yield* begin;
        expect(owners).toMatchObject([{ sessionId, slug: "wiki" }]);
        yield* test(owners, sessionId);
      }),
    );
  });
};

/** How many are kept after a change and two rounds of the duty. */
const keptAfter = (change: Effect.Effect<unknown, unknown, Services>, left: number) =>
  withKept((owners) =>
    Effect.gen(function* () {
      yield* change;
      yield* advance(10);
      expect(owners).toHaveLength(left);
    }),
  );

const removeCredential = Effect.flatMap(Connectors, (connectors) =>
  connectors.removeCredential({ projectId: PROJECT, slug: "wiki", personId: null }, 1),
);

describe("a session at a connector's server", () => {
  it.effect("stays while its session runs, its connector stays and its credential is the one to use", () =>
    keptAfter(push(`# moved\n${entry('direct = ["read"]')}`), 1),
  );

  it.effect("ends with its session, which the duty hears", () =>
    withKept((owners, sessionId) =>
      Effect.gen(function* () {
        yield* (yield* Actors).session(sessionId, { type: "stop.requested" });
        // Less than a period.
        yield* advance(2);
        expect(owners).toEqual([]);
      }),
    ),
  );

  it.effect("ends when its connector is removed", () => keptAfter(push(""), 0));

  it.effect("ends when its connector is changed", () =>
    keptAfter(push(entry('headers = { x-tenant = "two" }')), 0),
  );

  it.effect("ends when its credential is replaced", () => keptAfter(setCredential("second-credential"), 0));

  it.effect("ends when its credential is removed", () => keptAfter(removeCredential, 0));

  it.effect("ends ten minutes after its last call", () =>
    withKept(([owner]) =>
      Effect.gen(function* () {
        const ended = (idleSince: number | null, now: number) =>
          endedOwners([{ owner: owner as SessionOwner, idleSince }], now);
        expect(yield* ended(7, 6 + IDLE_MS)).toEqual([]);
        expect(yield* ended(7, 7 + IDLE_MS)).toEqual([owner]);
        expect(yield* ended(null, 7 + IDLE_MS)).toEqual([]);
      }),
    ),
  );
});

const grant = (fields: Partial<StoredGrant>): Credential => ({
  kind: "grant",
  held: {
    stored: { version: 1, grantedAt: 1, grantedBy: "person", ...fields } as StoredGrant,
    grant: null,
  },
});

describe("the owner of a session at a server", () => {
  const connector: Connector = {
    slug: "wiki",
    kind: "mcp",
    source: { from: "server" },
    headers: {},
    url: URL,
    auth: { kind: "oauth", clientId: null, scope: null, issuer: null, clientAuth: null },
    credential: "project",
    sessions: ["user"],
    direct: [],
    rules: [],
  };
  const caller = { projectId: PROJECT, sessionId: "session", userId: NUMBERED.userId };
  const standOf = (fields: Partial<StoredGrant>, changed: Partial<Connector> = {}) =>
    sessionOwner(caller, { ...connector, ...changed }, grant(fields)).stand;

  it("is the same after a token was renewed, and another one after a new sign-in", () => {
    expect(standOf({ version: 2, renewedAt: 5 })).toBe(standOf({}));
    expect(standOf({ grantedAt: 2 })).not.toBe(standOf({}));
  });

  it("is another one with a person's own credential than with the project's", () => {
    expect(standOf({}, { credential: "user" })).not.toBe(standOf({}));
  });
});
