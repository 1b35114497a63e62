/** The git passwords of sandboxes (api.md 7). */
import * as Context from "effect/Context";
import type { Stored } from "../journal.ts";

export interface CloneCredential {
  readonly hash: string;
  readonly projectId: string;
  readonly sessionId: string;
  readonly sandboxId: string;
  readonly expiresAt: number;
  readonly now: number;
}

export class CloneCredentials extends Context.Service<
  CloneCredentials,
  {
    readonly mint: (credential: CloneCredential) => Stored<void>;
    /**
     * The credential with this hash, if it has not expired, its session is live, and its sandbox is provisioning or
     * active (G10). Otherwise null.
     */
    readonly find: (hash: string, now: number) => Stored<CloneCredential | null>;
  }
>()("platform/store/CloneCredentials") {}
