/** Grants: a caller's open connections end with its credential, its project and the session's sandbox. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { describe, expect } from "vitest";
import type { Grant } from "../../../../src/store/ports/people/grants.ts";
import { Accounts } from "../../../../src/store/ports/people/accounts.ts";
import { CloneCredentials } from "../../../../src/store/ports/sessions/clone-credentials.ts";
import { Identity } from "../../../../src/store/ports/people/identity.ts";
import { People } from "../../../../src/store/ports/people/people.ts";
import { type Check } from "../fixture.ts";
import { admitSession, openSandbox, tellSandbox, tellSession } from "../../../support/world/sessions.ts";
import { addProject, hash, makeWorld, NOON } from "../../../support/world/world.ts";

/** A running session, a token of each kind, and a grant for each of them. */
const scene = Effect.gen(function* () {
  const world = yield* makeWorld(5);
  const identity = yield* Identity;
  const makeToken = (fields: { readonly projectId?: string; readonly expiresAt?: number } = {}) => {
    const token = { id: randomUUID(), hash: hash() };
    return Effect.as(
      identity.createToken({
        ...token,
        accountId: world.accountId,
        userId: world.userId,
        projectId: null,
        name: "grants",
        origin: "user",
        expiresAt: null,
        now: NOON,
        ...fields,
      }),
      token,
    );
  };
  const sessionId = yield* admitSession(world);
  const sandbox = yield* openSandbox(sessionId);
  yield* tellSandbox(sandbox.id, { type: "daemon.ready" });
  yield* tellSession(sessionId, { type: "sandbox.live", sandboxId: sandbox.id });
  const { projectId } = world;
  const minted = hash();
  yield* (yield* CloneCredentials).mint({
    hash: minted,
    projectId,
    sessionId,
    sandboxId: sandbox.id,
    expiresAt: NOON + 1000,
    now: NOON,
  });
  const grant = (tokenId: string, fields: Partial<Grant> = {}): Grant => ({
    credential: { kind: "token", id: tokenId },
    projectId,
    needs: "viewer",
    session: null,
    ...fields,
  });
  const session = { id: sessionId, sandboxId: sandbox.id };
  return { world, identity, makeToken, minted, grant, session, sandbox };
});

export const checkGrants = (check: Check): void => {
  describe("grants", () => {
    check(
      "without a project, and for an owner, end when the person is no owner of the account any more",
      Effect.gen(function* () {
        const { world, identity, makeToken, grant } = yield* scene;
        const token = yield* makeToken();
        const held = [
          grant(token.id, { projectId: null }),
          grant(token.id, { projectId: null, needs: "owner" }),
        ];
        expect(yield* identity.ended(held, NOON)).toEqual([]);
        const { accountId } = world;
        yield* (yield* Accounts).createUser({
          id: randomUUID(),
          accountId,
          name: "Olga",
          role: "owner",
          now: NOON,
        });
        yield* (yield* People).update(accountId, world.userId, { role: "member" });
        expect(yield* identity.ended(held, NOON)).toEqual([held[1]]);
      }),
    );

    check(
      "end with the token's revocation or with its expiry",
      Effect.gen(function* () {
        const { world, identity, makeToken, grant } = yield* scene;
        const [kept, revoked, expiring] = [
          yield* makeToken(),
          yield* makeToken(),
          yield* makeToken({ expiresAt: NOON + 10 }),
        ];
        const all = [kept, revoked, expiring].map((token) => grant(token.id));
        expect(yield* identity.ended(all, NOON)).toEqual([]);
        expect(yield* identity.ended([], NOON)).toEqual([]);
        yield* identity.deleteToken({ accountId: world.accountId, userId: null }, revoked.id, NOON);
        expect(yield* identity.ended(all, NOON + 9)).toEqual([all[1]]);
        expect(yield* identity.ended(all, NOON + 10)).toEqual([all[1], all[2]]);
        expect(yield* identity.ended([grant(randomUUID())], NOON)).toHaveLength(1);
      }),
    );

    check(
      "are valid in projects that the token reaches, and in no other",
      Effect.gen(function* () {
        const { world, identity, makeToken, grant } = yield* scene;
        const bound = yield* makeToken({ projectId: world.projectId });
        const wide = yield* makeToken();
        const other = yield* addProject(world);
        const grants = [bound, wide].flatMap((token) =>
          [world.projectId, other, randomUUID(), null].map((projectId) => grant(token.id, { projectId })),
        );
        const ended = yield* identity.ended(grants, NOON);
        expect(grants.map((one) => !ended.includes(one))).toEqual([
          true,
          false,
          false,
          true,
          true,
          true,
          false,
          true,
        ]);
      }),
    );

    check(
      "end with the session's run and its sandbox",
      Effect.gen(function* () {
        const { identity, makeToken, minted, grant, session, sandbox } = yield* scene;
        const cli = (yield* identity.authenticate(sandbox.cliHash, NOON))?.tokenId ?? "";
        const token = yield* makeToken();
        const [into, beside] = [grant(token.id, { session }), grant(token.id)];
        const stale = grant(token.id, { session: { ...session, sandboxId: randomUUID() } });
        const own = [grant(cli), grant(cli, { credential: { kind: "password", hash: minted } })];
        expect(yield* identity.ended([into, beside, stale, ...own], NOON)).toEqual([stale]);
        expect(yield* identity.ended(own, NOON + 1000)).toEqual([own[1]]);
        const failure = { code: "sandbox_lost" as const, message: "It is gone." };
        yield* tellSession(session.id, { type: "sandbox.lost", sandboxId: sandbox.id, failure });
        expect(yield* identity.ended([into, beside, ...own], NOON)).toEqual([into, ...own]);
      }),
    );

    check(
      "report each ending, as long as a listener exists",
      Effect.gen(function* () {
        const { world, identity, makeToken, session, sandbox } = yield* scene;
        const [heard, later] = [yield* makeToken(), yield* makeToken()];
        const told = new Set<string | null>();
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* identity.endings((id) => void told.add(id));
            yield* identity.deleteToken({ accountId: world.accountId, userId: null }, heard.id, NOON);
            const failure = { code: "sandbox_lost" as const, message: "It is gone." };
            yield* tellSession(session.id, { type: "sandbox.lost", sandboxId: sandbox.id, failure });
          }),
        );
        yield* identity.deleteToken({ accountId: world.accountId, userId: null }, later.id, NOON);
        told.delete(null);
        expect([...told]).toEqual([heard.id, session.id]);
      }),
    );
  });
};
