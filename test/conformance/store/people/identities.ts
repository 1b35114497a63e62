/** The identities that sign-in providers give people, and how long people may do without signing in there. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { describe, expect } from "vitest";
import { BrowserSessions } from "../../../../src/store/ports/people/browser-sessions.ts";
import { Identities, IDENTITIES_MAX, type Entry } from "../../../../src/store/ports/people/identities.ts";
import { Identity } from "../../../../src/store/ports/people/identity.ts";
import { People } from "../../../../src/store/ports/people/people.ts";
import { hash, NOON } from "../../../support/world/world.ts";
import { addToken, browser, PAGE, scene } from "./browsers.ts";
import { type Check } from "../fixture.ts";

const NONE: Entry = { by: "none" };
const SSO = "https://sso.example.com";
const ADA = { issuer: SSO, subject: "ada" };

/** As a provider gives it. */
const given = (identity: typeof ADA, name = "Ada", email: string | null = null) => ({
  ...identity,
  name,
  email,
  id: randomUUID(),
});

const signingIn = Effect.gen(function* () {
  const { world, isAlive } = yield* scene;
  const identities = yield* Identities;
  const signUp: Entry = { by: "sign_up", accountId: world.accountId };
  const signIn = Effect.fnUntraced(function* (identity: typeof ADA, entry: Entry, session = browser()) {
    const newPerson = { id: randomUUID(), name: "Ada" };
    return yield* identities.signIn({
      identity: given(identity),
      signedInBy: "oidc",
      session,
      entry,
      newPerson,
    });
  });
  /** A browser in which this person is signed in. */
  const signedIn = (userId: string) =>
    Effect.map(addToken(world, { userId }), ({ id }) => ({ userId, browserId: id }));
  return { world, identities, isAlive, signUp, signIn, signedIn };
});

const checkSignIns = (check: Check): void => {
  check(
    "identities belong to one person, and another subject or issuer is another person [T13]",
    Effect.gen(function* () {
      const { world, isAlive, signUp, signIn } = yield* signingIn;
      expect(yield* signIn(ADA, NONE)).toEqual({ kind: "unknown" });
      const session = browser();
      const made = yield* signIn(ADA, signUp, session);
      expect(made).toMatchObject({ kind: "signed_in", isNew: true, person: { name: "Ada" } });
      expect(yield* isAlive(session)).toBe(true);
      const caller = yield* (yield* Identity).authenticate(session.hash, NOON);
      expect(caller).toMatchObject({ accountId: world.accountId, accountRole: "member", openedBy: null });
      const again = yield* signIn(ADA, NONE);
      expect(again).toEqual({ ...made, isNew: false });
      for (const other of [
        { ...ADA, subject: "Ada" },
        { ...ADA, issuer: "https://sso.example.org" },
      ])
        expect(yield* signIn(other, NONE)).toEqual({ kind: "unknown" });
    }),
  );

  check(
    "identities make one person, also in concurrent sign-ins",
    Effect.gen(function* () {
      const { world, signUp, signIn } = yield* signingIn;
      const before = (yield* (yield* People).list(world.accountId, PAGE)).items.length;
      const results = yield* Effect.all(
        Array.from({ length: 8 }, () => signIn(ADA, signUp)),
        { concurrency: "unbounded" },
      );
      expect(results.filter((result) => result.kind === "signed_in" && result.isNew).length).toBe(1);
      const people = yield* (yield* People).list(world.accountId, PAGE);
      expect(people.items.length).toBe(before + 1);
    }),
  );

  check(
    "identities join by an invitation once, with the role that it grants",
    Effect.gen(function* () {
      const { world, signIn } = yield* signingIn;
      const invitation = hash();
      yield* (yield* People).invite({
        id: randomUUID(),
        accountId: world.accountId,
        hash: invitation,
        name: "Eve",
        role: "owner",
        projects: [],
        createdBy: world.userId,
        expiresAt: NOON + 1000,
        now: NOON,
      });
      const session = browser();
      const entry: Entry = { by: "invitation", hash: invitation };
      expect(yield* signIn(ADA, entry, session)).toMatchObject({ kind: "signed_in", isNew: true });
      const caller = yield* (yield* Identity).authenticate(session.hash, NOON);
      expect(caller?.accountRole).toBe("owner");
      expect(yield* signIn({ ...ADA, subject: "eve" }, entry)).toEqual({ kind: "invitation_invalid" });
      expect(yield* signIn({ ...ADA, subject: "eve" }, NONE)).toEqual({ kind: "unknown" });
    }),
  );

  check(
    "identities of a deactivated person open nothing, and her browsers end for good",
    Effect.gen(function* () {
      const { world, isAlive, signUp, signIn } = yield* signingIn;
      const session = browser();
      const made = yield* signIn(ADA, signUp, session);
      const id = made.kind === "signed_in" ? made.person.id : "";
      const people = yield* People;
      yield* people.deactivate(world.accountId, id, NOON);
      expect(yield* isAlive(session)).toBe(false);
      expect(yield* signIn(ADA, signUp)).toEqual({ kind: "deactivated" });
      yield* people.reactivate(world.accountId, id);
      expect(yield* isAlive(session)).toBe(false);
      expect(yield* signIn(ADA, NONE)).toMatchObject({ kind: "signed_in", isNew: false });
    }),
  );

  check(
    "identities are linked to the person who is signed in, if no other person has them",
    Effect.gen(function* () {
      const { world, identities, signUp, signIn, signedIn } = yield* signingIn;
      expect(yield* identities.link(given(ADA), yield* signedIn(world.userId), NOON)).toBe("linked");
      expect(yield* identities.link(given(ADA), yield* signedIn(world.userId), NOON)).toBe("linked");
      expect(yield* signIn(ADA, NONE)).toMatchObject({ person: { id: world.userId } });
      const made = yield* signIn({ ...ADA, subject: "bob" }, signUp);
      const bob = made.kind === "signed_in" ? made.person.id : "";
      expect(yield* identities.link(given(ADA), yield* signedIn(bob), NOON)).toBe("taken");
      yield* (yield* People).deactivate(world.accountId, bob, NOON);
      expect(yield* identities.link(given({ ...ADA, subject: "carol" }), yield* signedIn(bob), NOON)).toBe(
        "gone",
      );
    }),
  );
};

/** A person who joined by signing up, with one identity. */
const ada = Effect.gen(function* () {
  const world = yield* signingIn;
  const session = browser();
  const made = yield* world.signIn(ADA, world.signUp, session);
  const userId = made.kind === "signed_in" ? made.person.id : "";
  return { ...world, userId, session };
});

const checkRemovals = (check: Check): void => {
  check(
    "identities of a person are listed with their last sign-in, the oldest first",
    Effect.gen(function* () {
      const { identities, signIn, userId, signedIn } = yield* ada;
      const github = { issuer: "https://github.com", subject: "583231" };
      yield* identities.link(given(github, "octocat"), yield* signedIn(userId), NOON + 1);
      const rows = [
        { ...ADA, name: "Ada", createdAt: NOON, signedInAt: NOON },
        { ...github, name: "octocat", createdAt: NOON + 1, signedInAt: null },
      ];
      expect(yield* identities.list(userId)).toMatchObject(rows);
      yield* signIn(ADA, NONE, browser(NOON + 2));
      expect((yield* identities.list(userId))[0]?.signedInAt).toBe(NOON + 2);
      expect(yield* identities.list(randomUUID())).toEqual([]);
    }),
  );

  check(
    "identities are not added by a browser that was signed out meanwhile [T19]",
    Effect.gen(function* () {
      const { identities, userId, session } = yield* ada;
      const by = { userId, browserId: session.id };
      const added = { ...ADA, subject: "ada-2" };
      yield* (yield* BrowserSessions).endAll(userId);
      expect(yield* identities.link(given(added), by, NOON)).toBe("signed_out");
      expect((yield* identities.list(userId)).map(({ subject }) => subject)).toEqual(["ada"]);
    }),
  );

  check(
    "identities are at most twenty for a person",
    Effect.gen(function* () {
      const { identities, userId, signedIn } = yield* ada;
      for (let count = 1; count < IDENTITIES_MAX; count += 1)
        expect(
          yield* identities.link(given({ ...ADA, subject: `a${count}` }), yield* signedIn(userId), NOON),
        ).toBe("linked");
      expect(yield* identities.link(given({ ...ADA, subject: "b" }), yield* signedIn(userId), NOON)).toBe(
        "full",
      );
      expect(yield* identities.link(given(ADA), yield* signedIn(userId), NOON)).toBe("linked");
    }),
  );

  check(
    "identities that are removed end the browsers that they began and no others, and can be added again [T19]",
    Effect.gen(function* () {
      const { identities, isAlive, signIn, userId, session, signedIn } = yield* ada;
      const other = { ...ADA, subject: "ada-2" };
      yield* identities.link(given(other), yield* signedIn(userId), NOON + 1);
      const second = browser();
      yield* signIn(other, NONE, second);
      const [first] = yield* identities.list(userId);
      const removal = { userId, id: first?.id ?? "", issuers: [SSO] };
      expect(yield* identities.remove({ ...removal, userId: randomUUID() })).toBe(null);
      expect(yield* identities.remove(removal)).toEqual(first);
      expect(yield* identities.remove(removal)).toBe(null);
      expect([yield* isAlive(session), yield* isAlive(second)]).toEqual([false, true]);
      expect(yield* signIn(ADA, NONE)).toEqual({ kind: "unknown" });
      expect(yield* identities.link(given(ADA), yield* signedIn(userId), NOON)).toBe("linked");
      expect(yield* signIn(ADA, NONE)).toMatchObject({ person: { id: userId } });
    }),
  );

  check(
    "identities leave a person one at a provider that is set up, also if two are removed at once [T19]",
    Effect.gen(function* () {
      const { identities, userId, signedIn } = yield* ada;
      const former = { issuer: "https://former.example.com", subject: "1" };
      yield* identities.link(given(former), yield* signedIn(userId), NOON + 1);
      const [own, old] = yield* identities.list(userId);
      const remove = (id = "") => identities.remove({ userId, id, issuers: [SSO] });
      expect(yield* remove(own?.id)).toBe("last");
      expect(yield* remove(old?.id)).toMatchObject(former);
      yield* identities.link(given({ ...ADA, subject: "ada-2" }), yield* signedIn(userId), NOON);
      const two = yield* identities.list(userId);
      const removed = yield* Effect.all(
        two.map(({ id }) => remove(id)),
        { concurrency: "unbounded" },
      );
      expect(removed.filter((one) => one === "last").length).toBe(1);
      expect((yield* identities.list(userId)).length).toBe(1);
    }),
  );
};

export const checkIdentities = (check: Check): void => {
  describe("identities at providers", () => {
    checkSignIns(check);
    checkRemovals(check);
  });
};

/** How long tokens need no sign-in in the checks below. */
export const SIGN_IN_MS = 1000;

/** For a store whose tokens need a sign-in (ports/people/identity.ts, TokenSignIn). */
export const checkTokenSignIn = (check: Check): void => {
  check(
    "a token ends some time after its person's last sign-in, and works again after the next one [T18]",
    Effect.gen(function* () {
      const { identities, isAlive, signIn, userId, world, signedIn } = yield* ada;
      const token = yield* addToken(world, { userId });
      const { ended, endedToken } = yield* Identity;
      const opened = browser();
      yield* (yield* BrowserSessions).open(token.hash, opened);
      const grant = {
        credential: { kind: "token", id: token.id },
        projectId: null,
        needs: "viewer",
        session: null,
      } as const;
      const states = (now: number) =>
        Effect.all([
          isAlive(token, now),
          isAlive(opened, now),
          Effect.map(ended([grant], now), (over) => over.length === 0),
        ]);
      expect(yield* states(NOON + SIGN_IN_MS - 1)).toEqual([true, true, true]);
      expect(yield* states(NOON + SIGN_IN_MS)).toEqual([false, false, false]);
      expect(yield* endedToken(token.hash, NOON + SIGN_IN_MS)).toMatchObject({
        tokenId: token.id,
        user: { id: userId },
        why: "sign_in_required",
      });
      const later = browser(NOON + 5000);
      yield* signIn(ADA, NONE, later);
      expect(yield* states(NOON + 5000 + SIGN_IN_MS - 1)).toEqual([true, true, true]);
      // A session that a provider opened is a sign-in.
      expect(yield* isAlive(later, NOON + 5000 + SIGN_IN_MS)).toBe(true);
      const idle = yield* signedIn(userId);
      expect(yield* identities.link(given({ ...ADA, subject: "2" }), idle, NOON + 9000)).toBe("signed_out");
      const linking = { userId, browserId: later.id };
      expect(yield* identities.link(given({ ...ADA, subject: "2" }), linking, NOON + 9000)).toBe("linked");
      expect(yield* isAlive(token, NOON + 9000)).toBe(true);
    }),
  );

  check(
    "a sign-in counts from the first start with a provider for who was here before, and is forgotten without one [T18]",
    Effect.gen(function* () {
      const { isAlive, token, world } = yield* scene;
      const { countSignIns, letIn } = yield* Identity;
      const [year, now] = [NOON + 365 * 86_400_000, NOON + 366 * 86_400_000];
      expect(yield* isAlive(token, year)).toBe(false);
      yield* countSignIns(year);
      yield* countSignIns(year + 500);
      expect(yield* isAlive(token, year + SIGN_IN_MS - 1)).toBe(true);
      expect(yield* isAlive(token, year + SIGN_IN_MS)).toBe(false);
      yield* countSignIns(null);
      yield* countSignIns(now);
      expect(yield* isAlive(token, now + SIGN_IN_MS - 1)).toBe(true);
      yield* letIn(world.userId, now + SIGN_IN_MS);
      expect(yield* isAlive(token, now + SIGN_IN_MS)).toBe(true);
    }),
  );
};
