/** The fields of the API's answers about people that the page reads (api.md 2). */

export type AccountRole = "member" | "owner";
export type ProjectRole = "viewer" | AccountRole;

export interface Person {
  id: string;
  name: string;
  role: AccountRole;
  created_at: string;
  deactivated_at: string | null;
}

export interface Invitation {
  id: string;
  name: string;
  role: AccountRole;
  projects: { project_id: string; role: ProjectRole }[];
  created_by: string;
  created_at: string;
  expires_at: string;
}

/** An invitation as the person who has its link sees it. */
export interface OpenInvitation {
  name: string;
  role: AccountRole;
  account: string;
  invited_by: string;
  projects: { name: string; role: ProjectRole }[];
  expires_at: string;
}

export interface Member {
  user: Person;
  /** The highest of the person's grants. */
  role: ProjectRole;
  own_role: ProjectRole | null;
}

/** A browser that the reader is signed in with. */
export interface Browser {
  id: string;
  signed_in_by: "token" | "oidc" | "github";
  address: string | null;
  user_agent: string | null;
  last_used_at: string;
  current: boolean;
}

/** A program that waits for the reader's decision. */
export interface DeviceLogin {
  client: string;
  address: string | null;
  user_agent: string | null;
  created_at: string;
  expires_at: string;
}

/** Where people can sign in. */
export interface Identity {
  id: string;
  provider: "oidc" | "github" | null;
  issuer: string;
  subject: string;
  name: string;
  created_at: string;
  last_sign_in_at: string | null;
}

export interface Provider {
  id: string;
  label: string;
}

/** A row of the audit record. */
export interface AuditEvent {
  id: string;
  at: string;
  project_id: string | null;
  actor: {
    kind: "person" | "session" | "trigger" | "operator" | "service" | "unknown";
    id: string | null;
    name: string | null;
  };
  action: string;
  target: string | null;
  outcome: "done" | "begun" | "refused";
  address: string | null;
  user_agent: string | null;
  request_id: string | null;
  changes: Record<string, unknown>;
}
