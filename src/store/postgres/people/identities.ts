/** What sign-in providers call people. The rules are those of src/store/ports/people/identities.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import {
  Identities,
  IDENTITIES_MAX,
  type Entry,
  type KnownIdentity,
  type NewIdentity,
  type ProviderIdentity,
  type SignInResult,
} from "../../ports/people/identities.ts";
import type { SignedInPerson } from "../../ports/people/browser-sessions.ts";
import { insertSession } from "./browser-sessions.ts";
import { makeLiveToken } from "./callers.ts";
import { Endings } from "../connection/endings.ts";
import { at, toStored } from "../connection/statement.ts";
import { noteSignIn } from "./identity.ts";
import { acceptInvitation } from "./people.ts";

type Port = (typeof Identities)["Service"];

interface OwnerRow {
  readonly id: string;
  readonly name: string;
  readonly accountId: string;
  readonly deactivatedAt: number | null;
  readonly identityId: string;
}

/** Sign-ins of one identity wait for each other (ports/people/identities.ts F2). */
const lock = (sql: SqlClient.SqlClient, { issuer, subject }: ProviderIdentity) =>
  sql`SELECT pg_advisory_xact_lock(hashtextextended(${JSON.stringify([issuer, subject])}, 7120315004))`;

/** The person is locked: a deactivation waits for this sign-in, and then ends its session (ports/people/identities.ts F3). */
const identityOwner = (sql: SqlClient.SqlClient, { issuer, subject }: ProviderIdentity) =>
  Effect.map(
    sql<OwnerRow>`
      SELECT users.id, users.name, users.account_id AS "accountId", users.deactivated_at AS "deactivatedAt",
        identities.id AS "identityId"
      FROM identities JOIN users ON users.id = identities.user_id
      WHERE issuer = ${issuer} AND subject = ${subject} FOR NO KEY UPDATE OF users`,
    ([owner]) => owner ?? null,
  );

const insertIdentity = (
  sql: SqlClient.SqlClient,
  { id, issuer, subject, name, email }: NewIdentity,
  {
    userId,
    now,
    signedInAt,
  }: { readonly userId: string; readonly now: number; readonly signedInAt: number | null },
) => sql`
  INSERT INTO identities (id, issuer, subject, name, email, user_id, created_at, signed_in_at)
  VALUES (${id}, ${issuer}, ${subject}, ${name}, ${email}, ${userId}, ${at(now)}, ${at(signedInAt)})`;

/** Makes the person of an identity that has none. */
const enter = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  entry: Exclude<Entry, { readonly by: "none" }>,
  { id, name, now }: SignedInPerson & { readonly now: number },
) {
  if (entry.by === "invitation")
    return yield* acceptInvitation(sql, { hash: entry.hash, userId: id, name, now });
  yield* sql`
    INSERT INTO users (id, account_id, name, role, created_at)
    VALUES (${id}, ${entry.accountId}, ${name}, 'member', ${at(now)})`;
  return { accountId: entry.accountId };
});

const listIdentities = (sql: SqlClient.SqlClient, userId: string) => sql<KnownIdentity>`
  SELECT id, issuer, subject, name, email, created_at AS "createdAt", signed_in_at AS "signedInAt"
  FROM identities WHERE user_id = ${userId} ORDER BY created_at, id`;

type SignIn = Parameters<Port["signIn"]>[0];

const signIn = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, request: SignIn) {
  const { identity, signedInBy, session, entry, newPerson } = request;
  const { now } = session;
  yield* lock(sql, identity);
  const owner = yield* identityOwner(sql, identity);
  if (owner !== null && owner.deactivatedAt !== null) return { kind: "deactivated" } satisfies SignInResult;
  const origin = { projectId: null, openedBy: null, until: null, signedInBy } as const;
  if (owner !== null) {
    const { identityId, accountId } = owner;
    const person = { id: owner.id, name: owner.name };
    const { name, email } = identity;
    yield* sql`
      UPDATE identities SET signed_in_at = ${at(now)}, name = ${name}, email = ${email} WHERE id = ${identityId}`;
    yield* noteSignIn(sql, owner.id, now);
    yield* insertSession(sql, session, { ...origin, identityId, accountId, person });
    return { kind: "signed_in", person, isNew: false } satisfies SignInResult;
  }
  if (entry.by === "none") return { kind: "unknown" } satisfies SignInResult;
  const account = yield* enter(sql, entry, { ...newPerson, now });
  if (account === null) return { kind: "invitation_invalid" } satisfies SignInResult;
  yield* insertIdentity(sql, identity, { userId: newPerson.id, now, signedInAt: now });
  yield* noteSignIn(sql, newPerson.id, now);
  const { accountId } = account;
  yield* insertSession(sql, session, { ...origin, identityId: identity.id, accountId, person: newPerson });
  return { kind: "signed_in", person: newPerson, isNew: true } satisfies SignInResult;
});

export const layer = Layer.effect(
  Identities,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const { say } = yield* Endings;
    const liveToken = yield* makeLiveToken;
    const link: Port["link"] = (identity, { userId, browserId }, now) =>
      Effect.gen(function* () {
        yield* lock(sql, identity);
        const owner = yield* identityOwner(sql, identity);
        if (owner !== null && owner.id !== userId) return "taken" as const;
        const active = yield* sql`
          SELECT id FROM users WHERE id = ${userId} AND deactivated_at IS NULL FOR NO KEY UPDATE`;
        if (active.length === 0) return "gone" as const;
        // Locked: a sign-out waits for this identity, or has ended the session before.
        const browser = yield* sql`
          ${liveToken(browserId, now)} AND token.user_id = ${userId} FOR SHARE OF token`;
        if (browser.length === 0) return "signed_out" as const;
        const own = yield* listIdentities(sql, userId);
        if (owner === null && own.length >= IDENTITIES_MAX) return "full" as const;
        if (owner === null) yield* insertIdentity(sql, identity, { userId, now, signedInAt: null });
        yield* noteSignIn(sql, userId, now);
        return "linked" as const;
      }).pipe(sql.withTransaction, toStored("identities.link"));
    const remove: Port["remove"] = ({ userId, id, issuers }) =>
      Effect.gen(function* () {
        const [wanted] = yield* sql<ProviderIdentity>`
          SELECT issuer, subject FROM identities WHERE id = ${id} AND user_id = ${userId}`;
        if (wanted === undefined) return null;
        // A sign-in with it has its session, which ends below, or finds it gone.
        yield* lock(sql, wanted);
        // Of two removals at once, the second one sees what the first one left.
        yield* sql`SELECT id FROM users WHERE id = ${userId} FOR NO KEY UPDATE`;
        const own = yield* listIdentities(sql, userId);
        const identity = own.find((one) => one.id === id);
        if (identity === undefined) return null;
        const ways = own.filter(({ issuer }) => issuers.includes(issuer));
        if (ways.length === 1 && ways[0] === identity) return "last" as const;
        const tokens = yield* sql<{ readonly id: string }>`
          DELETE FROM tokens WHERE identity_id = ${id} RETURNING id`;
        yield* sql`DELETE FROM identities WHERE id = ${id}`;
        if (tokens.length > 0) yield* say(tokens.map((session) => session.id));
        return identity;
      }).pipe(sql.withTransaction, toStored("identities.remove"));
    return {
      link,
      remove,
      list: (userId) => listIdentities(sql, userId).pipe(toStored("identities.list")),
      signIn: (request) => signIn(sql, request).pipe(sql.withTransaction, toStored("identities.signIn")),
    };
  }),
);
