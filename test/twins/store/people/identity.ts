/** Accounts, users and tokens in memory: see postgres/people/identity.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { includesRole, type ProjectRole } from "../../../../src/domain/person/role.ts";
import { IDLE_MS, LIFE_MS } from "../../../../src/store/ports/people/browser-sessions.ts";
import type { Grant } from "../../../../src/store/ports/people/grants.ts";
import {
  Identity,
  type EndedToken,
  type EndedWhy,
  type NewToken,
  type RequestPath,
  type Principal,
  type PathRows,
  type Token,
} from "../../../../src/store/ports/people/identity.ts";
import { shownIn } from "../sessions/sessions.ts";
import { pageFrom } from "../pages.ts";
import { Tables, type TableSet, type TokenRow } from "../tables.ts";

const tokenOf = (row: TokenRow): Token => ({
  id: row.id,
  name: row.name,
  origin: row.origin,
  userId: row.userId,
  projectId: row.projectId,
  createdAt: row.createdAt,
  expiresAt: row.expiresAt,
  lastUsedAt: row.lastUsedAt,
});

/** Also of the person who accepts an invitation (people.ts). */
export const insertToken = (tables: TableSet, { now, ...token }: NewToken): TokenRow => {
  const row: TokenRow = {
    ...token,
    kind: "access",
    openedBy: null,
    identityId: null,
    address: null,
    userAgent: null,
    sessionId: null,
    sandboxId: null,
    createdAt: now,
    lastUsedAt: null,
    revokedAt: null,
  };
  tables.tokens.set(row.id, row);
  return row;
};

const isUnended = (row: TokenRow | undefined, now: number): boolean =>
  row !== undefined && row.revokedAt === null && (row.expiresAt === null || row.expiresAt > now);

/** A session that a provider opened is a sign-in itself. */
const isSignedIn = (tables: TableSet, { kind, openedBy, userId }: TokenRow, now: number): boolean => {
  if (tables.tokenSignInMs === null || (kind === "browser" && openedBy === null)) return true;
  const createdAt = tables.users.get(userId)?.createdAt ?? 0;
  return Math.max(tables.signedInAt.get(userId) ?? 0, createdAt) > now - tables.tokenSignInMs;
};

/** The person has signed in at a provider. */
export const noteSignIn = (tables: TableSet, userId: string, now: number): void => {
  tables.signedInAt.set(userId, Math.max(now, tables.signedInAt.get(userId) ?? 0));
};

/** A sandbox's token ends with the sandbox or with the session, whichever ends first (T03, I15). */
export const isAlive = (tables: TableSet, row: TokenRow, now: number): boolean => {
  if (!isUnended(row, now)) return false;
  if (row.openedBy !== null && !isUnended(tables.tokens.get(row.openedBy), now)) return false;
  if (row.sandboxId === null || row.sessionId === null)
    return tables.users.get(row.userId)?.deactivatedAt === null && isSignedIn(tables, row, now);
  return tables.isSandboxLive(row.sandboxId) && tables.isSessionLive(row.sessionId);
};

/** A use of a browser's session moves its expiry (ports/people/browser-sessions.ts B1). */
const usedAt = (tables: TableSet, row: TokenRow, now: number): TokenRow => {
  if (row.kind !== "browser") return { ...row, lastUsedAt: now };
  const opener = row.openedBy === null ? undefined : tables.tokens.get(row.openedBy);
  const expiresAt = Math.min(now + IDLE_MS, row.createdAt + LIFE_MS, opener?.expiresAt ?? Infinity);
  return { ...row, lastUsedAt: now, expiresAt };
};

const principalOf = (tables: TableSet, row: TokenRow): Principal => ({
  tokenId: row.id,
  kind: row.kind,
  origin: row.origin,
  accountId: row.accountId,
  user: { id: row.userId, name: tables.users.get(row.userId)?.name ?? "" },
  accountRole: tables.users.get(row.userId)?.role ?? "member",
  projectId: row.projectId,
  sessionId: row.sessionId,
  sandboxId: row.sandboxId,
  expiresAt: row.expiresAt,
  openedBy: row.openedBy,
  reachEndsAt:
    row.kind === "browser" ? (tables.tokens.get(row.openedBy ?? "")?.expiresAt ?? null) : row.expiresAt,
});

const authenticate = (tables: TableSet, hash: string, now: number): Principal | null => {
  const row = [...tables.tokens.values()].find((token) => token.hash === hash);
  if (row === undefined || !isAlive(tables, row, now)) return null;
  if (row.lastUsedAt === null || row.lastUsedAt < now - 60_000) {
    tables.tokens.set(row.id, usedAt(tables, row, now));
  }
  return principalOf(tables, row);
};

const endedToken = (tables: TableSet, hash: string, now: number): EndedToken | null => {
  const row = [...tables.tokens.values()].find((token) => token.hash === hash);
  if (row === undefined || isAlive(tables, row, now)) return null;
  const opener = row.openedBy === null ? undefined : tables.tokens.get(row.openedBy);
  const why = (): EndedWhy => {
    if (row.sandboxId !== null) return "session_ended";
    if (tables.users.get(row.userId)?.deactivatedAt !== null) return "deactivated";
    if (row.revokedAt !== null) return "revoked";
    if (!isUnended(row, now)) return "expired";
    return opener !== undefined && !isUnended(opener, now) ? "signed_out" : "sign_in_required";
  };
  return { ...principalOf(tables, row), why: why() };
};

/** The role of a token in a project: its person's, or a member's if a trigger's session acts for no person. */
const roleOf = (
  tables: TableSet,
  { accountId, userId, origin }: Pick<TokenRow, "accountId" | "userId" | "origin">,
  projectId: string,
): ProjectRole | null => {
  if (tables.projects.get(projectId)?.record.accountId !== accountId) return null;
  return origin === "trigger" ? "member" : tables.roleOf(userId, projectId);
};

const reachedBy = (tables: TableSet, caller: Principal, path: RequestPath): PathRows => {
  const role = roleOf(tables, { userId: caller.user.id, ...caller }, path.projectId);
  const project = tables.projects.get(path.projectId)?.record;
  const mergeRole = project?.accountId === caller.accountId ? project.mergeRole : "owner";
  const session = path.sessionId === null ? undefined : tables.sessions.get(path.sessionId)?.record;
  const isThere = role !== null && session?.projectId === path.projectId && session.deletedAt === null;
  return { path, role, mergeRole, session: isThere ? shownIn(tables, session) : null };
};

const isMinted = (tables: TableSet, { credential, projectId }: Grant, now: number): boolean => {
  const minted = credential.kind === "password" ? tables.cloneCredentials.get(credential.hash) : undefined;
  if (minted === undefined || minted.projectId !== projectId || minted.expiresAt <= now) return false;
  return tables.isSandboxLive(minted.sandboxId) && tables.isSessionLive(minted.sessionId);
};

const isToken = (tables: TableSet, { credential, projectId, needs }: Grant, now: number): boolean => {
  const row = credential.kind === "token" ? tables.tokens.get(credential.id) : undefined;
  if (row === undefined || !isAlive(tables, row, now)) return false;
  if (projectId === null) return needs !== "owner" || tables.users.get(row.userId)?.role === "owner";
  if (row.projectId !== null && row.projectId !== projectId) return false;
  return includesRole(roleOf(tables, row, projectId), needs);
};

const holds = (tables: TableSet, grant: Grant, now: number): boolean => {
  if (!isToken(tables, grant, now) && !isMinted(tables, grant, now)) return false;
  if (grant.session === null) return true;
  const session = tables.sessions.get(grant.session.id)?.record;
  return (
    session?.projectId === grant.projectId &&
    session.deletedAt === null &&
    session.status === "running" &&
    session.sandboxId === grant.session.sandboxId
  );
};

const setCap = (tables: TableSet, id: string, change: { readonly tier?: string; readonly cap: number }) => {
  const account = tables.accounts.get(id);
  if (account !== undefined) tables.accounts.set(id, { ...account, ...change });
};

const bootstrap: (tables: TableSet) => (typeof Identity)["Service"]["bootstrap"] = (tables) => (request) =>
  Effect.sync(() => {
    if (tables.accounts.size > 0) return false;
    const { accountId, userId, tier, cap, now } = request;
    tables.accounts.set(accountId, {
      name: "default",
      tier,
      cap,
      activeSessions: 0,
      queuedFires: 0,
      storedRequestBytes: 0,
      drainedTurns: 0,
    });
    tables.users.set(userId, {
      accountId,
      name: "admin",
      role: "owner",
      createdAt: now,
      deactivatedAt: null,
    });
    insertToken(tables, {
      id: request.tokenId,
      accountId,
      userId,
      projectId: null,
      name: "first token",
      hash: request.tokenHash,
      origin: "user",
      expiresAt: null,
      now,
    });
    return true;
  });

export const layer = Layer.effect(
  Identity,
  Effect.map(Tables, (tables) => ({
    bootstrap: bootstrap(tables),
    authenticate: (hash, now) => Effect.sync(() => authenticate(tables, hash, now)),
    arrive: (hash, now, path) =>
      Effect.sync(() => {
        const caller = authenticate(tables, hash, now);
        return caller === null ? null : { caller, reached: reachedBy(tables, caller, path) };
      }),
    endedToken: (hash, now) => Effect.sync(() => endedToken(tables, hash, now)),
    countSignIns: (from) =>
      Effect.sync(() => {
        if (from === null) return tables.signedInAt.clear();
        for (const id of tables.users.keys()) if (!tables.signedInAt.has(id)) tables.signedInAt.set(id, from);
      }),
    letIn: (userId, now) => Effect.sync(() => noteSignIn(tables, userId, now)),
    ended: (grants, now) => Effect.sync(() => grants.filter((grant) => !holds(tables, grant, now))),
    endings: (hear) =>
      Effect.acquireRelease(
        Effect.sync(() => void tables.endings.add(hear)),
        () => Effect.sync(() => tables.endings.delete(hear)),
      ),
    account: (id) =>
      Effect.sync(() => {
        const account = tables.accounts.get(id);
        if (account === undefined) return null;
        const { name, tier, cap, activeSessions, queuedFires } = account;
        return { id, name, tier, sessionCap: cap, activeSessions, queuedFires };
      }),
    rename: (accountId, name) =>
      Effect.sync(() => {
        const account = tables.accounts.get(accountId);
        if (account !== undefined) tables.accounts.set(accountId, { ...account, name });
      }),
    setTier: (accountId, tier, cap) =>
      Effect.sync(() => {
        setCap(tables, accountId, { tier, cap });
        for (const [id, { record }] of tables.projects)
          if (record.accountId === accountId) tables.markChanged(id);
      }),
    applyCaps: (caps) =>
      Effect.sync(() => {
        for (const [id, { tier }] of tables.accounts) {
          const cap = caps[tier];
          if (cap !== undefined) setCap(tables, id, { cap });
        }
      }),
    createToken: (token) =>
      Effect.suspend(() =>
        [...tables.tokens.values()].some(({ id, hash }) => id === token.id || hash === token.hash)
          ? Effect.die(new Error("the token exists"))
          : Effect.succeed(tokenOf(insertToken(tables, token))),
      ),
    listTokens: ({ accountId, userId }, request) =>
      Effect.suspend(() => {
        const listed = [...tables.tokens.values()].filter(
          (row) =>
            row.accountId === accountId &&
            (userId === null || row.userId === userId) &&
            row.kind === "access" &&
            row.sandboxId === null &&
            row.revokedAt === null,
        );
        return pageFrom(listed.map(tokenOf), request, ({ createdAt, id }) => ({ at: createdAt, id }));
      }),
    deleteToken: ({ accountId, userId }, id, now) =>
      Effect.sync(() => {
        const row = tables.tokens.get(id);
        if (row?.accountId !== accountId || row.revokedAt !== null) return false;
        if (row.kind !== "access" || row.sandboxId !== null) return false;
        if (userId !== null && row.userId !== userId) return false;
        tables.tokens.set(id, { ...row, revokedAt: now });
        tables.sayEnded(id);
        return true;
      }),
  })),
);
