/** People, invitations and grants in projects, in memory: see postgres/people/people.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { isLive } from "../../../../src/domain/session/session.ts";
import {
  People,
  type Invitation,
  type Member,
  type Person,
} from "../../../../src/store/ports/people/people.ts";
import { insertToken } from "./identity.ts";
import { pageFrom } from "../pages.ts";
import { takeOut } from "../triggers/queue.ts";
import { Tables, type InvitationRow, type TableSet, type UserRow } from "../tables.ts";

type Port = (typeof People)["Service"];

const UNWANTED_MAX = 100;

const personOf = (id: string, { accountId: _, ...row }: UserRow): Person => ({ id, ...row });

const invitationOf = ({ accountId: _, hash: _hash, isOver: _over, ...row }: InvitationRow): Invitation => row;

const placeOf = ({ createdAt, id }: { readonly createdAt: number; readonly id: string }) => ({
  at: createdAt,
  id,
});

const makePeople = (tables: TableSet) => {
  const find = (accountId: string, id: string): UserRow | null => {
    const row = tables.users.get(id);
    return row?.accountId === accountId ? row : null;
  };
  const isLastOwner = (id: string, { accountId, role, deactivatedAt }: UserRow): boolean =>
    role === "owner" &&
    deactivatedAt === null &&
    ![...tables.users].some(
      ([other, row]) =>
        other !== id && row.accountId === accountId && row.role === "owner" && row.deactivatedAt === null,
    );
  const write = (id: string, row: UserRow): Person => {
    tables.users.set(id, row);
    tables.sayEnded(id);
    return personOf(id, row);
  };

  const update: Port["update"] = (accountId, id, { name, role }) =>
    Effect.sync(() => {
      const row = find(accountId, id);
      if (row === null) return null;
      if (role === "member" && isLastOwner(id, row)) return "last_owner";
      return write(id, { ...row, name: name ?? row.name, role: role ?? row.role });
    });
  const deactivate: Port["deactivate"] = (accountId, id, now) =>
    Effect.sync(() => {
      const row = find(accountId, id);
      if (row === null) return null;
      if (row.deactivatedAt !== null) return personOf(id, row);
      if (isLastOwner(id, row)) return "last_owner";
      for (const token of tables.tokens.values())
        if (token.userId === id && token.sandboxId === null && token.revokedAt === null)
          tables.tokens.set(token.id, { ...token, revokedAt: now });
      for (const provider of tables.modelProviders.values())
        if (provider.userId === id) tables.modelProviders.delete(provider.id);
      for (const subscription of tables.subscriptions.values())
        if (subscription.userId === id) tables.subscriptions.delete(subscription.id);
      const requests = tables.queue.filter(
        ({ kind, session }) => kind === "session" && session.createdBy === id,
      );
      takeOut(
        tables,
        requests.map(({ fireId }) => fireId),
        { status: "cancelled", reason: "user_deactivated", now },
      );
      tables.moveCounters(accountId, { queued: -requests.length });
      return write(id, { ...row, deactivatedAt: now });
    });
  const reactivate: Port["reactivate"] = (accountId, id) =>
    Effect.sync(() => {
      const row = find(accountId, id);
      return row === null ? null : write(id, { ...row, deactivatedAt: null });
    });
  const list: Port["list"] = (accountId, request) =>
    Effect.suspend(() => {
      const all = [...tables.users].filter(([, row]) => row.accountId === accountId);
      return pageFrom(
        all.map(([id, row]) => personOf(id, row)),
        request,
        placeOf,
      );
    });
  const unwantedSessions: Port["unwantedSessions"] = Effect.sync(() =>
    [...tables.sessions.values()]
      .filter(
        ({ record, snapshot }) =>
          isLive(record.status) &&
          record.origin === "session" &&
          snapshot.context.ending === null &&
          typeof tables.users.get(record.createdBy)?.deactivatedAt === "number",
      )
      .slice(0, UNWANTED_MAX)
      .map(({ record: { id, projectId } }) => ({ id, projectId })),
  );
  const isActive: Port["isActive"] = (id) => Effect.sync(() => tables.users.get(id)?.deactivatedAt === null);
  return { list, update, deactivate, reactivate, isActive, unwantedSessions };
};

/** An invitation ends with its sender's power to invite. */
const isOpen = (tables: TableSet, row: InvitationRow, now: number): boolean => {
  const sender = tables.users.get(row.createdBy);
  return !row.isOver && row.expiresAt > now && sender?.role === "owner" && sender.deactivatedAt === null;
};

const invitationBy = (tables: TableSet, hash: string, now: number): InvitationRow | null =>
  [...tables.invitations.values()].find((row) => row.hash === hash && isOpen(tables, row, now)) ?? null;

/** An acceptance of an invitation, without what lets the person in: a token, or an identity (identities.ts). */
export const acceptInvitation = (
  tables: TableSet,
  { hash, userId, name, now }: Omit<Parameters<Port["accept"]>[0], "tokenId" | "tokenHash">,
): UserRow | null => {
  const row = invitationBy(tables, hash, now);
  if (row === null) return null;
  const { accountId, role } = row;
  const user: UserRow = { accountId, name, role, createdAt: now, deactivatedAt: null };
  tables.users.set(userId, user);
  for (const granted of row.projects) tables.grant(granted.projectId, userId, granted.role);
  tables.invitations.set(row.id, { ...row, isOver: true });
  return user;
};

const makeInvitations = (tables: TableSet) => {
  const invite: Port["invite"] = ({ now: createdAt, ...invitation }) =>
    Effect.sync(() => {
      const row = { ...invitation, createdAt, isOver: false };
      tables.invitations.set(row.id, row);
      return invitationOf(row);
    });
  const invitations: Port["invitations"] = (accountId, { now, ...request }) =>
    Effect.suspend(() => {
      const all = [...tables.invitations.values()].filter(
        (row) => row.accountId === accountId && isOpen(tables, row, now),
      );
      return pageFrom(all.map(invitationOf), request, placeOf);
    });
  const revokeInvitation: Port["revokeInvitation"] = (accountId, id, now) =>
    Effect.sync(() => {
      const row = tables.invitations.get(id);
      if (row?.accountId !== accountId || !isOpen(tables, row, now)) return false;
      tables.invitations.set(id, { ...row, isOver: true });
      return true;
    });
  const openInvitation: Port["openInvitation"] = (hash, now) =>
    Effect.sync(() => {
      const row = invitationBy(tables, hash, now);
      if (row === null) return null;
      const projects = row.projects.flatMap(({ projectId, role }) => {
        const project = tables.projects.get(projectId)?.record;
        return project === undefined ? [] : [{ name: project.name, role }];
      });
      return {
        name: row.name,
        role: row.role,
        account: tables.accounts.get(row.accountId)?.name ?? "",
        invitedBy: tables.users.get(row.createdBy)?.name ?? "",
        projects: projects.toSorted((one, other) => (one.name < other.name ? -1 : 1)),
        expiresAt: row.expiresAt,
      };
    });
  const accept: Port["accept"] = ({ tokenId, tokenHash, ...request }) =>
    Effect.sync(() => {
      const accepted = acceptInvitation(tables, request);
      if (accepted === null) return null;
      insertToken(tables, {
        id: tokenId,
        accountId: accepted.accountId,
        userId: request.userId,
        projectId: null,
        name: "first token",
        hash: tokenHash,
        origin: "user",
        expiresAt: null,
        now: request.now,
      });
      return personOf(request.userId, accepted);
    });
  return { invite, invitations, revokeInvitation, openInvitation, accept };
};

const makeGrants = (tables: TableSet) => {
  const members: Port["members"] = (projectId) =>
    Effect.sync(() => {
      const own = tables.members.get(projectId);
      const all = [...tables.users].flatMap(([id, row]): Member[] => {
        const role = row.deactivatedAt === null ? tables.roleOf(id, projectId) : null;
        return role === null ? [] : [{ person: personOf(id, row), role, own: own?.get(id) ?? null }];
      });
      return all.toSorted(({ person: one }, { person: other }) =>
        one.name === other.name ? (one.id < other.id ? -1 : 1) : one.name < other.name ? -1 : 1,
      );
    });
  const grant: Port["grant"] = ({ projectId, userId, role }) =>
    Effect.sync(() => {
      const row = tables.users.get(userId);
      if (row === undefined || row.accountId !== tables.projects.get(projectId)?.record.accountId)
        return null;
      if (role === null) tables.members.get(projectId)?.delete(userId);
      else tables.grant(projectId, userId, role);
      tables.sayEnded(userId);
      return personOf(userId, row);
    });
  const ownRole: Port["ownRole"] = (projectId, userId) =>
    Effect.sync(() => tables.members.get(projectId)?.get(userId) ?? null);
  return { members, ownRole, grant };
};

export const layer = Layer.effect(
  People,
  Effect.map(Tables, (tables) => ({
    ...makePeople(tables),
    ...makeInvitations(tables),
    ...makeGrants(tables),
  })),
);
