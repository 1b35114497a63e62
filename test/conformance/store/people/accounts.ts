/** Conformance: accounts and users, as the operator creates and lists them. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { Accounts } from "../../../../src/store/ports/people/accounts.ts";
import { Identity } from "../../../../src/store/ports/people/identity.ts";
import { type Check } from "../fixture.ts";
import { hash, makeWorld, NOON } from "../../../support/world/world.ts";

const FIRST_PAGE = { limit: 2, cursor: null };

export const checkAccounts = (check: Check): void => {
  describe("accounts", () => {
    check(
      "are created beside the first one and listed newest first, in pages",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { create, list } = yield* Accounts;
        const [second, third] = [randomUUID(), randomUUID()];
        const made = yield* create({ id: second, name: "second", tier: "pro", cap: 7, now: NOON + 1 });
        const account = {
          id: second,
          name: "second",
          tier: "pro",
          sessionCap: 7,
          activeSessions: 0,
          queuedFires: 0,
        };
        expect(made).toEqual(account);
        yield* create({ id: third, name: "third", tier: "free", cap: 1, now: NOON + 2 });
        const page = yield* list(FIRST_PAGE);
        expect(page.items.map(({ id }) => id)).toEqual([third, second]);
        expect(page.items[1]).toEqual(account);
        const rest = yield* list({ limit: 2, cursor: page.nextCursor });
        expect(rest.items.map(({ id }) => id)).toEqual([world.accountId]);
        expect(rest.nextCursor).toBeNull();
        const { account: read, rename } = yield* Identity;
        expect(yield* read(second)).toEqual(account);
        yield* rename(second, "renamed");
        expect(yield* read(second)).toEqual({ ...account, name: "renamed" });
        expect(yield* read(third)).toMatchObject({ name: "third" });
        expect(yield* Effect.exit(list({ limit: 2, cursor: "forged" }))).toMatchObject({ _tag: "Failure" });
      }),
    );

    check(
      "have their own users, who act with their own tokens",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { create, createUser, user, users } = yield* Accounts;
        const { createToken, authenticate } = yield* Identity;
        const accountId = randomUUID();
        yield* create({ id: accountId, name: "second", tier: "free", cap: 1, now: NOON });
        const [ada, ben] = [randomUUID(), randomUUID()];
        const made = yield* createUser({ id: ada, accountId, name: "ada", role: "owner", now: NOON + 1 });
        expect(made).toEqual({ id: ada, accountId, name: "ada", role: "owner" });
        yield* createUser({ id: ben, accountId, name: "ben", role: "member", now: NOON + 2 });
        const page = yield* users(accountId, { limit: 1, cursor: null });
        expect(page.items.map(({ name }) => name)).toEqual(["ben"]);
        const rest = yield* users(accountId, { limit: 1, cursor: page.nextCursor });
        expect(rest).toEqual({
          items: [{ id: ada, accountId, name: "ada", role: "owner" }],
          nextCursor: null,
        });
        expect(yield* user(ada)).toEqual({ id: ada, accountId, name: "ada", role: "owner" });
        expect((yield* user(world.userId))?.accountId).toBe(world.accountId);

        const token = {
          id: randomUUID(),
          accountId,
          userId: ada,
          projectId: null,
          name: "first",
          hash: hash(),
        };
        yield* createToken({ ...token, origin: "user", expiresAt: null, now: NOON });
        expect(yield* authenticate(token.hash, NOON)).toMatchObject({
          accountId,
          user: { id: ada, name: "ada" },
        });
      }),
    );

    check(
      "that do not exist have no users",
      Effect.gen(function* () {
        const { createUser, user, users } = yield* Accounts;
        const stranger = {
          id: randomUUID(),
          accountId: randomUUID(),
          name: "unknown",
          role: "member",
        } as const;
        expect(yield* createUser({ ...stranger, now: NOON })).toBeNull();
        expect(yield* user(stranger.id)).toBeNull();
        expect((yield* users(stranger.accountId, FIRST_PAGE)).items).toEqual([]);
      }),
    );
  });
};
