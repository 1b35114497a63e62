/**
 * Long-lived uses that callers hold open, as the store checks them: a relayed connection, a preview, a git exchange, a
 * stream.
 */

import type { ProjectRole } from "../../../domain/person/role.ts";

/** An access token, or a git password that was created for a sandbox. */
export type Credential =
  | { readonly kind: "token"; readonly id: string }
  | { readonly kind: "password"; readonly hash: string };

/** One credential's use of one project, and of one session if the connection leads into its sandbox. */
export interface Grant {
  readonly credential: Credential;
  /** Null if the connection reaches no project. Then it needs an owner of the account if it needs an owner. */
  readonly projectId: string | null;
  /** The lowest role in the project that may hold the connection. A password's rights do not depend on a role. */
  readonly needs: ProjectRole;
  readonly session: GrantedSession | null;
}

/** The grant ends with this sandbox, with the session's run, and with the session's deletion. */
export interface GrantedSession {
  readonly id: string;
  readonly sandboxId: string;
}

/** Called with the id of a token or session that has ended, or of a person whose roles changed. Null if some endings may have been missed. */
export type HearEnding = (id: string | null) => void;
