/** Sealed secrets of projects, and check values of the installation's master keys (api.md 5). */
import * as Context from "effect/Context";
import type { Fenced, Stored } from "../journal.ts";

/** A sealed value as stored; see domain/secret/secret.ts for the envelope. */
export interface SealedSecret {
  readonly projectId: string;
  readonly name: string;
  readonly version: number;
  readonly envelope: Uint8Array;
}

export interface OwnedSecret extends SealedSecret {
  /** Whether it is the service's own. Sandboxes and builds never get its value. */
  readonly service: boolean;
}

/** The value before the current one. It verifies webhooks until an instant, and is never injected. */
export interface PreviousSecret {
  readonly version: number;
  readonly envelope: Uint8Array;
  readonly until: number;
}

/** A secret that verifies webhooks. */
export interface VerifyingSecret extends OwnedSecret {
  readonly previous: PreviousSecret | null;
}

export interface StoredSecret {
  readonly name: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly updatedBy: string | null;
  readonly service: boolean;
  /** Until when the previous value verifies webhooks. Null if it does not. */
  readonly previousUntil: number | null;
}

export class Secrets extends Context.Service<
  Secrets,
  {
    readonly list: (
      projectId: string,
    ) => Stored<{ readonly secrets: readonly StoredSecret[]; readonly revision: number }>;
    /** All of a project's sealed values. */
    readonly sealed: (projectId: string) => Stored<readonly OwnedSecret[]>;
    /** The same, and the revision that names exactly these values. */
    readonly current: (
      projectId: string,
    ) => Stored<{ readonly sealed: readonly OwnedSecret[]; readonly revision: number }>;
    readonly get: (projectId: string, name: string) => Stored<OwnedSecret | null>;
    /** The version under which the next value of this name must be sealed (it is authenticated with the value). */
    readonly nextVersion: (projectId: string, name: string) => Stored<number>;
    /** Fenced by version: `Fenced` if another value was written since `nextVersion`. True: the name was new. */
    readonly put: (
      secret: SealedSecret,
      by: {
        readonly userId: string;
        readonly now: number;
        /** Until when the replaced value verifies webhooks. Absent: it ends at once. */
        readonly previousUntil?: number;
        /** Absent: as it was; a new name is delivered. */
        readonly service?: boolean | undefined;
      },
    ) => Stored<boolean, Fenced>;
    /** Removes the secret's value, and the previous one. */
    readonly remove: (projectId: string, name: string, now: number) => Stored<boolean>;
    /** The check values of this installation's master keys (domain/secret/master-key.ts). Null before its first start. */
    readonly masterKey: Stored<{ readonly check: string; readonly former: string | null } | null>;
    /** Removes expired previous values. @returns how many. 0: none is left. */
    readonly prunePrevious: (now: number) => Stored<number>;
    /** Writes this installation's check value of the master key if it is not yet stored, and returns the stored one. */
    readonly keyCheck: (value: string) => Stored<string>;
  }
>()("platform/store/Secrets") {}
