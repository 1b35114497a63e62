/** Sealed secrets of projects, and check values of the installation's master keys (api.md 5). */
import * as Context from "effect/Context";
import type { Fenced, Stored } from "./journal.ts";
import type { SealedSecret, StoredSecret } from "./records.ts";

export class Secrets extends Context.Service<
  Secrets,
  {
    readonly list: (
      projectId: string,
    ) => Stored<{ readonly secrets: readonly StoredSecret[]; readonly revision: number }>;
    /** All of a project's sealed values, for injection and verification. */
    readonly sealed: (projectId: string) => Stored<readonly SealedSecret[]>;
    readonly get: (projectId: string, name: string) => Stored<SealedSecret | null>;
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
      },
    ) => Stored<boolean, Fenced>;
    /** Removes the secret's value, and the previous one. */
    readonly remove: (projectId: string, name: string, now: number) => Stored<boolean>;
    /** The check values of this installation's master keys (domain/master-key.ts). Null before its first start. */
    readonly masterKey: Stored<{ readonly check: string; readonly former: string | null } | null>;
    /** Removes expired previous values. @returns how many. 0: none is left. */
    readonly prunePrevious: (now: number) => Stored<number>;
    /** Writes this installation's check value of the master key if it is not yet stored, and returns the stored one. */
    readonly keyCheck: (value: string) => Stored<string>;
  }
>()("platform/store/Secrets") {}
