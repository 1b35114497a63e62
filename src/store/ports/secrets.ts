/** Sealed secrets of projects, and what the master keys of the installation are known by (api.md 5). */
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
    /** The version to seal the next value of this name with (it is part of what is authenticated). */
    readonly nextVersion: (projectId: string, name: string) => Stored<number>;
    /** Fenced by version: `Fenced` when another value was written since `nextVersion`. True: the name was new. */
    readonly put: (
      secret: SealedSecret,
      by: {
        readonly userId: string;
        readonly now: number;
        /** Until when the value that it replaces verifies webhooks; absent: it ends at once. */
        readonly previousUntil?: number;
      },
    ) => Stored<boolean, Fenced>;
    /** Removes the secret's value, and the one before it. */
    readonly remove: (projectId: string, name: string, now: number) => Stored<boolean>;
    /** What the master keys of this installation are known by (domain/master-key.ts); null before its first start. */
    readonly masterKey: Stored<{ readonly check: string; readonly former: string | null } | null>;
    /** Removes previous values whose time is over. @returns how many; none: there is none left. */
    readonly prunePrevious: (now: number) => Stored<number>;
    /** Master key check value of this installation; writes it when there is none, returns the one that stands. */
    readonly keyCheck: (value: string) => Stored<string>;
  }
>()("platform/store/Secrets") {}
