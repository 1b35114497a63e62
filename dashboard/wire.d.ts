/** The fields of the API's answers that the page reads (api.md 2, 3, 4, 6). Instants are ISO 8601 strings. */

export type { Sandbox } from "./wire-environment.d.ts";

export interface Me {
  user: { id: string; name: string; role: "member" | "owner" };
  token: { id: string };
  account: {
    name: string;
    tier: string;
    session_cap: number;
    active_sessions: number;
    queued_fires: number;
    /** Whether it may look at the service itself. */
    operator?: boolean;
  };
  /** Who may open terminals in sandboxes. */
  terminals?: "members" | "owners" | "off";
}

export interface Project {
  id: string;
  name: string;
  status: "active" | "archived";
  repository: { kind: string; url?: string; owner?: string; name?: string; api_url?: string };
  default_branch: string;
  triggers_paused: boolean;
  /** Of the account's other people. Null: none. */
  default_role: "viewer" | "member" | null;
  /** The lowest role that may merge. */
  merge_role: "member" | "owner";
  manifest: { commit: string | null; synced_at: string | null; error: string | null };
  created_at: string;
}

export interface Failure {
  code: string;
  message: string;
  at?: string;
}

export interface Session {
  id: string;
  project_id: string;
  status: string;
  base_ref: string;
  base_commit: string | null;
  branch_name: string;
  name: string | null;
  agent_name: string;
  agent_model: string | null;
  initial_prompt: string | null;
  trigger_slug: string | null;
  fire_id: string | null;
  parent_session_id: string | null;
  failure: Failure | null;
  stop_reason: string | null;
  saved: import("./wire-saved.d.ts").Saved | null;
  restored: import("./wire-saved.d.ts").Restored | null;
  pending_approvals: number;
  created_by: string;
  last_turn: LastTurn | null;
  turn: Turn;
  created_at: string;
  running_at: string | null;
  stopped_at: string | null;
}

export interface LastTurn {
  state: "completed" | "failed" | "interrupted";
  error: { code: string; message: string } | null;
  at: string;
}

export interface Trigger {
  slug: string;
  name: string;
  type: "cron" | "webhook";
  agent: string;
  enabled: boolean;
  prompt: string;
  cron?: string;
  timezone?: string;
  secret_env?: string;
  webhook_url?: string;
  filter?: WebhookFilter;
  last_fired_at: string | null;
  next_fire_at: string | null;
  upcoming: string[];
  last_fire: { id: string; status: string; at: string } | null;
}

/** A trigger that is being described: its lines, or what is missing. */
export interface TriggerDraft {
  lines: string | null;
  upcoming: string[];
  issues: { path: string; message: string }[];
}

/** The conditions on a delivery. Null for each list or table that the manifest omits. */
export interface WebhookFilter {
  events: string[] | null;
  branches: string[] | null;
  own_pushes: boolean;
  if: Record<string, string | number | boolean> | null;
}

export interface WebhookRefusal {
  id: string;
  at: string;
  slug: string;
  status: number;
  code: string;
  reason: string;
  delivery_id: string | null;
  event: string | null;
  declared_bytes: number | null;
  body_bytes: number | null;
  address: string;
  forwarded_for: string | null;
}

export interface TriggerListing {
  triggers: Trigger[];
  errors: {
    slug: string | null;
    index: number | null;
    path: string | null;
    message: string;
    line: number | null;
  }[];
  manifest: { commit: string | null; synced_at: string | null; stale: boolean };
  warnings: { code: string; message: string }[];
  triggers_paused: boolean;
  /** Absent while the service schedules nothing. */
  scheduler?: { ticked_at: string | null; late: boolean };
}

export interface Fire {
  id: string;
  trigger_slug: string;
  kind: "cron" | "webhook" | "manual";
  status: string;
  reason: string | null;
  scheduled_for: string | null;
  received_at: string;
  delivery_id: string | null;
  session_id: string | null;
  /** Null: it started no session. */
  outcome: { state: "running" | "finished" | "failed" | "stopped"; code: string | null } | null;
  attempts: number;
  replay_of: string | null;
  /** Absent if no signature was checked. */
  verified_with?: "current" | "previous" | null;
}

export interface FireDetail extends Fire {
  request: {
    headers: { content_type?: string | null; user_agent?: string | null; forwarded_for?: string | null };
    body: string;
    encoding: "utf8" | "base64";
  } | null;
  prompt: string | null;
}

export interface QueuedFire {
  fire_id: string;
  project_id: string;
  trigger_slug: string;
  position: number;
  queued_at: string;
  expires_at: string;
}

export interface ChangeRequest {
  number: number;
  session_id: string | null;
  head_ref: string;
  base_ref: string;
  title: string;
  description: string | null;
  status: "open" | "merged" | "closed";
  created_at: string;
  updated_at: string;
  merged_commit: string | null;
  merged_at: string | null;
  created_by: string | null;
  merged_by: string | null;
}

export interface ChangeRequestDetail extends ChangeRequest {
  pull_request: { number: number; url: string; status: "open" | "merged" | "closed" } | null;
  mergeable: boolean;
  conflicts: string[];
  /** Mistakes that a merge would bring. `line` null: the whole file, or not known. */
  warnings: { file: string; line: number | null; message: string }[];
  head_commit: string;
  files_changed: { path: string; additions: number; deletions: number }[];
  commits_total: number;
  files_changed_total: number;
  commits: { sha: string; subject: string; author_name: string; committed_at: string }[];
}

export interface Usage {
  input_tokens: number;
  output_tokens: number;
  cached_tokens: number;
  /** US dollars. */
  cost_usd: number;
}

/** Days are in UTC, newest first. */
export interface ProjectUsage {
  from: string;
  to: string;
  days: (Usage & { day: string; model: string })[];
  total: Usage;
}

export interface Turn {
  state: "idle" | "running" | "requires_action";
  since: string | null;
  /** The id of the request that the agent waits for. */
  waiting_for: string | null;
}

export interface Author {
  kind: "user" | "trigger" | "service" | "agent";
  name: string;
  trigger_slug?: string | null;
  fire_id?: string | null;
}

export type ContentPart =
  | { type: "text"; text: string }
  | { type: "file"; name: string; media_type: string; attachment_id: string | null };

export interface ToolCall {
  name: string;
  kind: string;
  title: string | null;
  input: unknown;
  output: string;
  truncated: boolean;
  changes: { path: string; operation: string; patch: string | null }[];
}

export interface Question {
  title: string;
  text: string;
  options: { label: string; description: string | null }[];
  multiple: boolean;
}

export interface Answer {
  /** Null without an answer. */
  by: Author | null;
  at: string;
  /** Of a permission. */
  choice?: "once" | "always" | "reject";
  message?: string;
  /** Of questions: for each of them the chosen labels and the words of the reader. */
  answers?: string[][];
  /** Unattended: a trigger's session has no reader to ask. */
  declined?: "unattended" | "expired";
}

/** One item of a session's conversation. A later version has a higher `seq` and replaces the earlier one. */
export interface Item {
  id: string;
  seq: number;
  /** Items are shown in this order. */
  place: number;
  kind: "message" | "thought" | "tool" | "plan" | "request" | "note";
  role: "user" | "agent" | null;
  author: Author | null;
  turn_id: string | null;
  /** The tool call that started the subagent. */
  parent_id: string | null;
  status: string;
  content: ContentPart[];
  tool: ToolCall | null;
  plan: { text: string; status: "pending" | "running" | "completed" | "cancelled" }[];
  request: {
    kind: "permission" | "question";
    title: string;
    patterns: string[];
    /** The whole command that waits for a permission. */
    command?: string;
    /** What the answer `always` allows from then on. */
    always?: string[];
    questions: Question[];
  } | null;
  /** What became of a request. Null while it waits, and for all other items. */
  answer?: Answer | null;
  model: string | null;
  usage: Usage | null;
  error: { code: string; message: string } | null;
  /** Whether content or output was removed to make room. */
  pruned?: boolean;
  created_at: string;
  completed_at: string | null;
}

export interface ConversationPage {
  /** Newest first. */
  items: Item[];
  state: Turn;
  /** Messages that wait or are being sent. */
  queue: Item[];
  /** Requests that wait for an answer. */
  requests: Item[];
  /** Whether the queue waits until somebody resumes it or sends a message. */
  queue_held: boolean;
  usage: Usage;
  /** The snapshot has every version up to this number. */
  seq: number;
  next_cursor: string | null;
}

/** Text that was added to an item's last text part. `offset`: the text's length before. */
export interface TextDelta {
  item_id: string;
  offset: number;
  text: string;
}

/** What a message may choose. */
export interface ModelListing {
  models: { id: string; name: string }[];
  agents: { name: string; description: string }[];
  default_model: string | null;
}

export interface SecretListing {
  secrets: {
    name: string;
    masked: boolean;
    updated_at: string;
    previous_valid_until: string | null;
    /** The model provider that can be asked about it. */
    provider: string | null;
  }[];
  declared: { required: string[]; optional: string[]; missing: string[] };
}

export interface Token {
  id: string;
  name: string;
  origin: "user" | "session" | "trigger";
  user_id: string;
  project_id: string | null;
  created_at: string;
  expires_at: string | null;
  last_used_at: string | null;
}

/** The pushed work of a session, since the commit at which it began. */
export interface SessionChanges {
  base_commit: string | null;
  head_commit: string | null;
  commits_total: number;
  commits: { sha: string; subject: string; author_name: string; committed_at: string }[];
  files_changed_total: number;
  files_changed: { path: string; additions: number; deletions: number }[];
}

/** A state machine as it is defined. */
export interface MachineDefinition {
  name: string;
  initial: string;
  states: { name: string; final: boolean; text: string }[];
  arrows: { from: string; event: string; to: string; guard: string | null; commands: string[] }[];
}

/** Why an actor is in its state. */
export interface Machine {
  machine: string | null;
  id: string;
  state: string | null;
  since: string | null;
  why: string[];
  next: { event: string; to: string | null; text: string; at: string | null; commands: string[] }[];
  pending: { command: string; text: string; since: string; attempts: number; last_error: string | null }[];
  transitions: {
    number: number;
    at: string;
    event: string;
    text: string;
    from: string | null;
    to: string;
    detail: string | null;
    commands: string[];
    duration_ms: number | null;
  }[];
  next_cursor: string | null;
}
