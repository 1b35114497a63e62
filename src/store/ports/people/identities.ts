/**
 * What sign-in providers call a person: one of the store's ports, see journal.ts.
 *
 *  F1 An identity is an issuer and its subject, and belongs to one person until she removes it. Nothing else is compared:
 *     the same e-mail address with another subject is another person.
 *  F2 A sign-in creates at most one person for an identity, even with concurrent requests on several nodes.
 *  F3 A deactivated person's identities open nothing.
 *  F4 A new person, her grants, the identity and the session are made in one transaction.
 *  F5 A person keeps a way in: her last identity at a provider that is set up is not removed, even if two are removed at
 *     once. An identity that is removed ends the browsers' sessions that it began, and may belong to anyone afterwards.
 *  F6 A sign-in, and adding an identity, begin the time anew in which her tokens need one (identity.ts, `TokenSignIn`).
 *  F7 What a browser began to add ends with the browser's session: the same transaction makes sure of both.
 */
import * as Context from "effect/Context";
import type { NewBrowserSession, SignedInBy, SignedInPerson } from "./browser-sessions.ts";
import type { Stored } from "../journal.ts";

/** The identities of a person. Beyond that, none is added. */
export const IDENTITIES_MAX = 20;

export interface ProviderIdentity {
  readonly issuer: string;
  /** As the issuer spells it. GitHub: the numeric id. */
  readonly subject: string;
}

export interface NewIdentity extends ProviderIdentity {
  /** Its id, if it is new. */
  readonly id: string;
  /** What the provider calls the person now. It is shown, and never compared. */
  readonly name: string;
  /** The address that the provider verified, where the person gets mail. Null if the provider gave none. It is never compared. */
  readonly email: string | null;
}

export interface KnownIdentity extends NewIdentity {
  readonly createdAt: number;
  /** The last sign-in with it. Null before the first one. */
  readonly signedInAt: number | null;
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
      readonly identity: NewIdentity;
      readonly signedInBy: Exclude<SignedInBy, "token">;
      readonly session: NewBrowserSession;
      readonly entry: Entry;
      /** The person, if she is made. */
      readonly newPerson: SignedInPerson;
    }) => Stored<SignInResult>;
    /**
     * Gives an identity to a person who is signed in. `taken`: another person has it. `gone`: she is deactivated. `full`: she has
     * `IDENTITIES_MAX`. `signed_out`: the session of the browser in which she began has ended (F7).
     */
    readonly link: (
      identity: NewIdentity,
      by: { readonly userId: string; readonly browserId: string },
      now: number,
    ) => Stored<"linked" | "taken" | "gone" | "full" | "signed_out">;
    /** A person's, the oldest first. */
    readonly list: (userId: string) => Stored<readonly KnownIdentity[]>;
    /**
     * Takes an identity from its person (F5). `last`: it is her last one of these issuers. Null if she has no such identity.
     *
     * @param request.issuers those of the providers that are set up
     */
    readonly remove: (request: {
      readonly userId: string;
      readonly id: string;
      readonly issuers: readonly string[];
    }) => Stored<KnownIdentity | "last" | null>;
  }
>()("platform/store/Identities") {}
