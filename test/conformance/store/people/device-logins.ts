/** Programs that wait for a person to sign them in: ports/people/device-logins.ts D1 to D5. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { expect } from "vitest";
import {
  LOGIN_LIFE_MS,
  LOGINS_MAX,
  MISSES_MAX,
  MISSES_MS,
  POLL_MS,
  SLOWER_MS,
} from "../../../../src/domain/person/device-login.ts";
import { DeviceLogins } from "../../../../src/store/ports/people/device-logins.ts";
import { Identity } from "../../../../src/store/ports/people/identity.ts";
import { People } from "../../../../src/store/ports/people/people.ts";
import { hash, makeWorld, NOON } from "../../../support/world/world.ts";
import { addToken } from "./browsers.ts";
import { type Check } from "../fixture.ts";

const WHOLE = { projectId: null, expiresAt: null };

/** A world, a login that waits there, and how its program and its person go on. */
const scene = Effect.gen(function* () {
  const world = yield* makeWorld(5);
  const logins = yield* DeviceLogins;
  const begin = (now = NOON, address = "192.0.2.7") => {
    const login = { id: randomUUID(), deviceHash: hash(), userHash: hash(), client: "laptop" };
    return Effect.as(logins.begin({ ...login, address, userAgent: "platform", now }), login);
  };
  const login = yield* begin();
  const approver = yield* addToken(world);
  const typed = (userHash = login.userHash, now = NOON) => ({
    userId: world.userId,
    tokenId: approver.id,
    userHash,
    now,
  });
  const claim = (now = NOON) => {
    const token = { id: randomUUID(), hash: hash() };
    return Effect.map(logins.claim({ deviceHash: login.deviceHash, token, now }), (claimed) => ({
      ...claimed,
      token,
    }));
  };
  return { world, logins, approver, login, begin, typed, claim, identity: yield* Identity };
});

const checkDecisions = (check: Check): void => {
  check(
    "are shown before the decision, and give one token of the person and of what she chose [T15]",
    Effect.gen(function* () {
      const { world, logins, login, typed, claim, identity } = yield* scene;
      const shown = {
        id: login.id,
        client: "laptop",
        address: "192.0.2.7",
        userAgent: "platform",
        createdAt: NOON,
        expiresAt: NOON + LOGIN_LIFE_MS,
      };
      expect(yield* logins.look(typed())).toEqual(shown);
      expect((yield* claim()).kind).toBe("waiting");
      const expiresAt = NOON + 1000 * 60 * 60;
      const grant = { projectId: world.projectId, expiresAt };
      expect(yield* logins.decide({ ...typed(), grant })).toEqual(shown);
      const { token, ...claimed } = yield* claim();
      const user = { id: world.userId, name: expect.any(String) as string };
      const { accountId, projectId } = world;
      expect(claimed).toEqual({ kind: "token", accountId, user, client: "laptop", projectId, expiresAt });
      expect(yield* identity.authenticate(token.hash, NOON)).toMatchObject({
        tokenId: token.id,
        kind: "access",
        origin: "user",
        user: { id: world.userId },
        projectId: world.projectId,
        expiresAt,
      });
      expect((yield* claim()).kind).toBe("unknown");
    }),
  );
  check(
    "give none if the browser or token that approved has ended meanwhile [T15]",
    Effect.gen(function* () {
      const { world, logins, approver, typed, claim, identity } = yield* scene;
      yield* logins.decide({ ...typed(), grant: WHOLE });
      yield* identity.deleteToken({ accountId: world.accountId, userId: null }, approver.id, NOON);
      expect((yield* claim()).kind).toBe("denied");
    }),
  );
  check(
    "give one token if their program asks twice at once [T15]",
    Effect.gen(function* () {
      const { logins, typed, claim, identity } = yield* scene;
      yield* logins.decide({ ...typed(), grant: WHOLE });
      const both = yield* Effect.all([claim(), claim()], { concurrency: "unbounded" });
      expect(both.map(({ kind }) => kind).toSorted()).toEqual(["token", "unknown"]);
      for (const { kind, token } of both)
        expect((yield* identity.authenticate(token.hash, NOON)) !== null).toBe(kind === "token");
    }),
  );
  check(
    "are decided once, also by two people at once [T15]",
    Effect.gen(function* () {
      const { logins, typed, claim } = yield* scene;
      const decisions = [WHOLE, null].map((grant) => logins.decide({ ...typed(), grant }));
      const both = yield* Effect.all(decisions, { concurrency: "unbounded" });
      expect(both.filter((login) => login !== null)).toHaveLength(1);
      expect((yield* claim()).kind).toBe(both[0] === null ? "denied" : "token");
    }),
  );
  check(
    "end with their time, with a denial, and with their approver's deactivation [T15]",
    Effect.gen(function* () {
      const { world, logins, login, begin, typed, claim } = yield* scene;
      expect(yield* logins.look(typed(login.userHash, NOON + LOGIN_LIFE_MS))).toBe(null);
      expect((yield* claim(NOON + LOGIN_LIFE_MS)).kind).toBe("unknown");
      yield* logins.decide({ ...typed(), grant: null });
      expect(yield* logins.look(typed())).toBe(null);
      expect((yield* claim()).kind).toBe("denied");
      expect((yield* claim()).kind).toBe("unknown");
      const other = yield* begin();
      yield* (yield* People).invite({
        id: randomUUID(),
        accountId: world.accountId,
        createdBy: world.userId,
        hash: "invitation",
        name: "Ada",
        role: "owner",
        projects: [],
        expiresAt: NOON + 1,
        now: NOON,
      });
      const ada = randomUUID();
      const token = { tokenId: randomUUID(), tokenHash: hash() };
      yield* (yield* People).accept({ hash: "invitation", userId: ada, name: "Ada", ...token, now: NOON });
      yield* logins.decide({
        userId: ada,
        tokenId: randomUUID(),
        userHash: other.userHash,
        now: NOON,
        grant: WHOLE,
      });
      yield* (yield* People).deactivate(world.accountId, ada, NOON);
      const late = { deviceHash: other.deviceHash, token: { id: randomUUID(), hash: hash() }, now: NOON };
      expect(yield* logins.claim(late)).toEqual({ kind: "denied" });
    }),
  );
};

const checkLimits = (check: Check): void => {
  check(
    "slow a program down that asks too early",
    Effect.gen(function* () {
      const { claim } = yield* scene;
      expect((yield* claim(NOON)).kind).toBe("waiting");
      expect((yield* claim(NOON + POLL_MS - 400)).kind).toBe("waiting");
      expect((yield* claim(NOON + POLL_MS)).kind).toBe("too_early");
      const next = NOON + POLL_MS + POLL_MS + SLOWER_MS;
      expect((yield* claim(next)).kind).toBe("waiting");
      expect((yield* claim(next + POLL_MS + SLOWER_MS)).kind).toBe("waiting");
    }),
  );
  check(
    "are hidden from a person after five wrong codes, for ten minutes [T16]",
    Effect.gen(function* () {
      const { logins, begin, typed } = yield* scene;
      const guesses = Array.from({ length: MISSES_MAX + 3 }, () => logins.look(typed(hash())));
      const answers = yield* Effect.all(guesses, { concurrency: "unbounded" });
      expect(answers.filter((answer) => answer === null)).toHaveLength(MISSES_MAX);
      expect(answers.filter((answer) => answer === "too_many")).toHaveLength(3);
      expect(yield* logins.look(typed())).toBe("too_many");
      expect(yield* logins.decide({ ...typed(), grant: WHOLE })).toBe("too_many");
      const later = NOON + MISSES_MS;
      const other = yield* begin(later);
      expect(yield* logins.look(typed(other.userHash, later))).toMatchObject({ id: other.id });
      // The right code does not forgive the wrong ones: anyone can begin a login of her own.
      for (let misses = 0; misses < MISSES_MAX; misses += 1) {
        expect(yield* logins.look(typed(hash(), later))).toBe(null);
        if (misses < MISSES_MAX - 1)
          expect(yield* logins.look(typed(other.userHash, later))).toMatchObject({ id: other.id });
      }
      expect(yield* logins.look(typed(other.userHash, later))).toBe("too_many");
    }),
  );
  check(
    "are bounded in number: a new one ends the oldest of the address that has most",
    Effect.gen(function* () {
      const { logins, login, begin, typed } = yield* scene;
      const other = yield* begin(NOON - 1, "198.51.100.7");
      const others = Array.from({ length: LOGINS_MAX - 2 }, () => begin(NOON + 1));
      yield* Effect.all(others, { concurrency: 8, discard: true });
      expect(yield* logins.look(typed())).toMatchObject({ id: login.id });
      yield* begin(NOON + 2);
      expect(yield* logins.look(typed())).toBe(null);
      expect(yield* logins.look(typed(other.userHash))).toMatchObject({ id: other.id });
    }),
  );
};

export const checkDeviceLogins = (check: Check): void => {
  checkDecisions(check);
  checkLimits(check);
};
