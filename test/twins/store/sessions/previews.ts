/** Preview links and cookies in memory: see postgres/sessions/previews.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import {
  Previews,
  PREVIEWS_PER_SESSION,
  type NewPreview,
} from "../../../../src/store/ports/sessions/previews.ts";
import { Tables, type TableSet } from "../tables.ts";

const prune = ({ previews }: TableSet, { sessionId, now }: NewPreview): void => {
  for (const [hash, row] of previews) if (row.expiresAt <= now) previews.delete(hash);
  const surplus = [...previews]
    .filter(([, row]) => row.sessionId === sessionId)
    .toSorted(([a, { createdAt: first }], [b, { createdAt: second }]) => second - first || (a < b ? -1 : 1))
    .slice(PREVIEWS_PER_SESSION - 1);
  for (const [hash] of surplus) previews.delete(hash);
};

export const layer = Layer.effect(
  Previews,
  Effect.map(Tables, (tables) => ({
    issue: (link) =>
      Effect.sync(() => {
        prune(tables, link);
        const { hash, now: createdAt, ...row } = link;
        tables.previews.set(hash, { ...row, createdAt, isOpen: false });
      }),
    open: ({ linkHash, cookieHash, sessionId, port, expiresAt, now }) =>
      Effect.sync(() => {
        const link = tables.previews.get(linkHash);
        if (link === undefined || link.isOpen || link.expiresAt <= now) return false;
        if (link.sessionId !== sessionId || link.port !== port) return false;
        tables.previews.delete(linkHash);
        tables.previews.set(cookieHash, { ...link, expiresAt, isOpen: true });
        return true;
      }),
    find: (cookieHash, now) =>
      Effect.sync(() => {
        const row = tables.previews.get(cookieHash);
        if (row === undefined || !row.isOpen || row.expiresAt <= now) return null;
        const session = tables.sessions.get(row.sessionId)?.record;
        const token = tables.tokens.get(row.tokenId);
        if (session === undefined || token === undefined) return null;
        const { sessionId, sandboxId, port, expiresAt } = row;
        const { projectId } = session;
        return { projectId, sessionId, sandboxId, port, tokenHash: token.hash, expiresAt };
      }),
  })),
);
