/** Conformance: credentials and catalogues of connectors, and the record of calls. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import { cataloguePin, readCatalogue } from "../../../../src/domain/connector/catalogue.ts";
import { Connectors, type SeenCatalogue } from "../../../../src/store/ports/connectors/connectors.ts";
import {
  ABANDONED,
  ExecutorCalls,
  type NewCall,
} from "../../../../src/store/ports/connectors/executor-calls.ts";
import { People } from "../../../../src/store/ports/people/people.ts";
import { addPerson, addProject, makeWorld, NOON, type World } from "../../../support/world/world.ts";
import { type Check } from "../fixture.ts";

const ORIGIN = "https://mcp.example.com";
const URL = `${ORIGIN}/mcp`;

const seen = (description: string, at = NOON): SeenCatalogue => {
  const catalogue = readCatalogue("docs", [{ name: "read", description, inputSchema: { type: "object" } }]);
  return { catalogue, pin: cataloguePin(catalogue), protocol: "2025-11-25", at };
};

const credential = ({ projectId }: Pick<World, "projectId">, version: number, origin = ORIGIN) => ({
  projectId,
  slug: "docs",
  personId: null,
  version,
  origin,
  kind: "value" as const,
  envelope: Uint8Array.from([version]),
});

const holderIn = (projectId: string, personId: string | null = null) => ({
  projectId,
  slug: "docs",
  personId,
});

const checkCredentials = (check: Check): void => {
  describe("the credentials of connectors", () => {
    check(
      "are kept for the origin and the version with which they were written",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const { projectId, userId } = world;
        const store = yield* Connectors;
        expect(yield* store.nextVersion(holderIn(projectId))).toBe(1);
        yield* store.putCredential(credential(world, 1), { userId, now: NOON });
        const found = yield* store.credential(holderIn(projectId));
        expect(found).toEqual({ ...credential(world, 1), envelope: found?.envelope });
        expect([...(found?.envelope ?? [])]).toEqual([1]);
        expect(yield* store.credentials(projectId, userId)).toEqual([
          { slug: "docs", personId: null, origin: ORIGIN, kind: "value", updatedAt: NOON, updatedBy: userId },
        ]);
        expect(yield* store.credential(holderIn(yield* addProject(world)))).toBeNull();
      }),
    );

    check(
      "are replaced by the next version only",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const by = { userId: world.userId, now: NOON };
        const store = yield* Connectors;
        expect((yield* Effect.flip(store.putCredential(credential(world, 2), by)))._tag).toBe("Fenced");
        yield* store.putCredential(credential(world, 1), by);
        expect((yield* Effect.flip(store.putCredential(credential(world, 1), by)))._tag).toBe("Fenced");
        yield* store.putCredential(credential(world, 2, "https://other.example.com"), by);
        expect((yield* store.credential(holderIn(world.projectId)))?.origin).toBe(
          "https://other.example.com",
        );
      }),
    );

    check(
      "are one for the project and one for each person, and no person sees another's",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const { projectId, userId } = world;
        const other = yield* addPerson(world);
        const store = yield* Connectors;
        const by = { userId, now: NOON };
        for (const personId of [null, userId, other])
          yield* store.putCredential({ ...credential(world, 1), personId }, by);
        const seenBy = Effect.map(store.credentials(projectId, userId), (rows) =>
          rows.map(({ personId }) => personId),
        );
        expect(yield* seenBy).toEqual([null, userId]);
        expect((yield* store.credential(holderIn(projectId, other)))?.personId).toBe(other);
        expect(yield* store.nextVersion(holderIn(projectId, randomUUID()))).toBe(1);
        expect(yield* store.leftCredentials).toEqual([]);
        yield* (yield* People).deactivate(world.accountId, other, NOON);
        expect(yield* store.leftCredentials).toEqual([holderIn(projectId, other)]);
        expect(yield* store.removeCredential(holderIn(projectId, other), NOON)).toBe(true);
        expect(yield* store.leftCredentials).toEqual([]);
        expect(yield* seenBy).toEqual([null, userId]);
      }),
    );

    check(
      "never come back in a version that was removed",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const store = yield* Connectors;
        yield* store.putCredential(credential(world, 1), { userId: world.userId, now: NOON });
        expect(yield* store.removeCredential(holderIn(world.projectId), NOON)).toBe(true);
        expect(yield* store.removeCredential(holderIn(world.projectId), NOON)).toBe(false);
        expect(yield* store.credential(holderIn(world.projectId))).toBeNull();
        expect(yield* store.credentials(world.projectId, world.userId)).toEqual([]);
        expect(yield* store.nextVersion(holderIn(world.projectId))).toBe(2);
      }),
    );
  });
};

const checkCatalogues = (check: Check): void => {
  describe("the catalogues of connectors", () => {
    check(
      "keep what was accepted while the server changes, until a person accepts the latest",
      Effect.gen(function* () {
        const { projectId, userId } = yield* makeWorld(1);
        const store = yield* Connectors;
        const key = { projectId, slug: "docs", url: URL };
        const [first, second] = [seen("Reads.\u0000\ud800"), seen("Sends.", NOON + 1)];
        yield* store.saw(key, first);
        expect(yield* store.accept(key, { pin: second.pin, userId, now: NOON })).toBe(false);
        expect(yield* store.accept(key, { pin: first.pin, userId, now: NOON })).toBe(true);
        yield* store.saw(key, second);
        const accepted = { catalogue: first.catalogue, pin: first.pin, at: NOON, by: userId };
        expect(yield* store.catalogue(projectId, "docs")).toEqual({
          slug: "docs",
          url: URL,
          latest: second,
          accepted,
          failure: null,
          triedAt: NOON + 1,
        });
        expect(yield* store.catalogues(projectId)).toHaveLength(1);
      }),
    );

    check(
      "tell those who wait when tools are seen, accepted or forgotten",
      Effect.gen(function* () {
        const { projectId, userId } = yield* makeWorld(1);
        const store = yield* Connectors;
        const key = { projectId, slug: "docs", url: URL };
        const { pin } = seen("Reads.");
        const changes = [
          store.saw(key, seen("Reads.")),
          store.accept(key, { pin, userId, now: NOON }),
          store.forget(projectId, "docs"),
        ];
        for (const change of changes) {
          const told = yield* Effect.forkChild(store.changed(projectId), { startImmediately: true });
          yield* change;
          yield* Fiber.join(told);
        }
        // A store that begins to listen tells everyone once, and may do so at any of these changes.
        const strangers: unknown[] = [];
        for (const text of ["Reads and writes.", "Writes."]) {
          const other = yield* Effect.forkChild(store.changed(randomUUID()), { startImmediately: true });
          const told = yield* Effect.forkChild(store.changed(projectId), { startImmediately: true });
          yield* store.saw(key, seen(text));
          yield* Fiber.join(told);
          strangers.push(other.pollUnsafe());
          yield* Fiber.interrupt(other);
        }
        expect(strangers).toContain(undefined);
      }),
    );

    check(
      "keep what was seen when the server fails later",
      Effect.gen(function* () {
        const { projectId } = yield* makeWorld(1);
        const store = yield* Connectors;
        const key = { projectId, slug: "docs", url: URL };
        yield* store.failed(key, { failure: "It is away.", now: NOON });
        expect(yield* store.catalogue(projectId, "docs")).toMatchObject({
          latest: null,
          failure: "It is away.",
        });
        yield* store.saw(key, seen("Reads.", NOON + 1));
        expect((yield* store.catalogue(projectId, "docs"))?.failure).toBeNull();
        yield* store.failed(key, { failure: "It is away.", now: NOON + 2 });
        const row = yield* store.catalogue(projectId, "docs");
        expect(row).toMatchObject({ failure: "It is away.", triedAt: NOON + 2 });
        expect(row?.latest).toEqual(seen("Reads.", NOON + 1));
      }),
    );

    check(
      "forget what was seen and accepted at another URL",
      Effect.gen(function* () {
        const { projectId, userId } = yield* makeWorld(1);
        const store = yield* Connectors;
        const key = { projectId, slug: "docs", url: URL };
        const other = { ...key, url: "https://evil.example.com/mcp" };
        const { pin } = seen("Reads.");
        yield* store.saw(key, seen("Reads."));
        yield* store.accept(key, { pin, userId, now: NOON });
        expect(yield* store.accept(other, { pin, userId, now: NOON })).toBe(false);
        yield* store.saw(other, seen("Reads."));
        expect((yield* store.catalogue(projectId, "docs"))?.accepted).toBeNull();
        yield* store.accept(other, { pin, userId, now: NOON });
        yield* store.failed(key, { failure: "It is away.", now: NOON });
        expect(yield* store.catalogue(projectId, "docs")).toMatchObject({ accepted: null, latest: null });
      }),
    );

    check(
      "are outdated in the order of their last refresh, and can be removed",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const store = yield* Connectors;
        const { projectId } = world;
        yield* store.saw({ projectId, slug: "new", url: URL }, seen("Reads.", NOON + 2));
        yield* store.saw({ projectId, slug: "old", url: URL }, seen("Reads."));
        yield* store.failed({ projectId, slug: "away", url: URL }, { failure: "Away.", now: NOON + 1 });
        yield* store.saw({ projectId: randomUUID(), slug: "strange", url: URL }, seen("Reads."));
        expect(yield* store.outdated(NOON + 2, 10)).toEqual([
          { projectId, slug: "old" },
          { projectId, slug: "away" },
        ]);
        expect(yield* store.outdated(NOON + 2, 1)).toHaveLength(1);
        yield* store.forget(projectId, "old");
        expect(yield* store.catalogue(projectId, "old")).toBeNull();
      }),
    );
  });
};

const LIMITS = { atOnce: 2, perConnector: 4, windowMs: 60_000, openMs: 90_000 };

const call = (world: World, fields: Partial<NewCall> = {}): NewCall => ({
  id: randomUUID(),
  projectId: world.projectId,
  sessionId: world.projectId,
  userId: world.userId,
  startedBy: "user",
  connector: "docs",
  tool: "read",
  origin: ORIGIN,
  pin: null,
  rule: "default",
  argumentsDigest: "0".repeat(64),
  argumentsBytes: 2,
  argumentsPreview: "{}",
  at: NOON,
  ...fields,
});

const DONE = { outcome: "ok", message: null, upstreamStatus: 200, resultBytes: 7, now: NOON + 5 } as const;

const checkLimits = (check: Check): void => {
  check(
    "are refused over the limit of a session, until one of them ends",
    Effect.gen(function* () {
      const world = yield* makeWorld(1);
      const { begin, end } = yield* ExecutorCalls;
      const first = call(world);
      expect(yield* begin(first, LIMITS)).toBe("begun");
      expect(yield* begin(call(world), LIMITS)).toBe("begun");
      expect(yield* begin(call(world), LIMITS)).toBe("session_busy");
      expect(yield* begin(call(world, { sessionId: randomUUID() }), LIMITS)).toBe("begun");
      yield* end(first.id, DONE);
      expect(yield* begin(call(world), LIMITS)).toBe("begun");
      const late = NOON + LIMITS.openMs;
      expect(yield* begin(call(world, { at: late }), LIMITS)).toBe("begun");
    }),
  );

  check(
    "are refused over the limit of a connector, without a row",
    Effect.gen(function* () {
      const world = yield* makeWorld(1);
      const { begin, deny, list } = yield* ExecutorCalls;
      for (let n = 0; n < LIMITS.perConnector; n += 1)
        expect(yield* deny(call(world), { message: "No.", limits: LIMITS })).toBe(true);
      expect(yield* begin(call(world), LIMITS)).toBe("connector_busy");
      expect(yield* deny(call(world), { message: "No.", limits: LIMITS })).toBe(false);
      expect(yield* begin(call(world, { connector: "other" }), LIMITS)).toBe("begun");
      expect(yield* begin(call(world, { at: NOON + LIMITS.windowMs }), LIMITS)).toBe("begun");
      const { items } = yield* list(world.projectId, { limit: 50, cursor: null, connector: "docs" });
      expect(items).toHaveLength(LIMITS.perConnector + 1);
    }),
  );

  check(
    "never pass the limit when they begin at the same time",
    Effect.gen(function* () {
      const world = yield* makeWorld(1);
      const { begin } = yield* ExecutorCalls;
      const calls = Array.from({ length: 6 }, () => call(world));
      const begun = yield* Effect.forEach(calls, (one) => begin(one, LIMITS), { concurrency: "unbounded" });
      expect(begun.filter((answer) => answer === "begun")).toHaveLength(LIMITS.atOnce);
    }),
  );
};

const checkCalls = (check: Check): void => {
  describe("calls of connectors", () => {
    check(
      "have a row before their outcome, which is written once",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const { begin, end, list } = yield* ExecutorCalls;
        const one = call(world, { argumentsPreview: '{"text":"\\u0000"}', pin: "p" });
        const all = { limit: 50, cursor: null };
        yield* begin(one, LIMITS);
        const open = {
          begunAt: null,
          approver: null,
          endedAt: null,
          outcome: null,
          message: null,
          upstreamStatus: null,
          resultBytes: null,
        };
        expect((yield* list(world.projectId, all)).items).toEqual([{ ...one, ...open }]);
        expect(yield* end(one.id, DONE)).toBe(true);
        expect(yield* end(one.id, { ...DONE, outcome: "error" })).toBe(false);
        const { now, ...done } = DONE;
        expect((yield* list(world.projectId, all)).items).toEqual([
          { ...one, ...open, ...done, endedAt: now },
        ]);
      }),
    );

    check(
      "are listed newest first, in pages, of one project, session or connector",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const other = yield* addProject(world);
        const { deny, list } = yield* ExecutorCalls;
        const rows = [0, 1, 2].map((n) => call(world, { at: NOON + n, ...(n === 1 && { connector: "x" }) }));
        for (const row of rows) yield* deny(row, { message: "No.", limits: LIMITS });
        yield* deny(call(world, { projectId: other }), { message: "No.", limits: LIMITS });
        const first = yield* list(world.projectId, { limit: 2, cursor: null });
        const second = yield* list(world.projectId, { limit: 2, cursor: first.nextCursor });
        expect([...first.items, ...second.items].map(({ id }) => id)).toEqual(
          rows.toReversed().map(({ id }) => id),
        );
        expect(first.items[0]).toMatchObject({ outcome: "denied", message: "No.", endedAt: NOON + 2 });
        const filtered = (fields: { readonly sessionId?: string; readonly connector?: string }) =>
          Effect.map(
            list(world.projectId, { limit: 9, cursor: null, ...fields }),
            ({ items }) => items.length,
          );
        expect(yield* filtered({ connector: "x" })).toBe(1);
        expect(yield* filtered({ sessionId: world.projectId })).toBe(3);
        expect(yield* filtered({ sessionId: randomUUID() })).toBe(0);
        expect((yield* Effect.flip(list(other, { limit: 1, cursor: "x" })))._tag).toBe("BadCursor");
      }),
    );

    check(
      "end as unknown if the service was stopped, and are removed when their time is over",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const { begin, abandon, list, prune } = yield* ExecutorCalls;
        const all = { limit: 50, cursor: null };
        yield* begin(call(world), LIMITS);
        expect(yield* abandon(NOON, NOON + 9)).toBe(0);
        expect(yield* abandon(NOON + 1, NOON + 9)).toBe(1);
        expect((yield* list(world.projectId, all)).items[0]).toMatchObject({
          outcome: "unknown",
          message: ABANDONED,
          endedAt: NOON + 9,
        });
        expect(yield* prune(NOON)).toBe(0);
        expect(yield* prune(NOON + 1)).toBe(1);
        expect((yield* list(world.projectId, all)).items).toEqual([]);
      }),
    );
    checkLimits(check);
  });
};

export const checkConnectors = (check: Check): void => {
  checkCredentials(check);
  checkCatalogues(check);
  checkCalls(check);
};
