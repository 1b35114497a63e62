/**
 * The port to what connectors' servers granted, and to sign-ins that are under way. It is one of the store's ports, with
 * the same adapters (journal.ts).
 *
 *  N1 Each change of a grant is a new version. A grant that was removed, refused or replaced meanwhile is not written over.
 *  N2 At most one holder has the lease of a version, so that tokens are renewed once, on any number of nodes. A holder that
 *     died loses it at its end.
 *  N3 A sign-in is ended once: by its state, in the browser in which its own person opened it, before it expires.
 */
import * as Context from "effect/Context";
import type { CredentialHolder } from "../../../domain/connector/connector-credential.ts";
import type { GrantKind } from "../../../domain/connector/connector.ts";
import type { Fenced, Stored } from "../journal.ts";

export type GrantStatus = "empty" | "held" | "refused" | "removed";

/** Names one state of a grant. */
export interface GrantKey extends CredentialHolder {
  readonly version: number;
}

export interface StoredGrant extends GrantKey {
  /** The origin and the kind of `auth` for which it was given. */
  readonly origin: string;
  readonly kind: GrantKind;
  readonly status: GrantStatus;
  /** Null, unless it is held. See domain/connector/connector-grant.ts. */
  readonly envelope: Uint8Array | null;
  readonly issuer: string | null;
  readonly expiresAt: number | null;
  readonly grantedAt: number;
  readonly grantedBy: string | null;
  readonly renewedAt: number | null;
  /** Why it is refused, or why the last attempt to renew it did not succeed. */
  readonly failure: string | null;
  readonly failedAt: number | null;
}

/** A grant to be written as the next version. */
export interface NewGrant extends GrantKey {
  readonly origin: string;
  readonly kind: GrantKind;
  /** Null while only a client is stored. */
  readonly envelope: Uint8Array | null;
  readonly issuer: string | null;
  readonly expiresAt: number | null;
}

/** The holder of a lease, and the present. */
export interface Holder {
  readonly holder: string;
  readonly now: number;
}

export interface Flow {
  readonly projectId: string;
  readonly slug: string;
  readonly userId: string;
  /** Whether the tokens become her own. They become the project's otherwise. */
  readonly isOwn: boolean;
  readonly origin: string;
  readonly stateHash: string;
  readonly envelope: Uint8Array;
}

export interface NewFlow extends Flow {
  readonly ticketHash: string;
  readonly expiresAt: number;
  readonly now: number;
}

export class ConnectorGrants extends Context.Service<
  ConnectorGrants,
  {
    /** Those that are not removed, the project's and this person's own, in the order of their slugs. */
    readonly list: (projectId: string, personId: string) => Stored<readonly StoredGrant[]>;
    /** Also a removed one. */
    readonly get: (holder: CredentialHolder) => Stored<StoredGrant | null>;
    /** Writes a grant as the version after the present one (N1), and ends its lease. `Fenced`: another one was written. */
    readonly put: (
      grant: NewGrant,
      by: { readonly userId: string | null; readonly now: number },
    ) => Stored<void, Fenced>;
    /**
     * Takes the lease of this version (N2).
     *
     * @param by failedAt: the last failure that the caller knows of. After a newer one the lease is `held`, so that its caller looks again.
     */
    readonly lease: (
      key: GrantKey,
      by: Holder & { readonly until: number; readonly failedAt: number | null },
    ) => Stored<"leased" | "held" | "changed">;
    /** Writes renewed tokens as the next version, and ends the lease. @returns false: the lease or the grant was lost. */
    readonly renew: (grant: NewGrant, by: Holder) => Stored<boolean>;
    /**
     * Ends the lease without new tokens.
     *
     * @param by.isRefused the server does not renew it any more: the tokens are forgotten, as the next version.
     */
    readonly fail: (
      key: GrantKey,
      by: Holder & { readonly failure: string; readonly isRefused: boolean },
    ) => Stored<boolean>;
    /** Forgets a grant, whatever holds its lease. @returns the one that was held. */
    readonly remove: (holder: CredentialHolder, now: number) => Stored<StoredGrant | null>;
    /** Grants that are not removed and belong to people who are deactivated. At most 100. */
    readonly left: Stored<readonly CredentialHolder[]>;
    /** Keeps a sign-in, instead of a former one of this person, and forgets those that have expired. */
    readonly begin: (flow: NewFlow) => Stored<void>;
    /** Binds a sign-in of this person to her browser, once. Null if no such ticket is open. */
    readonly open: (by: {
      readonly ticketHash: string;
      readonly userId: string;
      /** The session of the page in that browser. The sign-in ends with it. */
      readonly browserId: string;
      readonly browserHash: string;
      readonly now: number;
    }) => Stored<Flow | null>;
    /** Takes a sign-in out (N3). Null if no such sign-in is open. */
    readonly take: (by: {
      readonly stateHash: string;
      readonly browserHash: string;
      readonly now: number;
    }) => Stored<Flow | null>;
  }
>()("platform/store/ConnectorGrants") {}
