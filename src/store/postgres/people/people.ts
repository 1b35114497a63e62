/** People, invitations and grants in projects. The rules are those of src/store/ports/people/people.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import type { AccountRole, Lapse, ProjectRole } from "../../../domain/person/role.ts";
import { cutPage, readCursor } from "../../cursor.ts";
import {
  People,
  type Invitation,
  type Member,
  type OpenInvitation,
  type Person,
  type UnwantedSession,
} from "../../ports/people/people.ts";
import { Endings } from "../connection/endings.ts";
import { at, insertedRow, jsonb, newestPage, toStored } from "../connection/statement.ts";
import { EventLog } from "../events/event-log.ts";
import { cancelWaits } from "../triggers/fire-moves.ts";
import { insertToken } from "./identity.ts";
import { ROLE_IN_PROJECT } from "./roles.ts";

type Port = (typeof People)["Service"];

const PERSON_COLUMNS = `
  users.id, users.name, users.role, users.created_at AS "createdAt", users.deactivated_at AS "deactivatedAt"`;
const INVITATION_COLUMNS = `
  id, name, role, projects, created_by AS "createdBy", created_at AS "createdAt", expires_at AS "expiresAt"`;
const UNWANTED_MAX = 100;
/** Requests end at once. Those of a person who only lost her role end when their turn comes (store/admission/drain.ts). */
const DEACTIVATED: Lapse = "user_deactivated";

const personPlace = ({ createdAt, id }: { readonly createdAt: number; readonly id: string }) => ({
  at: createdAt,
  id,
});

/** Ends the tokens of a deactivated person, her own providers of models and subscriptions, and her requests for sessions that wait. The caller has the account's lock. */
const makeEndAll = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const events = yield* EventLog;
  return Effect.fnUntraced(function* (accountId: string, id: string, now: number) {
    yield* sql`
      UPDATE tokens SET revoked_at = ${at(now)}
      WHERE user_id = ${id} AND sandbox_id IS NULL AND revoked_at IS NULL`;
    yield* sql`DELETE FROM model_providers WHERE user_id = ${id}`;
    yield* sql`DELETE FROM subscriptions WHERE user_id = ${id}`;
    const hers = sql`account_id = ${accountId} AND kind = 'session' AND session ->> 'createdBy' = ${id}`;
    yield* cancelWaits({ sql, events }, hers, { accountId, reason: DEACTIVATED, now });
  });
});

const makePeople = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const { say } = yield* Endings;
  const endAll = yield* makeEndAll;
  const columns = sql.literal(PERSON_COLUMNS);

  /** Whether the account keeps an owner without this person. Two changes at once wait for each other (ports/people/people.ts P1). */
  const keepsOwner = Effect.fnUntraced(function* (accountId: string, id: string) {
    yield* sql`SELECT id FROM accounts WHERE id = ${accountId} FOR NO KEY UPDATE`;
    const others = yield* sql`
      SELECT id FROM users
      WHERE account_id = ${accountId} AND role = 'owner' AND deactivated_at IS NULL AND id <> ${id} LIMIT 1`;
    return others.length > 0;
  });
  const find = (accountId: string, id: string) =>
    Effect.map(
      sql<Person>`SELECT ${columns} FROM users WHERE account_id = ${accountId} AND id = ${id}`,
      ([person]) => person ?? null,
    );

  const update: Port["update"] = (accountId, id, { name, role }) =>
    Effect.gen(function* () {
      const isKept = role === undefined || role === "owner" || (yield* keepsOwner(accountId, id));
      const before = yield* find(accountId, id);
      if (before === null) return null;
      if (!isKept && before.role === "owner" && before.deactivatedAt === null) return "last_owner";
      const [person] = yield* sql<Person>`
        UPDATE users SET name = coalesce(${name ?? null}, name), role = coalesce(${role ?? null}, role)
        WHERE account_id = ${accountId} AND id = ${id} RETURNING ${columns}`;
      if (role !== undefined) yield* say([id]);
      return person ?? null;
    }).pipe(sql.withTransaction, toStored("people.update"));

  const deactivate: Port["deactivate"] = (accountId, id, now) =>
    Effect.gen(function* () {
      const isKept = yield* keepsOwner(accountId, id);
      const before = yield* find(accountId, id);
      if (before === null || before.deactivatedAt !== null) return before;
      if (!isKept && before.role === "owner") return "last_owner";
      // First: a sign-in at the same moment waits for this row or is already among the tokens below (identities.ts).
      const [person] = yield* sql<Person>`
        UPDATE users SET deactivated_at = ${at(now)} WHERE id = ${id} RETURNING ${columns}`;
      yield* endAll(accountId, id, now);
      yield* say([id]);
      return person ?? null;
    }).pipe(sql.withTransaction, toStored("people.deactivate"));

  const reactivate: Port["reactivate"] = (accountId, id) =>
    sql<Person>`
      UPDATE users SET deactivated_at = NULL WHERE account_id = ${accountId} AND id = ${id}
      RETURNING ${columns}`.pipe(
      Effect.map(([person]) => person ?? null),
      toStored("people.reactivate"),
    );

  const list: Port["list"] = Effect.fnUntraced(function* (accountId, { cursor, limit }) {
    const position = yield* readCursor(cursor);
    const rows = yield* sql<Person>`
      SELECT ${columns} FROM users
      WHERE account_id = ${accountId} ${newestPage(sql, position, limit)}`;
    return cutPage(rows, limit, personPlace);
  }, toStored("people.list"));

  const unwantedSessions = sql<UnwantedSession>`
    SELECT session.id, session.project_id AS "projectId" FROM project_sessions AS session
    JOIN users ON users.id = session.created_by
    WHERE session.status IN ('provisioning', 'running') AND session.origin = 'session'
      AND session.state_context ->> 'ending' IS NULL AND users.deactivated_at IS NOT NULL
    LIMIT ${sql.literal(String(UNWANTED_MAX))}`.pipe(toStored("people.unwantedSessions"));

  const isActive: Port["isActive"] = (id) =>
    sql`SELECT id FROM users WHERE id = ${id} AND deactivated_at IS NULL`.pipe(
      Effect.map((rows) => rows.length > 0),
      toStored("people.isActive"),
    );

  return { list, update, deactivate, reactivate, isActive, unwantedSessions };
});

/** An invitation ends with its sender's power to invite. */
const isOpenAt = (sql: SqlClient.SqlClient, now: number) =>
  sql`accepted_at IS NULL AND revoked_at IS NULL AND expires_at > ${at(now)} AND EXISTS (
    SELECT FROM users AS sender
    WHERE sender.id = created_by AND sender.role = 'owner' AND sender.deactivated_at IS NULL
  )`;

const makeInvitations = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const columns = sql.literal(INVITATION_COLUMNS);
  const isOpen = (now: number) => isOpenAt(sql, now);

  const invite: Port["invite"] = (invitation) =>
    sql<Invitation>`
      INSERT INTO invitations (id, account_id, hash, name, role, projects, created_by, created_at, expires_at)
      VALUES (${invitation.id}, ${invitation.accountId}, ${invitation.hash}, ${invitation.name}, ${invitation.role},
        ${jsonb(invitation.projects)}::jsonb, ${invitation.createdBy}, ${at(invitation.now)},
        ${at(invitation.expiresAt)})
      RETURNING ${columns}`.pipe(Effect.flatMap(insertedRow), toStored("people.invite"));

  const invitations: Port["invitations"] = Effect.fnUntraced(function* (accountId, { cursor, limit, now }) {
    const position = yield* readCursor(cursor);
    const rows = yield* sql<Invitation>`
      SELECT ${columns} FROM invitations
      WHERE account_id = ${accountId} AND ${isOpen(now)}
        ${newestPage(sql, position, limit)}`;
    return cutPage(rows, limit, personPlace);
  }, toStored("people.invitations"));

  const revokeInvitation: Port["revokeInvitation"] = (accountId, id, now) =>
    sql`
      UPDATE invitations SET revoked_at = ${at(now)}
      WHERE id = ${id} AND account_id = ${accountId} AND ${isOpen(now)} RETURNING id`.pipe(
      Effect.map((rows) => rows.length > 0),
      toStored("people.revokeInvitation"),
    );

  const openInvitation: Port["openInvitation"] = (hash, now) =>
    sql<OpenInvitation>`
      SELECT invitation.name, invitation.role, accounts.name AS account, users.name AS "invitedBy",
        invitation.expires_at AS "expiresAt", coalesce((
          SELECT jsonb_agg(jsonb_build_object('name', projects.name, 'role', granted.role) ORDER BY projects.name)
          FROM jsonb_to_recordset(invitation.projects) AS granted ("projectId" uuid, role text)
          JOIN projects ON projects.id = granted."projectId"
        ), '[]') AS projects
      FROM invitations AS invitation
      JOIN accounts ON accounts.id = invitation.account_id
      JOIN users ON users.id = invitation.created_by
      WHERE invitation.hash = ${hash} AND ${isOpen(now)}`.pipe(
      Effect.map(([found]) => found ?? null),
      toStored("people.openInvitation"),
    );

  return { invite, invitations, revokeInvitation, openInvitation };
});

/** An acceptance of an invitation, without what lets the person in: a token, or an identity (identities.ts). */
export const acceptInvitation = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { hash, userId, name, now }: Omit<Parameters<Port["accept"]>[0], "tokenId" | "tokenHash">,
) {
  // Locked: a second acceptance, or a revocation, waits for this one (ports/people/people.ts P2).
  const [found] = yield* sql<{
    readonly id: string;
    readonly accountId: string;
    readonly role: AccountRole;
  }>`
    SELECT id, account_id AS "accountId", role FROM invitations
    WHERE hash = ${hash} AND ${isOpenAt(sql, now)} FOR UPDATE`;
  if (found === undefined) return null;
  const [person] = yield* sql<Person>`
    INSERT INTO users (id, account_id, name, role, created_at)
    VALUES (${userId}, ${found.accountId}, ${name}, ${found.role}, ${at(now)})
    RETURNING ${sql.literal(PERSON_COLUMNS)}`;
  yield* sql`
    INSERT INTO project_members (project_id, user_id, role, granted_at)
    SELECT granted."projectId", ${userId}::uuid, granted.role, ${at(now)}
    FROM invitations, jsonb_to_recordset(projects) AS granted ("projectId" uuid, role text)
    WHERE invitations.id = ${found.id}`;
  yield* sql`
    UPDATE invitations SET accepted_at = ${at(now)}, accepted_by = ${userId} WHERE id = ${found.id}`;
  return person === undefined ? null : { person, accountId: found.accountId };
});

const makeAcceptance = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const accept: Port["accept"] = ({ tokenId, tokenHash, ...request }) =>
    Effect.gen(function* () {
      const acceptance = yield* acceptInvitation(sql, request);
      if (acceptance === null) return null;
      yield* insertToken(sql, {
        id: tokenId,
        accountId: acceptance.accountId,
        userId: request.userId,
        projectId: null,
        name: "first token",
        hash: tokenHash,
        origin: "user",
        expiresAt: null,
        now: request.now,
      });
      return acceptance.person;
    }).pipe(sql.withTransaction, toStored("people.accept"));

  return { accept };
});

type MemberRow = Person & { readonly projectRole: ProjectRole; readonly own: ProjectRole | null };

const makeGrants = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const { say } = yield* Endings;
  const columns = sql.literal(PERSON_COLUMNS);

  const members: Port["members"] = (projectId) =>
    sql<MemberRow>`
      SELECT * FROM (
        SELECT ${columns}, ${sql.literal(ROLE_IN_PROJECT)} AS "projectRole", granted.role AS own
        FROM projects AS project
        JOIN users ON users.account_id = project.account_id AND users.deactivated_at IS NULL
        LEFT JOIN project_members AS granted ON granted.project_id = project.id AND granted.user_id = users.id
        WHERE project.id = ${projectId}
      ) AS member
      WHERE "projectRole" IS NOT NULL ORDER BY name, id`.pipe(
      Effect.map((rows) =>
        rows.map(({ projectRole, own, ...person }): Member => ({ person, role: projectRole, own })),
      ),
      toStored("people.members"),
    );

  const grant: Port["grant"] = ({ projectId, userId, role, now }) =>
    Effect.gen(function* () {
      const [person] = yield* sql<Person>`
        SELECT ${columns} FROM users JOIN projects ON projects.account_id = users.account_id
        WHERE projects.id = ${projectId} AND users.id = ${userId}`;
      if (person === undefined) return null;
      yield* role === null
        ? sql`DELETE FROM project_members WHERE project_id = ${projectId} AND user_id = ${userId}`
        : sql`
            INSERT INTO project_members (project_id, user_id, role, granted_at)
            VALUES (${projectId}, ${userId}, ${role}, ${at(now)})
            ON CONFLICT (project_id, user_id) DO UPDATE SET role = excluded.role, granted_at = excluded.granted_at`;
      yield* say([userId]);
      return person;
    }).pipe(sql.withTransaction, toStored("people.grant"));

  const ownRole: Port["ownRole"] = (projectId, userId) =>
    sql<{ readonly role: ProjectRole }>`
      SELECT role FROM project_members WHERE project_id = ${projectId} AND user_id = ${userId}`.pipe(
      Effect.map(([own]) => own?.role ?? null),
      toStored("people.ownRole"),
    );

  return { members, ownRole, grant };
});

export const layer = Layer.effect(
  People,
  Effect.gen(function* () {
    return {
      ...(yield* makePeople),
      ...(yield* makeInvitations),
      ...(yield* makeAcceptance),
      ...(yield* makeGrants),
    };
  }),
);
