/** Signed-in browsers and one-time links. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { describe, expect } from "vitest";
import {
  BrowserSessions,
  IDLE_MS,
  LIFE_MS,
  LINKS_MAX,
  SESSIONS_MAX,
} from "../../../../src/store/ports/people/browser-sessions.ts";
import { Identity, type NewToken } from "../../../../src/store/ports/people/identity.ts";
import { type Check } from "../fixture.ts";
import { hash, makeWorld, NOON, type World } from "../../../support/world/world.ts";

const MINUTE_MS = 60_000;
export const PAGE = { limit: 200, cursor: null };

export const browser = (now = NOON) => ({
  id: randomUUID(),
  hash: hash(),
  address: "192.0.2.7",
  userAgent: "Firefox",
  now,
});

export const addToken = Effect.fnUntraced(function* (world: World, fields: Partial<NewToken> = {}) {
  const token = { id: randomUUID(), hash: hash() };
  yield* (yield* Identity).createToken({
    ...token,
    accountId: world.accountId,
    userId: world.userId,
    projectId: null,
    name: "laptop",
    origin: "user",
    expiresAt: null,
    now: NOON,
    ...fields,
  });
  return token;
});

/** A world with a token, and what its tests ask. */
export const scene = Effect.gen(function* () {
  const world = yield* makeWorld(5);
  const browsers = yield* BrowserSessions;
  const identity = yield* Identity;
  const ids = (now = NOON) =>
    Effect.map(browsers.list(world.userId, { ...PAGE, now }), ({ items }) => items.map(({ id }) => id));
  const isAlive = (row: { readonly hash: string }, now = NOON) =>
    Effect.map(identity.authenticate(row.hash, now), (caller) => caller !== null);
  const link = (tokenHash: string, now = NOON) => {
    const code = hash();
    return Effect.as(browsers.issueLink({ hash: code, tokenHash, expiresAt: now + 1000, now }), code);
  };
  return { world, browsers, identity, ids, isAlive, link, token: yield* addToken(world) };
});

const heard = Effect.fnUntraced(function* () {
  const all: (string | null)[] = [];
  yield* (yield* Identity).endings((id) => void all.push(id));
  return all;
});

const checkSessions = (check: Check): void => {
  check(
    "reach what their token reaches, and are listed for their person alone",
    Effect.gen(function* () {
      const { world, browsers, identity, ids, token } = yield* scene;
      const bound = yield* addToken(world, { projectId: world.projectId });
      const [first, second] = [browser(), browser(NOON + 1)];
      expect(yield* browsers.open(token.hash, first)).toMatchObject({ id: world.userId });
      yield* browsers.open(bound.hash, second);
      expect(yield* identity.authenticate(first.hash, NOON)).toMatchObject({
        tokenId: first.id,
        kind: "browser",
        origin: "user",
        user: { id: world.userId },
        projectId: null,
        openedBy: token.id,
        expiresAt: NOON + IDLE_MS,
      });
      expect(yield* identity.authenticate(second.hash, NOON + 1)).toMatchObject({
        projectId: world.projectId,
      });
      expect(yield* ids(NOON + 1)).toEqual([second.id, first.id]);
      const { items } = yield* browsers.list(world.userId, { ...PAGE, limit: 1, now: NOON });
      expect(items).toEqual([
        {
          id: second.id,
          signedInBy: "token",
          openedBy: bound.id,
          createdAt: NOON + 1,
          lastUsedAt: NOON + 1,
          expiresAt: NOON + 1 + IDLE_MS,
          address: "192.0.2.7",
          userAgent: "Firefox",
        },
      ]);
      expect((yield* browsers.list(randomUUID(), { ...PAGE, now: NOON })).items).toEqual([]);
      // They are no tokens that a person made.
      const owner = { accountId: world.accountId, userId: null };
      const tokens = yield* identity.listTokens(owner, PAGE);
      expect(tokens.items.map(({ id }) => id)).not.toContain(first.id);
      expect(yield* identity.deleteToken(owner, first.id, NOON)).toBe(false);
    }),
  );

  check(
    "hand on what their token reaches, and until its end",
    Effect.gen(function* () {
      const { world, browsers, identity, token } = yield* scene;
      const brief = yield* addToken(world, { expiresAt: NOON + MINUTE_MS });
      const [lasting, ending] = [browser(), browser()];
      yield* browsers.open(token.hash, lasting);
      yield* browsers.open(brief.hash, ending);
      const ends = Effect.forEach([token, brief, lasting, ending], ({ hash: of }) =>
        Effect.map(identity.authenticate(of, NOON), (caller) => caller?.reachEndsAt),
      );
      expect(yield* ends).toEqual([null, NOON + MINUTE_MS, null, NOON + MINUTE_MS]);
    }),
  );

  check(
    "end eight hours after their last use, and seven days after their beginning",
    Effect.gen(function* () {
      const { browsers, identity, isAlive, token, ids } = yield* scene;
      const [unused, used] = [browser(), browser()];
      yield* browsers.open(token.hash, unused);
      yield* browsers.open(token.hash, used);
      let now = NOON;
      while (now < NOON + LIFE_MS - IDLE_MS) {
        now += IDLE_MS - MINUTE_MS;
        expect(yield* isAlive(used, now)).toBe(true);
      }
      expect(yield* isAlive(unused, NOON + IDLE_MS)).toBe(false);
      expect(yield* ids(now)).toEqual([used.id]);
      expect(yield* identity.authenticate(used.hash, NOON + LIFE_MS - 1)).toMatchObject({
        expiresAt: NOON + LIFE_MS,
      });
      expect(yield* isAlive(used, NOON + LIFE_MS)).toBe(false);
    }),
  );

  check(
    "end with the token that opened them [T03]",
    Effect.gen(function* () {
      const { world, browsers, identity, isAlive, ids } = yield* scene;
      const brief = yield* addToken(world, { expiresAt: NOON + 5 * MINUTE_MS });
      const revoked = yield* addToken(world);
      const [one, other] = [browser(), browser()];
      yield* browsers.open(brief.hash, one);
      yield* browsers.open(revoked.hash, other);
      // A use does not move the end past the token's.
      expect(yield* identity.authenticate(one.hash, NOON + 4 * MINUTE_MS)).toMatchObject({
        expiresAt: NOON + 5 * MINUTE_MS,
      });
      expect(yield* isAlive(one, NOON + 5 * MINUTE_MS)).toBe(false);
      const grant = { projectId: null, needs: "viewer", session: null } as const;
      const held = { ...grant, credential: { kind: "token", id: other.id } } as const;
      expect(yield* identity.ended([held], NOON)).toEqual([]);
      yield* identity.deleteToken({ accountId: world.accountId, userId: null }, revoked.id, NOON);
      expect(yield* isAlive(other)).toBe(false);
      expect(yield* identity.ended([held], NOON)).toEqual([held]);
      expect(yield* ids()).toEqual([one.id]);
      expect(yield* browsers.open(revoked.hash, browser())).toBe(null);
    }),
  );

  check(
    "are opened by no token of a sandbox, no browser's cookie and no unknown token [T08]",
    Effect.gen(function* () {
      const { world, browsers, token } = yield* scene;
      const agent = yield* addToken(world, { origin: "session" });
      const open = browser();
      yield* browsers.open(token.hash, open);
      for (const opener of [agent.hash, open.hash, hash()])
        expect(yield* browsers.open(opener, browser())).toBe(null);
    }),
  );

  check(
    "are ended by their person, one or all, and by signing out, and every node hears it",
    Effect.gen(function* () {
      const { world, browsers, isAlive, token } = yield* scene;
      const [one, two, three, four] = [browser(), browser(), browser(), browser()];
      for (const row of [one, two, three, four]) yield* browsers.open(token.hash, row);
      yield* Effect.scoped(
        Effect.gen(function* () {
          const endings = yield* heard();
          expect(yield* browsers.end(randomUUID(), one.id)).toBe(false);
          expect(yield* browsers.end(world.userId, token.id)).toBe(false);
          expect(yield* browsers.end(world.userId, one.id)).toBe(true);
          expect(yield* browsers.end(world.userId, one.id)).toBe(false);
          yield* browsers.signOut(two.hash);
          yield* browsers.signOut(token.hash);
          expect(yield* Effect.forEach([one, two, three, token], (row) => isAlive(row))).toEqual([
            false,
            false,
            true,
            true,
          ]);
          yield* browsers.endAll(world.userId);
          expect(yield* isAlive(four)).toBe(false);
          expect(yield* isAlive(token)).toBe(true);
          yield* Effect.promise(() =>
            expect.poll(() => endings).toEqual(expect.arrayContaining([one.id, two.id, three.id, four.id])),
          );
        }),
      );
    }),
  );

  check(
    "are limited for each person, and ended ones are removed",
    Effect.gen(function* () {
      const { world, browsers, isAlive, ids, token } = yield* scene;
      const all = Array.from({ length: SESSIONS_MAX + 2 }, (_, place) => browser(NOON + place));
      for (const row of all) yield* browsers.open(token.hash, row);
      const now = NOON + all.length;
      expect((yield* ids(now)).length).toBe(SESSIONS_MAX);
      expect(yield* Effect.forEach(all.slice(0, 3), (row) => isAlive(row, now))).toEqual([
        false,
        false,
        true,
      ]);
      yield* browsers.open(token.hash, browser(now + IDLE_MS));
      expect((yield* browsers.list(world.userId, { ...PAGE, now: NOON })).items.length).toBe(1);
    }),
  );
};

const checkLinks = (check: Check): void => {
  check(
    "one-time links open one browser, also for concurrent requests, until they expire",
    Effect.gen(function* () {
      const { world, browsers, ids, link, token } = yield* scene;
      const code = yield* link(token.hash);
      expect(yield* browsers.person(code, NOON)).toMatchObject({ id: world.userId });
      const answers = yield* Effect.all(
        Array.from({ length: 12 }, () => browsers.openLink(code, browser())),
        { concurrency: "unbounded" },
      );
      expect(answers.filter((answer) => answer !== null).map(({ id }) => id)).toEqual([world.userId]);
      expect((yield* ids()).length).toBe(1);
      const late = yield* link(token.hash);
      expect(yield* browsers.person(late, NOON + 1000)).toBe(null);
      expect(yield* browsers.person(code, NOON)).toBe(null);
      expect(yield* browsers.openLink(late, browser(NOON + 1000))).toBe(null);
      expect(yield* browsers.openLink(hash(), browser())).toBe(null);
    }),
  );

  check(
    "one-time links end with their token, and are limited",
    Effect.gen(function* () {
      const { world, browsers, identity, link, token } = yield* scene;
      const revoked = yield* addToken(world);
      const code = yield* link(revoked.hash);
      yield* identity.deleteToken({ accountId: world.accountId, userId: null }, revoked.id, NOON);
      expect(yield* browsers.person(code, NOON)).toBe(null);
      expect(yield* browsers.openLink(code, browser())).toBe(null);
      const first = yield* link(token.hash);
      const second = yield* link(token.hash, NOON + 1);
      for (let place = 2; place <= LINKS_MAX; place += 1) yield* link(token.hash, NOON + place);
      expect(yield* browsers.openLink(first, browser())).toBe(null);
      expect(yield* browsers.openLink(second, browser(NOON + 500))).not.toBe(null);
    }),
  );
};

export const checkBrowsers = (check: Check): void => {
  describe("signed-in browsers", () => {
    checkSessions(check);
    checkLinks(check);
  });
};
