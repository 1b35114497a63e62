/**
 * The port to credentials and catalogues of connectors. It is one of the store's ports, with the same adapters
 * (journal.ts).
 */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import type { Catalogue } from "../../../domain/connector/catalogue.ts";
import type { CredentialHolder, CredentialKind } from "../../../domain/connector/connector-credential.ts";
import type { Fenced, Stored } from "../journal.ts";

/** A sealed credential as stored; see domain/connector/connector-credential.ts. */
export interface SealedCredential extends CredentialHolder {
  readonly version: number;
  /** The origin for which a person stored it. */
  readonly origin: string;
  readonly kind: CredentialKind;
  readonly envelope: Uint8Array;
}

export interface StoredCredential {
  readonly slug: string;
  /** Null means the project's. */
  readonly personId: string | null;
  readonly origin: string;
  readonly kind: CredentialKind;
  readonly updatedAt: number;
  readonly updatedBy: string | null;
}

/** The tools of a connector's server. */
export interface StoredCatalogue {
  readonly slug: string;
  readonly url: string;
  /** As last seen. Null if the server was never reached. */
  readonly latest: SeenCatalogue | null;
  /** As a person accepted it. Null if it was not accepted. */
  readonly accepted: AcceptedCatalogue | null;
  /** Why the last refresh failed. Null if it did not. */
  readonly failure: string | null;
  readonly triedAt: number;
}

export interface SeenCatalogue {
  readonly catalogue: Catalogue;
  readonly pin: string;
  /** The revision of the protocol that the server speaks. */
  readonly protocol: string;
  readonly at: number;
}

export interface AcceptedCatalogue {
  readonly catalogue: Catalogue;
  readonly pin: string;
  readonly at: number;
  readonly by: string;
}

/** Names the catalogue of one server. */
export interface CatalogueKey {
  readonly projectId: string;
  readonly slug: string;
  readonly url: string;
}

export class Connectors extends Context.Service<
  Connectors,
  {
    /** The credentials that are set, the project's and this person's own, in the order of their slugs. */
    readonly credentials: (projectId: string, personId: string) => Stored<readonly StoredCredential[]>;
    readonly credential: (holder: CredentialHolder) => Stored<SealedCredential | null>;
    /** The version under which the next credential of this holder must be sealed (it is authenticated with the value). */
    readonly nextVersion: (holder: CredentialHolder) => Stored<number>;
    /** Fenced by version: `Fenced` if another credential was written since `nextVersion`. */
    readonly putCredential: (
      credential: SealedCredential,
      by: { readonly userId: string; readonly now: number },
    ) => Stored<void, Fenced>;
    readonly removeCredential: (holder: CredentialHolder, now: number) => Stored<boolean>;
    /** Credentials that are set and belong to people who are deactivated. At most 100. */
    readonly leftCredentials: Stored<readonly CredentialHolder[]>;
    /** In the order of slugs. */
    readonly catalogues: (projectId: string) => Stored<readonly StoredCatalogue[]>;
    readonly catalogue: (projectId: string, slug: string) => Stored<StoredCatalogue | null>;
    /** Writes what a server listed. The accepted catalogue of another URL is forgotten. */
    readonly saw: (key: CatalogueKey, catalogue: SeenCatalogue) => Stored<void>;
    /** Writes why a server did not list its tools. The catalogues of this URL stay. */
    readonly failed: (
      key: CatalogueKey,
      why: { readonly failure: string; readonly now: number },
    ) => Stored<void>;
    /** Accepts the latest catalogue, if it still has this pin. @returns whether it did. */
    readonly accept: (
      key: CatalogueKey,
      by: { readonly pin: string; readonly userId: string; readonly now: number },
    ) => Stored<boolean>;
    /**
     * Completes when the tools of a project may have changed: at the signal of a commit that saw, accepted or forgot some. The
     * reader's poll makes up for lost signals.
     */
    readonly changed: (projectId: string) => Effect.Effect<void>;
    /** Up to `limit` catalogues whose last refresh began before an instant, the oldest first. */
    readonly outdated: (
      before: number,
      limit: number,
    ) => Stored<readonly { readonly projectId: string; readonly slug: string }[]>;
    /** Removes the catalogues of connectors that a project does not have any more. */
    readonly forget: (projectId: string, slug: string) => Stored<void>;
  }
>()("platform/store/Connectors") {}
