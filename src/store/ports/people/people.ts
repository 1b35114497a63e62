/**
 * The people of an account: their roles, their grants in projects, and invitations (domain/person/role.ts).
 *
 *  P1 An account always has an owner who is not deactivated. The change that would leave none is refused, also if two
 *     owners make one at once.
 *  P2 An invitation is accepted at most once, before its expiry, and not after it was revoked. The person, her grants
 *     and her token are made in one transaction.
 *  P3 A person who loses a role, or is deactivated, ends what her tokens opened: the change signals her id
 *     (grants.ts) in its own transaction.
 *  P4 People are never deleted.
 */
import * as Context from "effect/Context";
import type { AccountRole, ProjectRole } from "../../../domain/person/role.ts";
import type { BadCursor } from "../errors.ts";
import type { Stored } from "../journal.ts";
import type { Page, PageRequest } from "../page.ts";

export interface Person {
  readonly id: string;
  readonly name: string;
  readonly role: AccountRole;
  readonly createdAt: number;
  /** Null if she is active. */
  readonly deactivatedAt: number | null;
}

/** A person's own grant in a project. */
export interface ProjectGrant {
  readonly projectId: string;
  readonly role: ProjectRole;
}

export interface Invitation {
  readonly id: string;
  /** Of the person who is invited, as the inviting one knows her. She may change it. */
  readonly name: string;
  readonly role: AccountRole;
  readonly projects: readonly ProjectGrant[];
  readonly createdBy: string;
  readonly createdAt: number;
  readonly expiresAt: number;
}

export interface NewInvitation extends Omit<Invitation, "createdAt"> {
  readonly accountId: string;
  /** Of the code in the link. */
  readonly hash: string;
  readonly now: number;
}

/** An invitation as the person who has the link sees it. */
export interface OpenInvitation {
  readonly name: string;
  readonly role: AccountRole;
  readonly account: string;
  readonly invitedBy: string;
  /** Names of projects, with her role. */
  readonly projects: readonly { readonly name: string; readonly role: ProjectRole }[];
  readonly expiresAt: number;
}

/** A person with her role in a project. */
export interface Member {
  readonly person: Person;
  /** The highest of her grants. */
  readonly role: ProjectRole;
  /** Her own grant. If null, her role follows from the account or from the project's default. */
  readonly own: ProjectRole | null;
}

/** A live session whose creator is deactivated. */
export interface UnwantedSession {
  readonly id: string;
  readonly projectId: string;
}

export class People extends Context.Service<
  People,
  {
    /** All of an account, newest first, also deactivated ones. */
    readonly list: (accountId: string, request: PageRequest) => Stored<Page<Person>, BadCursor>;
    /**
     * Changes a person's name or role. Null if the account has no such person. `last_owner`: P1.
     */
    readonly update: (
      accountId: string,
      id: string,
      change: { readonly name?: string | undefined; readonly role?: AccountRole | undefined },
    ) => Stored<Person | "last_owner" | null>;
    /** Ends the person's tokens for good, if she is active. Null if there is no such person. `last_owner`: P1. */
    readonly deactivate: (accountId: string, id: string, now: number) => Stored<Person | "last_owner" | null>;
    /** She gets her roles back, and no token. Null if there is no such person. */
    readonly reactivate: (accountId: string, id: string) => Stored<Person | null>;
    /** Whether the person exists and is not deactivated. */
    readonly isActive: (id: string) => Stored<boolean>;
    /** Live sessions that deactivated people started, of all accounts. Sessions of triggers go on. At most 100. */
    readonly unwantedSessions: Stored<readonly UnwantedSession[]>;

    readonly invite: (invitation: NewInvitation) => Stored<Invitation>;
    /** Those that can still be accepted, newest first. */
    readonly invitations: (
      accountId: string,
      request: PageRequest & { readonly now: number },
    ) => Stored<Page<Invitation>, BadCursor>;
    /** False if it could not be accepted any more. */
    readonly revokeInvitation: (accountId: string, id: string, now: number) => Stored<boolean>;
    /** Null if unknown, used, revoked or expired. */
    readonly openInvitation: (hash: string, now: number) => Stored<OpenInvitation | null>;
    /** Makes the person with her first token. Null if unknown, used, revoked or expired. */
    readonly accept: (request: {
      readonly hash: string;
      readonly userId: string;
      readonly name: string;
      readonly tokenId: string;
      readonly tokenHash: string;
      readonly now: number;
    }) => Stored<Person | null>;

    /** Active people of the project's account who have a role in the project, by name. */
    readonly members: (projectId: string) => Stored<readonly Member[]>;
    /** A person's own grant in a project. */
    readonly ownRole: (projectId: string, userId: string) => Stored<ProjectRole | null>;
    /**
     * Sets a person's own grant in a project, or removes it (null).
     *
     * @returns null if the project's account has no such person
     */
    readonly grant: (request: {
      readonly projectId: string;
      readonly userId: string;
      readonly role: ProjectRole | null;
      readonly now: number;
    }) => Stored<Person | null>;
  }
>()("platform/store/People") {}
