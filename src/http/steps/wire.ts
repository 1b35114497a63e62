/** Records in wire format: snake_case, instants as ISO 8601 UTC with milliseconds */
import type { Comparison } from "../../git/port.ts";
import type { StoredEvent } from "../../store/ports/events.ts";
import type { Account } from "../../store/ports/people/accounts.ts";
import type { QueuedFire, ShownFire } from "../../store/ports/triggers/fires.ts";
import type { Token } from "../../store/ports/people/identity.ts";
import type { PageRequest } from "../../store/ports/page.ts";
import type { Project } from "../../store/ports/projects/projects.ts";
import type { Sandbox } from "../../store/ports/sessions/sandboxes.ts";
import type { Session } from "../../store/ports/sessions/sessions.ts";
import { PAGE_DEFAULT } from "../api/schemas.ts";

const DAY_MS = 86_400_000;
/** The day of the last instant, as its number and its text: the instants of a list are mostly of one day. */
let lastDay = { day: Number.NaN, text: "" };
const two = (value: number): string => (value < 10 ? `0${value}` : String(value));

/** As Date.toISOString, which takes several times as long: a list has hundreds of instants. */
export const instant = (at: number): string => {
  const day = Math.floor(at / DAY_MS);
  if (day !== lastDay.day)
    lastDay = { day, text: new Date(at).toISOString().slice(0, -"00:00:00.000Z".length) };
  const ms = Math.trunc(at - day * DAY_MS);
  const [hour, minute] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60];
  const [second, rest] = [Math.floor(ms / 1000) % 60, String(ms % 1000).padStart(3, "0")];
  return `${lastDay.text}${two(hour)}:${two(minute)}:${two(second)}.${rest}Z`;
};
export const instantOrNull = (at: number | null): string | null => (at === null ? null : instant(at));

/** The page that a list request asks for. */
export const pageRequest = (query: { readonly limit?: number; readonly cursor?: string }): PageRequest => ({
  limit: query.limit ?? PAGE_DEFAULT,
  cursor: query.cursor ?? null,
});

export const accountWire = (account: Account) => ({
  id: account.id,
  name: account.name,
  tier: account.tier,
  session_cap: account.sessionCap,
  active_sessions: account.activeSessions,
  queued_fires: account.queuedFires,
});

export const tokenWire = (token: Token) => ({
  id: token.id,
  name: token.name,
  origin: token.origin,
  user_id: token.userId,
  project_id: token.projectId,
  created_at: instant(token.createdAt),
  expires_at: instantOrNull(token.expiresAt),
  last_used_at: instantOrNull(token.lastUsedAt),
});

export const projectWire = (project: Project) => ({
  id: project.id,
  account_id: project.accountId,
  name: project.name,
  status: project.status,
  deletes_at: instantOrNull(project.deletesAt),
  repository: project.repository,
  default_branch: project.defaultBranch,
  triggers_paused: project.triggersPaused,
  default_role: project.defaultRole,
  merge_role: project.mergeRole,
  approvals_required: project.approvalsRequired,
  manifest: {
    commit: project.manifest.commit,
    synced_at: instantOrNull(project.manifest.syncedAt),
    error: project.manifest.error,
  },
  created_at: instant(project.createdAt),
  updated_at: instant(project.updatedAt),
});

export const sessionWire = (session: Session) => ({
  id: session.id,
  project_id: session.projectId,
  account_id: session.accountId,
  status: session.status,
  base_ref: session.baseRef,
  base_commit: session.baseCommit,
  branch_name: session.id,
  name: session.name,
  agent_name: session.agentName,
  agent_model: session.agentModel,
  initial_prompt: session.initialPrompt,
  metadata: session.metadata,
  trigger_slug: session.triggerSlug,
  fire_id: session.fireId,
  parent_session_id: session.parentSessionId,
  created_by: session.createdBy,
  failure: session.failure === null ? null : { ...session.failure, at: instant(session.failure.at) },
  stop_reason: session.stopReason,
  saved: session.saved,
  unsaved: session.unsaved && {
    since: instant(session.unsaved.since),
    tries: session.unsaved.tries,
    next_try_at: instant(session.unsaved.nextAt),
  },
  restored: session.restored,
  last_turn: session.lastTurn && {
    state: session.lastTurn.state,
    error: session.lastTurn.error,
    at: session.lastTurn.at,
  },
  created_at: instant(session.createdAt),
  updated_at: instant(session.updatedAt),
  running_at: instantOrNull(session.runningAt),
  stopped_at: instantOrNull(session.stoppedAt),
});

export const sandboxWire = (sandbox: Sandbox) => ({
  id: sandbox.id,
  session_id: sandbox.sessionId,
  provider: sandbox.provider,
  node_id: sandbox.nodeId,
  image: sandbox.image,
  environment: sandbox.environment && {
    build_id: sandbox.environment.buildId,
    stale: sandbox.environment.isStale,
  },
  status: sandbox.status,
  failure: sandbox.failure,
  created_at: instant(sandbox.createdAt),
  waited: sandbox.warmRecipe !== null,
  boot_started_at: instantOrNull(sandbox.bootStartedAt),
  active_at: instantOrNull(sandbox.activeAt),
  ended_at: instantOrNull(sandbox.endedAt),
});

export const fireWire = (fire: ShownFire) => ({
  id: fire.id,
  trigger_slug: fire.triggerSlug,
  kind: fire.kind,
  status: fire.status,
  reason: fire.reason,
  scheduled_for: instantOrNull(fire.scheduledFor),
  received_at: instant(fire.receivedAt),
  delivery_id: fire.deliveryId,
  session_id: fire.sessionId,
  outcome: fire.outcome,
  session_name: fire.sessionName,
  started_by: fire.startedBy,
  attempts: fire.attempts,
  replay_of: fire.replayOf,
  duplicate_of: fire.duplicateOf,
  verified_with: fire.verifiedWith,
});

export const queuedFireWire = (fire: QueuedFire) => ({
  fire_id: fire.fireId,
  project_id: fire.projectId,
  kind: fire.kind,
  trigger_slug: fire.triggerSlug,
  title: fire.title,
  files: fire.files,
  person: fire.person,
  position: fire.position,
  queued_at: instant(fire.queuedAt),
  expires_at: instant(fire.expiresAt),
});

/** A diff is for reading. A longer one is cut, with a line that says so. */
export const DIFF_LIMIT_BYTES = 1024 * 1024;

export const comparisonWire = (
  comparison: Pick<Comparison, "commits" | "commitsTotal" | "filesChanged" | "filesTotal">,
) => ({
  commits: comparison.commits.map(({ sha, subject, authorName, committedAt }) => ({
    sha,
    subject,
    author_name: authorName,
    committed_at: committedAt,
  })),
  commits_total: comparison.commitsTotal,
  files_changed: comparison.filesChanged.map(({ renamedFrom, ...file }) => ({
    ...file,
    ...(renamedFrom !== undefined && { renamed_from: renamedFrom }),
  })),
  files_changed_total: comparison.filesTotal,
});

/** The data of one server-sent event. */
export const eventWire = (event: StoredEvent) => ({
  type: event.type,
  at: instant(event.at),
  project_id: event.projectId,
  ...(event.sessionId === null ? {} : { session_id: event.sessionId }),
  data: event.data,
});
