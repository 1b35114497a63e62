/**
 * Who may do what (api.md 1 "Caller", "Origin", "Roles"). A power says who: the callers, and their role. A privilege is one thing that can
 * be done, and belongs to a power. Every door names its privilege: a route, a path of the relay, a socket, a tool of the platform, an
 * address inside the sandbox, a git ref. So what one door refuses, no other one gives.
 *
 *  P1 A door without a privilege is closed, and a test fails.
 *  P2 An addition to a power holds for one privilege at all of its doors: a project's rule against a tool, the sandboxes that an agent
 *     may enter, and the act by which a person steers a session.
 */
import type { GuardedTool } from "../connector/connector.ts";
import type { SteeringAct } from "../connector/own-credential.ts";
import type { ProjectRole } from "./role.ts";

/**
 * `user`: a person, or a program with her token. `session`, `trigger`: the agent of a session that a person or a trigger started.
 * `sandbox`: the daemon. `node`: another node of this installation. `stranger`: everybody, including callers without a credential.
 */
export type CallerKind = "user" | "session" | "trigger" | "sandbox" | "node" | "stranger";

/** A token's permissions follow from its origin (api.md 1 "Origin"). */
export type Origin = Extract<CallerKind, "user" | "session" | "trigger">;

export interface Standing {
  readonly callers: readonly CallerKind[];
  /** Over the account: a token bound to one project lacks it. `owner`: and the person must own the account. */
  readonly account?: "person" | "owner";
  /** The lowest role in the project. `merge`: the one that the project names. Absent: it does not depend on a project. */
  readonly role?: ProjectRole | "merge";
}

export const POWERS = {
  /** Ask without a credential, or with one that the door itself checks: a signature, a link, a form. */
  ask: { callers: ["stranger"] },
  /** Read the caller's own identity. */
  self: { callers: ["user", "session"] },
  /** A person's, with any token of hers. */
  person: { callers: ["user"] },
  /** A person's own matters: her tokens, new projects, the queue. */
  account: { callers: ["user"], account: "person" },
  /** Govern the account: its people, invitations. */
  administer: { callers: ["user"], account: "owner" },
  /** See the service itself, with its metrics. Its doors also check that the account is the operator's. */
  operate: { callers: ["user"], account: "owner" },
  /** Read a project and everything in it. */
  read: { callers: ["user", "session", "trigger"], role: "viewer" },
  /** Work in a project: sessions, fires. */
  work: { callers: ["user", "session"], role: "member" },
  /** Take back what one asked for. The door asks whose it is: what another person asked for needs `work`. */
  withdraw: { callers: ["user", "session"], role: "viewer" },
  /** Talk to the agent of a session. An agent never answers its own request. */
  converse: { callers: ["user"], role: "member" },
  /** Open change requests. */
  propose: { callers: ["user", "session", "trigger"], role: "member" },
  /** Use the project's connectors, as the agent of a session. */
  execute: { callers: ["session", "trigger"], role: "member" },
  /** A member's, and not her agents': names of secrets, proposals of triggers, saves. */
  contribute: { callers: ["user"], role: "member" },
  /** Merge a change request. */
  merge: { callers: ["user"], role: "merge" },
  /** Govern a project: secrets, settings, members. A token bound to it has this, too. */
  govern: { callers: ["user"], role: "owner" },
  /** Read what is not for agents: a repository with git, saved work. */
  fetch: { callers: ["user"], role: "viewer" },
  /** Write to a repository with git (git/server/ref-policy.ts has the refs). */
  push: { callers: ["user"], role: "member" },
  /** The only uses of a PLATFORM_TOKEN. */
  clone: { callers: ["sandbox"] },
  /** What nodes ask each other. */
  node: { callers: ["node"] },
  /** Every program in a sandbox has this, of a person's session and of a trigger's. */
  inside: { callers: ["session", "trigger"] },
} as const satisfies Readonly<Record<string, Standing>>;

export type Power = keyof typeof POWERS;

export const powerStanding = (power: Power): Standing => POWERS[power];

export interface PrivilegeRule {
  readonly power: Power;
  /** The project may deny it to its agents under this tool's name (own-tools.ts). */
  readonly tool?: GuardedTool;
  /** Which sessions an agent reaches by it: its own and those that it started. A person reaches all. */
  readonly agents?: readonly ("own" | "started")[];
  /** By this act a person steers the session (own-credential.ts O1). */
  readonly act?: SteeringAct;
  /** The address of the service inside a sandbox has no such door, whatever the credential. */
  readonly closedInside?: true;
}

export const PRIVILEGES = {
  see_health: { power: "ask" },
  read_documents: { power: "ask" },
  /** Get a session of the page, or a program's token, by what a person has: a link, an invitation, a provider's word. */
  sign_in: { power: "ask" },
  /** Fire a trigger by its secret's signature. A secret that signs may be known to an agent, and an agent of a trigger starts no session. */
  sign_for_trigger: { power: "ask", closedInside: true },
  link_browser: { power: "person" },
  know_itself: { power: "self" },
  manage_own_access: { power: "account" },
  see_people: { power: "account" },
  see_model_providers: { power: "account" },
  /** Her own providers of models. Only she sees and changes them. */
  manage_own_model_providers: { power: "account" },
  /** Her own subscriptions at the makers of runtimes. Only she sees and changes them. */
  manage_own_subscriptions: { power: "account" },
  /** Her notices by mail and in her own chat. Only she sees and changes them. */
  manage_own_notices: { power: "account" },
  see_queue: { power: "account" },
  create_project: { power: "account" },
  govern_account: { power: "administer" },
  operate_service: { power: "operate" },

  read_project: { power: "read" },
  /** Let a sandbox boot: a new session, a fire, a replay. */
  start_session: { power: "work", tool: "start_session" },
  restart_session: { power: "work", tool: "start_session", act: "restart" },
  /** End a session whose work is saved or stays, or a fire that waits. */
  stop_session: { power: "work" },
  /** End a session without saving, or delete it. An agent never throws away the work of a session that is not its own. */
  discard_work: { power: "work", agents: ["own", "started"] },
  /** End the own request that waits. */
  cancel_request: { power: "withdraw" },
  name_session: { power: "work" },
  enter_port: { power: "work", agents: ["own", "started"], act: "port" },
  close_change_request: { power: "work" },
  /** Its title and its description. */
  edit_change_request: { power: "work" },
  build_environment: { power: "work" },
  /** Read the manifest again, and try what would stand in it. */
  try_triggers: { power: "work" },

  /** Make an agent act. */
  instruct_agent: { power: "converse", act: "message" },
  /** What belongs to messages and makes no agent act on something new. */
  manage_messages: { power: "converse" },
  interrupt_agent: { power: "converse" },
  settle_request: { power: "converse", act: "answer" },
  /** Set what a session may spend on models. An agent's token never raises a limit. */
  limit_session: { power: "converse" },
  approve_call: { power: "converse" },
  /** The agent runtime itself. Who reaches it makes the agent act. */
  use_runtime: { power: "converse", agents: ["own"], act: "runtime" },
  /** The runtime's end of a turn, and its new secrets. */
  control_runtime: { power: "converse", agents: ["own"] },
  open_terminal: { power: "converse", agents: [], act: "terminal" },
  /** Where PLATFORM_TERMINALS keeps terminals for owners. */
  open_owners_terminal: { power: "govern", agents: [], act: "terminal" },
  give_back_credentials: { power: "converse" },
  /** Comment on a change request, approve it, ask for changes. No agent reviews its own work. */
  review_change_request: { power: "converse" },

  open_change_request: { power: "propose", tool: "open_change_request" },
  merge_change_request: { power: "merge" },
  call_tool: { power: "execute" },
  use_own_credential: { power: "contribute" },
  see_secret_names: { power: "contribute" },
  propose_trigger: { power: "contribute" },
  /** With git, as `refs/wip/<session>`. */
  fetch_saved_work: { power: "contribute" },
  /** Delete a save that no sandbox has brought back. */
  delete_save: { power: "contribute" },
  write_secret: { power: "govern" },
  /** As secrets: members see which ones the project has, and owners set them. */
  see_project_model_providers: { power: "contribute" },
  set_project_model_provider: { power: "govern" },
  govern_project: { power: "govern" },
  /** Delete a project, and restore a deleted one. */
  delete_project: { power: "govern" },

  read_repository: { power: "fetch" },
  /** Compare a session's saved work, and list its size. */
  read_saved_work: { power: "fetch" },
  write_ref: { power: "push", act: "push" },
  get_clone_credential: { power: "clone" },
  /** Give back the own subscription that the sandbox got, as its runtime renewed it. */
  renew_subscription: { power: "clone" },
  join_nodes: { power: "node", closedInside: true },

  /** What a program in a sandbox reaches (sandbox/egress-policy.ts). */
  reach_service: { power: "inside" },
  reach_model: { power: "inside" },
  reach_registry: { power: "inside" },
  reach_host: { power: "inside" },
} as const satisfies Readonly<Record<string, PrivilegeRule>>;

export type Privilege = keyof typeof PRIVILEGES;

/** By which a person steers a session. */
export type SteeringPrivilege = {
  [P in Privilege]: (typeof PRIVILEGES)[P] extends { readonly act: SteeringAct } ? P : never;
}[Privilege];

export const isSteering = (privilege: Privilege): privilege is SteeringPrivilege =>
  privilegeRule(privilege).act !== undefined;

export const privilegeRule = (privilege: Privilege): PrivilegeRule => PRIVILEGES[privilege];
