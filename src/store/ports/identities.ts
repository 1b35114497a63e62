/**
 * What sign-in providers call a person: one of the store's ports, see journal.ts.
 *
 *  F1 An identity is an issuer and its subject, and belongs to one person for good. Nothing else about her is compared:
 *     the same e-mail address with another subject is another person.
 *  F2 A sign-in makes at most one person of an identity, also for concurrent requests on several nodes.
 *  F3 A deactivated person's identities open nothing.
 *  F4 A new person, her grants, the identity and the session are made in one transaction.
 */
import * as Context from "effect/Context";
import type { NewBrowserSession, SignedInBy, SignedInPerson } from "./browser-sessions.ts";
import type { Stored } from "./journal.ts";

export interface ProviderIdentity {
  readonly issuer: string;
  /** As the issuer spells it. GitHub: the numeric id. */
  readonly subject: string;
}

/** How an identity without a person gets one. */
export type Entry =
  /** By an invitation, with the role that it grants. */
  | { readonly by: "invitation"; readonly hash: string }
  /** As a member of this account. */
  | { readonly by: "sign_up"; readonly accountId: string }
  /** Not at all. */
  | { readonly by: "none" };

export type SignInResult =
  | { readonly kind: "signed_in"; readonly person: SignedInPerson; readonly isNew: boolean }
  | { readonly kind: "deactivated" }
  /** The identity has no person, and the entry makes none. */
  | { readonly kind: "unknown" }
  /** The invitation is used, revoked or expired. */
  | { readonly kind: "invitation_invalid" };

export class Identities extends Context.Service<
  Identities,
  {
    /**
     * Opens a session for the person of an identity. `entry` counts only for an identity without a person: someone
     * who has a person already uses up no invitation.
     */
    readonly signIn: (request: {
      readonly identity: ProviderIdentity;
      readonly signedInBy: Exclude<SignedInBy, "token">;
      readonly session: NewBrowserSession;
      readonly entry: Entry;
      /** The person, if she is made. */
      readonly newPerson: SignedInPerson;
    }) => Stored<SignInResult>;
    /**
     * Gives an identity to a person who is signed in. `taken`: another person has it. `gone`: she is deactivated.
     */
    readonly link: (
      identity: ProviderIdentity,
      userId: string,
      now: number,
    ) => Stored<"linked" | "taken" | "gone">;
  }
>()("platform/store/Identities") {}
