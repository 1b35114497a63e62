/** Conformance: what is read with a caller of what the request's path names. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { Accounts } from "../../../../src/store/ports/people/accounts.ts";
import { Conversations } from "../../../../src/store/ports/sessions/conversations.ts";
import { Identity } from "../../../../src/store/ports/people/identity.ts";
import { Sessions } from "../../../../src/store/ports/sessions/sessions.ts";
import { type Check } from "../fixture.ts";
import { admitSession, tellSession } from "../../../support/world/sessions.ts";
import { addProject, hash, makeWorld, NOON } from "../../../support/world/world.ts";

/** Another account with a user and a token. @returns the token, its hash and its account. */
const makeStranger = Effect.gen(function* () {
  const { create, createUser } = yield* Accounts;
  const [accountId, userId] = [randomUUID(), randomUUID()];
  yield* create({ id: accountId, name: "second", tier: "free", cap: 1, now: NOON });
  yield* createUser({ id: userId, accountId, name: "mallory", role: "owner", now: NOON });
  const token = { id: randomUUID(), accountId, userId, projectId: null, name: "first", hash: hash() };
  yield* (yield* Identity).createToken({ ...token, origin: "user", expiresAt: null, now: NOON });
  return token;
});

const scene = Effect.gen(function* () {
  const world = yield* makeWorld(3);
  const sessionId = yield* admitSession(world);
  const path = { projectId: world.projectId, sessionId };
  const { arrive } = yield* Identity;
  const at = (fields: Partial<typeof path> | { sessionId: null }, tokenHash = world.tokenHash) =>
    arrive(tokenHash, NOON, { ...path, ...fields });
  return { world, sessionId, path, at };
});

const nothing = { role: null, mergeRole: "owner" as const, session: null };
const projectOnly = { role: "owner" as const, mergeRole: "member" as const, session: null };

const emptyRow = { pendingApprovals: 0, oldestApproval: null, changeRequest: null };

export const checkArrivals = (check: Check): void => {
  describe("an arrival", () => {
    check(
      "is the caller, the project and the session with the state of its conversation",
      Effect.gen(function* () {
        const { world, sessionId, path, at } = yield* scene;
        const session = yield* (yield* Sessions).get(sessionId);
        const before = yield* at({});
        const creatorName = before?.caller.user.name;
        expect(before?.caller).toEqual(yield* (yield* Identity).authenticate(world.tokenHash, NOON));
        expect(before?.reached).toEqual({
          path,
          role: "owner" as const,
          mergeRole: "member" as const,
          session: { ...session, ...emptyRow, creatorName, conversation: null },
        });
        const conversations = yield* Conversations;
        yield* conversations.open(sessionId, NOON);
        const state = (yield* conversations.states([sessionId])).get(sessionId);
        expect(state?.turn.state).toBe("idle");
        const conversation = { ...state, turnRequest: null, lastSentence: null };
        expect((yield* at({}))?.reached.session).toEqual({
          ...session,
          ...emptyRow,
          creatorName,
          conversation,
        });
      }),
    );

    check(
      "has no session that is deleted, of another project, or not asked for",
      Effect.gen(function* () {
        const { world, sessionId, at } = yield* scene;
        expect((yield* at({ sessionId: null }))?.reached).toMatchObject(projectOnly);
        expect((yield* at({ sessionId: randomUUID() }))?.reached).toMatchObject(projectOnly);
        expect((yield* at({ projectId: yield* addProject(world) }))?.reached).toMatchObject(projectOnly);
        expect((yield* at({ projectId: randomUUID() }))?.reached).toMatchObject(nothing);
        yield* tellSession(sessionId, { type: "delete.requested" });
        expect((yield* at({}))?.reached).toMatchObject(projectOnly);
      }),
    );

    check(
      "has nothing of another account, and does not happen with a token that was deleted [T02, T03]",
      Effect.gen(function* () {
        const { at } = yield* scene;
        const stranger = yield* makeStranger;
        expect((yield* at({}, stranger.hash))?.reached).toMatchObject(nothing);
        yield* (yield* Identity).deleteToken(
          { accountId: stranger.accountId, userId: null },
          stranger.id,
          NOON,
        );
        expect(yield* at({}, stranger.hash)).toBe(null);
        expect(yield* at({}, hash())).toBe(null);
      }),
    );
  });
};
