/** The browsers that are signed in, and one-time links, in memory: see postgres/people/browser-sessions.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import {
  BrowserSessions,
  IDLE_MS,
  LINKS_MAX,
  SESSIONS_MAX,
  type BrowserSession,
  type NewBrowserSession,
  type SignedInBy,
} from "../../../../src/store/ports/people/browser-sessions.ts";
import { isAlive } from "./identity.ts";
import { pageFrom } from "../pages.ts";
import { Tables, type TableSet, type TokenRow } from "../tables.ts";

type Port = (typeof BrowserSessions)["Service"];

const isBrowser = (row: TokenRow): boolean => row.kind === "browser";
const newestFirst =
  <A extends { readonly createdAt: number }>(key: (row: A) => string) =>
  (one: A, other: A) =>
    other.createdAt - one.createdAt || (key(one) < key(other) ? 1 : -1);

/** Removes ended sessions, and the person's oldest beyond the limit. */
const clear = (tables: TableSet, userId: string, now: number) => {
  const all = [...tables.tokens.values()].filter(isBrowser);
  const surplus = new Set(
    all
      .filter((row) => row.userId === userId)
      .toSorted(newestFirst(({ id }) => id))
      .slice(SESSIONS_MAX - 1),
  );
  for (const row of all)
    if ((row.expiresAt ?? 0) <= now || row.revokedAt !== null || surplus.has(row))
      tables.tokens.delete(row.id);
};

export const insertSession = (
  tables: TableSet,
  session: NewBrowserSession,
  opened: {
    readonly accountId: string;
    readonly userId: string;
    readonly projectId: string | null;
    readonly opener: TokenRow | null;
    readonly identityId?: string;
    readonly signedInBy: SignedInBy;
  },
): void => {
  const { id, hash, address, userAgent, now } = session;
  const { accountId, userId, projectId, opener, identityId = null, signedInBy } = opened;
  clear(tables, userId, now);
  tables.tokens.set(id, {
    id,
    accountId,
    userId,
    projectId,
    kind: "browser",
    origin: "user",
    name: signedInBy,
    hash,
    createdAt: now,
    expiresAt: Math.min(now + IDLE_MS, opener?.expiresAt ?? Infinity),
    lastUsedAt: now,
    revokedAt: null,
    sessionId: null,
    sandboxId: null,
    openedBy: opener?.id ?? null,
    identityId,
    address,
    userAgent,
  });
};

const openWith = (tables: TableSet, opener: TokenRow | undefined, session: NewBrowserSession) => {
  if (opener?.kind !== "access" || opener.origin !== "user" || opener.sandboxId !== null) return null;
  if (!isAlive(tables, opener, session.now)) return null;
  const { accountId, userId, projectId } = opener;
  insertSession(tables, session, { accountId, userId, projectId, opener, signedInBy: "token" });
  return { id: userId, name: tables.users.get(userId)?.name ?? "" };
};

const byHash = (tables: TableSet, hash: string) =>
  [...tables.tokens.values()].find((row) => row.hash === hash);

export const endSessions = (tables: TableSet, which: (row: TokenRow) => boolean): boolean => {
  const ended = [...tables.tokens.values()].filter((row) => isBrowser(row) && which(row));
  for (const { id } of ended) {
    tables.tokens.delete(id);
    tables.sayEnded(id);
  }
  return ended.length > 0;
};

const issueLink = (tables: TableSet, { tokenHash, now, ...link }: Parameters<Port["issueLink"]>[0]): void => {
  const token = byHash(tables, tokenHash);
  if (token?.kind !== "access") return;
  const own = [...tables.signInLinks.values()].filter(({ tokenId }) => tokenId === token.id);
  const surplus = new Set(own.toSorted(newestFirst(({ hash }) => hash)).slice(LINKS_MAX - 1));
  for (const row of tables.signInLinks.values())
    if (row.expiresAt <= now || surplus.has(row)) tables.signInLinks.delete(row.hash);
  tables.signInLinks.set(link.hash, { ...link, tokenId: token.id, createdAt: now });
};

const sessionOf = (row: TokenRow): BrowserSession => ({
  id: row.id,
  signedInBy: row.name as SignedInBy,
  openedBy: row.openedBy,
  createdAt: row.createdAt,
  lastUsedAt: row.lastUsedAt ?? row.createdAt,
  expiresAt: row.expiresAt ?? row.createdAt,
  address: row.address,
  userAgent: row.userAgent,
});

export const layer = Layer.effect(
  BrowserSessions,
  Effect.map(Tables, (tables) => ({
    open: (hash, session) => Effect.sync(() => openWith(tables, byHash(tables, hash), session)),
    issueLink: (link) => Effect.sync(() => issueLink(tables, link)),
    person: (hash, now) =>
      Effect.sync(() => {
        const link = tables.signInLinks.get(hash);
        const token = tables.tokens.get(link?.tokenId ?? "");
        if (link === undefined || link.expiresAt <= now || token === undefined) return null;
        if (!isAlive(tables, token, now)) return null;
        return { id: token.userId, name: tables.users.get(token.userId)?.name ?? "" };
      }),
    openLink: (hash, session) =>
      Effect.sync(() => {
        const link = tables.signInLinks.get(hash);
        if (link === undefined || link.expiresAt <= session.now) return null;
        tables.signInLinks.delete(hash);
        return openWith(tables, tables.tokens.get(link.tokenId), session);
      }),
    list: (userId, { now, ...request }) =>
      Effect.suspend(() => {
        const all = [...tables.tokens.values()].filter(
          (row) => isBrowser(row) && row.userId === userId && isAlive(tables, row, now),
        );
        return pageFrom(all.map(sessionOf), request, ({ createdAt, id }) => ({ at: createdAt, id }));
      }),
    end: (userId, id) =>
      Effect.sync(() => endSessions(tables, (row) => row.userId === userId && row.id === id)),
    endAll: (userId) => Effect.sync(() => endSessions(tables, (row) => row.userId === userId)),
    signOut: (hash) =>
      Effect.sync(() => {
        const row = byHash(tables, hash);
        if (row === undefined || !endSessions(tables, ({ id }) => id === row.id)) return null;
        return { id: row.userId, name: tables.users.get(row.userId)?.name ?? "", sessionId: row.id };
      }),
  })),
);
