/** What sign-in providers call people. The rules are those of src/store/ports/identities.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { Identities, type Entry, type ProviderIdentity, type SignInResult } from "../ports/identities.ts";
import type { SignedInPerson } from "../ports/browser-sessions.ts";
import { insertSession } from "./browser-sessions.ts";
import { at, stored } from "./connection/statement.ts";
import { acceptInvitation } from "./people.ts";

type Port = (typeof Identities)["Service"];

interface OwnerRow {
  readonly id: string;
  readonly name: string;
  readonly accountId: string;
  readonly deactivatedAt: number | null;
}

/** Sign-ins of one identity wait for each other (ports/identities.ts F2). */
const lock = (sql: SqlClient.SqlClient, { issuer, subject }: ProviderIdentity) =>
  sql`SELECT pg_advisory_xact_lock(hashtextextended(${JSON.stringify([issuer, subject])}, 7120315004))`;

/** The person is locked: a deactivation waits for this sign-in, and then ends its session (ports/identities.ts F3). */
const ownerOf = (sql: SqlClient.SqlClient, { issuer, subject }: ProviderIdentity) =>
  Effect.map(
    sql<OwnerRow>`
      SELECT users.id, users.name, users.account_id AS "accountId", users.deactivated_at AS "deactivatedAt"
      FROM identities JOIN users ON users.id = identities.user_id
      WHERE issuer = ${issuer} AND subject = ${subject} FOR SHARE OF users`,
    ([owner]) => owner ?? null,
  );

const insertIdentity = (
  sql: SqlClient.SqlClient,
  { issuer, subject }: ProviderIdentity,
  { userId, now }: { readonly userId: string; readonly now: number },
) => sql`
  INSERT INTO identities (issuer, subject, user_id, created_at) VALUES (${issuer}, ${subject}, ${userId}, ${at(now)})`;

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

type SignIn = Parameters<Port["signIn"]>[0];

const signIn = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, request: SignIn) {
  const { identity, signedInBy, session, entry, newPerson } = request;
  const { now } = session;
  yield* lock(sql, identity);
  const known = yield* ownerOf(sql, identity);
  if (known !== null && known.deactivatedAt !== null) return { kind: "deactivated" } satisfies SignInResult;
  const opened = { projectId: null, openedBy: null, until: null, signedInBy } as const;
  if (known !== null) {
    const person = { id: known.id, name: known.name };
    yield* insertSession(sql, session, { ...opened, accountId: known.accountId, person });
    return { kind: "signed_in", person, isNew: false } satisfies SignInResult;
  }
  if (entry.by === "none") return { kind: "unknown" } satisfies SignInResult;
  const entered = yield* enter(sql, entry, { ...newPerson, now });
  if (entered === null) return { kind: "invitation_invalid" } satisfies SignInResult;
  yield* insertIdentity(sql, identity, { userId: newPerson.id, now });
  yield* insertSession(sql, session, { ...opened, accountId: entered.accountId, person: newPerson });
  return { kind: "signed_in", person: newPerson, isNew: true } satisfies SignInResult;
});

export const layer = Layer.effect(
  Identities,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const link: Port["link"] = (identity, userId, now) =>
      Effect.gen(function* () {
        yield* lock(sql, identity);
        const known = yield* ownerOf(sql, identity);
        if (known !== null) return known.id === userId ? ("linked" as const) : ("taken" as const);
        const active = yield* sql`
          SELECT id FROM users WHERE id = ${userId} AND deactivated_at IS NULL FOR SHARE`;
        if (active.length === 0) return "gone" as const;
        yield* insertIdentity(sql, identity, { userId, now });
        return "linked" as const;
      }).pipe(sql.withTransaction, stored("identities.link"));
    return {
      link,
      signIn: (request) => signIn(sql, request).pipe(sql.withTransaction, stored("identities.signIn")),
    };
  }),
);
