/** What sign-in providers call people, in memory: see postgres/people/identities.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type { SignedInPerson } from "../../../../src/store/ports/people/browser-sessions.ts";
import {
  Identities,
  IDENTITIES_MAX,
  type Entry,
  type KnownIdentity,
  type ProviderIdentity,
  type SignInResult,
} from "../../../../src/store/ports/people/identities.ts";
import { endSessions, insertSession } from "./browser-sessions.ts";
import { isAlive, noteSignIn } from "./identity.ts";
import { acceptInvitation } from "./people.ts";
import type { IdentityRow } from "./sign-in-rows.ts";
import { Tables, type TableSet } from "../tables.ts";

type Port = (typeof Identities)["Service"];

const keyOf = ({ issuer, subject }: ProviderIdentity): string => JSON.stringify([issuer, subject]);

/** Makes the person of an identity that has none. False: the invitation is over. */
const enter = (
  tables: TableSet,
  entry: Exclude<Entry, { readonly by: "none" }>,
  { id, name, now }: SignedInPerson & { readonly now: number },
): boolean => {
  if (entry.by === "invitation")
    return acceptInvitation(tables, { hash: entry.hash, userId: id, name, now }) !== null;
  const { accountId } = entry;
  tables.users.set(id, { accountId, name, role: "member", createdAt: now, deactivatedAt: null });
  return true;
};

const signIn = (
  tables: TableSet,
  { identity, signedInBy, session, entry, newPerson }: Parameters<Port["signIn"]>[0],
): SignInResult => {
  const { now } = session;
  const key = keyOf(identity);
  const known = tables.identities.get(key);
  if (known === undefined) {
    if (entry.by === "none") return { kind: "unknown" };
    if (!enter(tables, entry, { ...newPerson, now })) return { kind: "invitation_invalid" };
  }
  const row = known ?? { ...identity, userId: newPerson.id, createdAt: now };
  const { userId } = row;
  const user = tables.users.get(userId);
  if (user === undefined || user.deactivatedAt !== null) return { kind: "deactivated" };
  const { accountId, name } = user;
  tables.identities.set(key, { ...row, name: identity.name, email: identity.email, signedInAt: now });
  noteSignIn(tables, userId, now);
  const opened = { accountId, userId, projectId: null, opener: null, identityId: row.id };
  insertSession(tables, session, { ...opened, signedInBy });
  return { kind: "signed_in", person: { id: userId, name }, isNew: known === undefined };
};

const listOf = (tables: TableSet, userId: string): readonly IdentityRow[] =>
  [...tables.identities.values()]
    .filter((row) => row.userId === userId)
    .toSorted((one, other) => one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1));

const identityOf = ({ userId: _, ...identity }: IdentityRow): KnownIdentity => identity;

export const layer = Layer.effect(
  Identities,
  Effect.map(Tables, (tables) => ({
    signIn: (request) => Effect.sync(() => signIn(tables, request)),
    list: (userId) => Effect.sync(() => listOf(tables, userId).map(identityOf)),
    link: (identity, { userId, browserId }, now) =>
      Effect.sync(() => {
        const known = tables.identities.get(keyOf(identity));
        if (known !== undefined && known.userId !== userId) return "taken";
        if (tables.users.get(userId)?.deactivatedAt !== null) return "gone";
        const browser = tables.tokens.get(browserId);
        if (browser?.userId !== userId || !isAlive(tables, browser, now)) return "signed_out";
        if (known === undefined && listOf(tables, userId).length >= IDENTITIES_MAX) return "full";
        if (known === undefined)
          tables.identities.set(keyOf(identity), { ...identity, userId, createdAt: now, signedInAt: null });
        noteSignIn(tables, userId, now);
        return "linked";
      }),
    remove: ({ userId, id, issuers }) =>
      Effect.sync(() => {
        const own = listOf(tables, userId);
        const identity = own.find((one) => one.id === id);
        if (identity === undefined) return null;
        const ways = own.filter(({ issuer }) => issuers.includes(issuer));
        if (ways.length === 1 && ways[0] === identity) return "last";
        tables.identities.delete(keyOf(identity));
        endSessions(tables, ({ identityId }) => identityId === id);
        return identityOf(identity);
      }),
  })),
);
