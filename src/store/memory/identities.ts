/** What sign-in providers call people, in memory: see postgres/identities.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type { SignedInPerson } from "../ports/browser-sessions.ts";
import { Identities, type Entry, type ProviderIdentity, type SignInResult } from "../ports/identities.ts";
import { insertSession } from "./browser-sessions.ts";
import { acceptInvitation } from "./people.ts";
import { Tables, type TableSet } from "./tables.ts";

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
  const key = keyOf(identity);
  const known = tables.identities.get(key);
  if (known === undefined) {
    if (entry.by === "none") return { kind: "unknown" };
    if (!enter(tables, entry, { ...newPerson, now: session.now })) return { kind: "invitation_invalid" };
    tables.identities.set(key, newPerson.id);
  }
  const userId = known ?? newPerson.id;
  const user = tables.users.get(userId);
  if (user === undefined || user.deactivatedAt !== null) return { kind: "deactivated" };
  const { accountId, name } = user;
  insertSession(tables, session, { accountId, userId, projectId: null, opener: null, signedInBy });
  return { kind: "signed_in", person: { id: userId, name }, isNew: known === undefined };
};

export const layer = Layer.effect(
  Identities,
  Effect.map(Tables, (tables) => ({
    signIn: (request) => Effect.sync(() => signIn(tables, request)),
    link: (identity, userId) =>
      Effect.sync(() => {
        const known = tables.identities.get(keyOf(identity));
        if (known !== undefined) return known === userId ? "linked" : "taken";
        if (tables.users.get(userId)?.deactivatedAt !== null) return "gone";
        tables.identities.set(keyOf(identity), userId);
        return "linked";
      }),
  })),
);
