/** Conformance: tokens, projects and secrets. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { StoreHealth } from "../../../../src/store/ports/health.ts";
import { Identity, type NewToken } from "../../../../src/store/ports/people/identity.ts";
import { Pauses } from "../../../../src/store/ports/pauses.ts";
import { Projects } from "../../../../src/store/ports/projects/projects.ts";
import { type Check } from "../fixture.ts";
import { checkSecrets } from "../projects/secrets.ts";
import { admitSession, openSandbox } from "../../../support/world/sessions.ts";
import { addProject, hash, makeWorld, NOON, type World } from "../../../support/world/world.ts";

const newToken = (world: World, fields: Partial<NewToken> = {}): NewToken => ({
  id: randomUUID(),
  accountId: world.accountId,
  userId: world.userId,
  projectId: null,
  name: "laptop",
  hash: hash(),
  origin: "user",
  expiresAt: null,
  now: NOON,
  ...fields,
});

const ids = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id);
const newest = { limit: 10, cursor: null } as const;

const checkIdentity = (check: Check): void => {
  describe("identity", () => {
    check(
      "is created once, on an empty database, with a valid token",
      Effect.gen(function* () {
        const world = yield* makeWorld(3);
        const { bootstrap, account, authenticate } = yield* Identity;
        const again = yield* bootstrap({
          accountId: randomUUID(),
          userId: randomUUID(),
          tokenId: randomUUID(),
          tokenHash: hash(),
          tier: "free",
          cap: 1,
          now: NOON,
        });
        expect(again).toBe(false);
        expect(yield* account(world.accountId)).toEqual({
          id: world.accountId,
          name: "default",
          tier: "free",
          sessionCap: 3,
          activeSessions: 0,
          queuedFires: 0,
        });
        expect(yield* account(randomUUID())).toBe(null);
        expect(yield* authenticate(world.tokenHash, NOON)).toMatchObject({
          kind: "access",
          origin: "user",
          accountId: world.accountId,
          user: { id: world.userId, name: "admin" },
          projectId: null,
          sessionId: null,
          sandboxId: null,
        });
        expect(yield* authenticate(hash(), NOON)).toBe(null);
      }),
    );

    check(
      "accepts a token until it expires or is deleted, and sometimes notes its use",
      Effect.gen(function* () {
        const world = yield* makeWorld(3);
        const { createToken, deleteToken, authenticate, listTokens } = yield* Identity;
        const token = newToken(world, { projectId: world.projectId, expiresAt: NOON + 1_000_000 });
        expect(yield* createToken(token)).toEqual({
          id: token.id,
          name: "laptop",
          origin: "user",
          userId: world.userId,
          projectId: world.projectId,
          createdAt: NOON,
          expiresAt: NOON + 1_000_000,
          lastUsedAt: null,
        });
        const used = Effect.map(
          listTokens({ accountId: world.accountId, userId: null }, newest),
          (page) => page.items.find(({ id }) => id === token.id)?.lastUsedAt,
        );
        expect(yield* authenticate(token.hash, NOON + 1)).toMatchObject({ projectId: world.projectId });
        expect(yield* used).toBe(NOON + 1);
        yield* authenticate(token.hash, NOON + 60_000);
        expect(yield* used).toBe(NOON + 1);
        yield* authenticate(token.hash, NOON + 60_002);
        expect(yield* used).toBe(NOON + 60_002);
        expect(yield* authenticate(token.hash, NOON + 1_000_000)).toBe(null);
        expect(yield* deleteToken({ accountId: randomUUID(), userId: null }, token.id, NOON)).toBe(false);
        expect(yield* deleteToken({ accountId: world.accountId, userId: null }, token.id, NOON)).toBe(true);
        expect(yield* deleteToken({ accountId: world.accountId, userId: null }, token.id, NOON)).toBe(false);
        expect(yield* authenticate(token.hash, NOON)).toBe(null);
      }),
    );

    check(
      "keeps the pause of a restored copy until it ends",
      Effect.gen(function* () {
        const { since, begin, end } = yield* Pauses;
        expect(yield* since).toBe(null);
        yield* begin(NOON);
        yield* begin(NOON + 1);
        expect(yield* since).toBe(NOON);
        expect([yield* end, yield* end, yield* since]).toEqual([true, false, null]);
      }),
    );

    check(
      "lists and deletes the tokens of users, never those of sandboxes",
      Effect.gen(function* () {
        const world = yield* makeWorld(3);
        const { listTokens, deleteToken, authenticate } = yield* Identity;
        const sandbox = yield* openSandbox(yield* admitSession(world));
        const page = yield* listTokens({ accountId: world.accountId, userId: null }, newest);
        expect(page.items.map(({ name }) => name)).toEqual(["first token"]);
        const principal = yield* authenticate(sandbox.cliHash, NOON);
        expect(
          yield* deleteToken({ accountId: world.accountId, userId: null }, principal?.tokenId ?? "", NOON),
        ).toBe(false);
        expect(yield* authenticate(sandbox.cliHash, NOON)).not.toBe(null);
      }),
    );
  });
};

const checkProjects = (check: Check): void => {
  describe("a project", () => {
    check(
      "is created, changed field by field and listed, and restricted lists contain it alone",
      Effect.gen(function* () {
        const world = yield* makeWorld(3);
        const { get, update, list } = yield* Projects;
        const made = yield* get(world.projectId);
        expect(made).toEqual({
          id: world.projectId,
          accountId: world.accountId,
          name: made?.name,
          status: "active",
          deletesAt: null,
          repository: { kind: "hosted" },
          defaultBranch: "main",
          triggersPaused: false,
          createdBy: world.userId,
          defaultRole: "member",
          mergeRole: "member",
          approvalsRequired: 0,
          manifest: { commit: null, syncedAt: null, error: null },
          version: made?.version,
          createdAt: NOON,
          updatedAt: NOON,
        });
        expect(yield* update(world.projectId, { triggersPaused: true }, NOON + 1)).toEqual({
          ...made,
          triggersPaused: true,
          version: (made?.version ?? 0) + 1,
          updatedAt: NOON + 1,
        });
        expect(yield* update(randomUUID(), { name: "x" }, NOON)).toBe(null);
        const other = yield* addProject(world, NOON + 2);
        yield* update(world.projectId, { status: "archived", name: "old shop" }, NOON + 3);
        const { items } = yield* list(
          { accountId: world.accountId, userId: null },
          { ...newest, onlyId: null },
        );
        expect(ids(items)).toEqual([other, world.projectId]);
        const bound = yield* list(
          { accountId: world.accountId, userId: null },
          { ...newest, onlyId: world.projectId },
        );
        expect(bound.items).toMatchObject([{ name: "old shop", status: "archived" }]);
      }),
    );

    check(
      "stores the encrypted credential of a repository at another server, apart from its record",
      Effect.gen(function* () {
        const world = yield* makeWorld(3);
        const { create, credential, get } = yield* Projects;
        const id = randomUUID();
        const repository = { kind: "git", url: "https://example.org/a.git" } as const;
        const envelope = new Uint8Array([1, 0, 255]);
        const project = { id, accountId: world.accountId, name: "shop", defaultBranch: "main" };
        yield* create({ ...project, repository, createdBy: world.userId, credential: envelope, now: NOON });
        expect(new Uint8Array((yield* credential(id)) ?? [])).toEqual(envelope);
        expect(yield* credential(world.projectId)).toBeNull();
        expect(yield* credential(randomUUID())).toBeNull();
        expect((yield* get(id))?.repository).toEqual(repository);
      }),
    );

    check(
      "is distinguished from unknown ids",
      Effect.gen(function* () {
        const world = yield* makeWorld(3);
        const { unheld } = yield* Projects;
        const archived = yield* addProject(world);
        yield* (yield* Projects).update(archived, { status: "archived" }, NOON);
        const strangers = [randomUUID(), randomUUID()];
        const found = yield* unheld([world.projectId, ...strangers, archived]);
        expect(found.toSorted()).toEqual(strangers.toSorted());
        expect(yield* unheld([])).toEqual([]);
      }),
    );

    check(
      "gets another credential in its place, or none, and reports the change",
      Effect.gen(function* () {
        const world = yield* makeWorld(3);
        const { create, credential, get, replaceCredential } = yield* Projects;
        const id = randomUUID();
        const repository = { kind: "git", url: "https://example.org/a.git" } as const;
        const project = { id, accountId: world.accountId, name: "shop", defaultBranch: "main" };
        yield* create({ ...project, repository, createdBy: world.userId, now: NOON });
        const made = yield* get(id);
        const kept = Effect.map(credential(id), (envelope) => envelope && [...envelope]);
        for (const [at, bytes] of [[1, 0, 255], [2], null, [3]].entries()) {
          const replaced = yield* replaceCredential(id, bytes && Uint8Array.from(bytes), NOON + at);
          expect(yield* kept).toEqual(bytes);
          expect(replaced).toEqual({ ...made, updatedAt: NOON + at, version: (made?.version ?? 0) + at + 1 });
          expect(yield* get(id)).toEqual(replaced);
        }
        expect(yield* replaceCredential(randomUUID(), Uint8Array.from([1]), NOON)).toBeNull();
        expect(yield* credential(world.projectId)).toBeNull();
      }),
    );

    check(
      "keeps the last valid manifest beside the errors of the newest",
      Effect.gen(function* () {
        const { projectId } = yield* makeWorld(3);
        const { get, states, recordManifest, lastFired } = yield* Projects;
        const manifests = Effect.map(states([projectId]), ([state]) => [
          state?.manifest,
          state?.manifestFailure,
        ]);
        const version = Effect.map(get(projectId), (project) => project?.version ?? 0);
        const environment = {
          dockerfile: "env/Dockerfile",
          context: "env",
          target: null,
          args: { VERSION: "o'1" },
          commit: "c1",
          key: "k1",
        };
        const good = {
          commit: "c1",
          text: "a = 1",
          agents: ["ada", "o'hara"],
          bringsModel: true,
          environment,
        };
        const failure = { message: "line 1", path: "triggers", line: 1 };
        expect(yield* manifests).toEqual([null, null]);
        const before = yield* version;
        yield* recordManifest(projectId, { commit: "c1", good, failure: null, now: NOON });
        expect(yield* version).toBe(before + 1);
        yield* recordManifest(projectId, { commit: "c1", good, failure: null, now: NOON });
        expect(yield* version).toBe(before + 1);
        yield* recordManifest(projectId, { commit: "c2", good: null, failure, now: NOON + 1 });
        expect(yield* version).toBe(before + 2);
        expect(yield* manifests).toEqual([good, failure]);
        expect((yield* get(projectId))?.manifest).toEqual({
          commit: "c2",
          syncedAt: NOON + 1,
          error: "line 1",
        });
        const empty = { commit: "c3", text: "", agents: [], bringsModel: null, environment: null };
        yield* recordManifest(projectId, { commit: "c3", good: empty, failure: null, now: NOON + 2 });
        expect(yield* manifests).toEqual([empty, null]);
        expect(yield* lastFired(projectId)).toEqual(new Map());
      }),
    );

    check(
      "gets another version when its account's tier changes",
      Effect.gen(function* () {
        const { accountId, projectId } = yield* makeWorld(3);
        const { get, states, changedSince } = yield* Projects;
        const { setTier } = yield* Identity;
        const version = Effect.map(get(projectId), (project) => project?.version ?? 0);
        const before = yield* version;
        const { since } = yield* changedSince(null);
        yield* setTier(accountId, "pro", 7);
        expect(yield* version).toBe(before + 1);
        expect((yield* states([projectId]))[0]?.tier).toBe("pro");
        expect((yield* changedSince(since)).changed.map(({ id }) => id)).toContain(projectId);
      }),
    );
  });
};

export const checkRecords = (check: Check): void => {
  checkIdentity(check);
  checkProjects(check);
  checkSecrets(check);
  check(
    "reports that it is reachable",
    Effect.flatMap(StoreHealth, ({ ping }) => ping),
  );
};
