/**
 * The in-memory twin's data: the tables of the Postgres adapter as maps. Every operation of a service is one
 * synchronous effect, so it is one transaction by construction. It has no clock and no randomness.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type { Usage } from "../../../src/domain/conversation/conversation.ts";
import type { CronTemplate } from "../../../src/domain/trigger/prompt.ts";
import type { SetProjectStatus } from "../../../src/domain/project/deletion.ts";
import { roleIn, type PersonNow, type ProjectRole } from "../../../src/domain/person/role.ts";
import { isLive } from "../../../src/domain/session/session.ts";
import type { ChangeRequestCommand, ChangeRequestSnapshot } from "../../../src/machines/change-request.ts";
import type { ConversationCommand, ConversationSnapshot } from "../../../src/machines/conversation.ts";
import type { EnvironmentBase } from "../../../src/store/ports/projects/environment-bases.ts";
import type {
  EnvironmentBuildCommand,
  EnvironmentBuildSnapshot,
} from "../../../src/machines/environment-build.ts";
import type { SandboxCommand, SandboxSnapshot } from "../../../src/machines/sandbox.ts";
import type { SessionCommand, SessionSnapshot } from "../../../src/machines/session.ts";
import type { Named } from "../../../src/machines/step.ts";
import type { PlannedFire } from "../../../src/store/admission/plan.ts";
import type { HearEnding } from "../../../src/store/ports/people/grants.ts";
import type { Attachment, Conversation, Item } from "../../../src/store/ports/sessions/conversations.ts";
import type { PendingCommand, UnsettledActor } from "../../../src/store/ports/journal.ts";
import type { Suspension } from "../../../src/domain/connector/own-credential.ts";
import type { NewPreview } from "../../../src/store/ports/sessions/previews.ts";
import type { ChangeRequest } from "../../../src/features/change-requests/ports/change-requests.ts";
import type { Subscription } from "../../../src/features/subscriptions/ports/subscriptions.ts";
import type { ModelProvider } from "../../../src/features/model-providers/ports/model-providers.ts";
import type { Remark } from "../../../src/features/change-requests/ports/remarks.ts";
import type { Reviewer } from "../../../src/features/change-requests/ports/reviewers.ts";
import type { EnvironmentBuild, LogPiece } from "../../../src/store/ports/projects/environment-builds.ts";
import type { Fire, StoredRequest } from "../../../src/store/ports/triggers/fires.ts";
import { TokenSignIn, type NewToken, type Principal } from "../../../src/store/ports/people/identity.ts";
import type { NewInvitation, Person } from "../../../src/store/ports/people/people.ts";
import type {
  GoodManifest,
  ManifestFailure,
  Project,
  TriggerCursor,
} from "../../../src/store/ports/projects/projects.ts";
import type { DeviceLoginRow, IdentityRow, SignInLinkRow } from "./people/sign-in-rows.ts";
import type { ModelUsageRow } from "./projects/model-providers.ts";
import type { ReservationRow, SpendLimitRow, SpendRow } from "./projects/spend.ts";
import type { OutboundDeliveryRow, OutboundWebhookRow, OwnReceiverRow } from "./triggers/outbound-rows.ts";
import type { GivenSecrets, Sandbox } from "../../../src/store/ports/sessions/sandboxes.ts";
import type { PreviousSecret, StoredSecret } from "../../../src/store/ports/projects/secrets.ts";
import type { NewSession, EndedTurn, Session } from "../../../src/store/ports/sessions/sessions.ts";
import type { StoredCatalogue } from "../../../src/store/ports/connectors/connectors.ts";
import type {
  ConnectorCredentialRow,
  ConnectorFlowRow,
  ConnectorGrantRow,
} from "./projects/connector-rows.ts";
import type { ApprovalRow } from "../../../src/features/approvals/ports/approvals.ts";
import type { ExecutorCall } from "../../../src/store/ports/connectors/executor-calls.ts";
import type { CloneCredential } from "../../../src/store/ports/sessions/clone-credentials.ts";
import type { ActorKey, WaitingCommand } from "../../../src/store/ports/transitions.ts";
import type { NewTransition } from "../../../src/machines/transition.ts";
import { boundDetail } from "../../../src/machines/transition.ts";
import { Waiting } from "../../../src/store/waiting.ts";
import { EventTable } from "./event-table.ts";
import type { AuditEvent } from "../../../src/store/ports/audit.ts";
import type { WarmSandboxRow } from "./sessions/warm-sandboxes.ts";
import type { WebhookRefusal } from "../../../src/store/ports/triggers/webhook-refusals.ts";

export interface AccountRow {
  readonly name: string;
  readonly tier: string;
  readonly cap: number;
  readonly activeSessions: number;
  readonly queuedFires: number;
  readonly storedRequestBytes: number;
  readonly drainedTurns: number;
}
export interface UserRow extends Omit<Person, "id"> {
  readonly accountId: string;
}
export interface InvitationRow extends Omit<NewInvitation, "now"> {
  readonly createdAt: number;
  readonly isOver: boolean;
}
export interface TokenRow extends Omit<NewToken, "now"> {
  readonly kind: Principal["kind"];
  /** Of a browser's session: the token that opened it. */
  readonly openedBy: string | null;
  /** Of a browser's session: the identity that began it. */
  readonly identityId: string | null;
  readonly address: string | null;
  readonly userAgent: string | null;
  readonly sessionId: string | null;
  readonly sandboxId: string | null;
  readonly createdAt: number;
  readonly lastUsedAt: number | null;
  readonly revokedAt: number | null;
}
export interface UploadRow {
  readonly projectId: string;
  readonly createdBy: string;
  readonly attachment: Attachment;
  readonly fireId: string | null;
  readonly expiresAt: number;
}

export interface ProjectRow {
  readonly record: Project;
  readonly nodeId: string | null;
  readonly secretsRevision: number;
  readonly changeRequests: number;
  readonly drainedTurn: number;
  /** Its status after a restoration. Null: it is not deleted. */
  readonly formerStatus: SetProjectStatus | null;
  /** The last reading that parsed. */
  readonly manifest: GoodManifest | null;
  readonly manifestFailure: ManifestFailure | null;
  /** The number of its last change, in the count of all changes. */
  readonly changedAt: number;
}
export interface SessionRow {
  readonly record: Session;
  readonly snapshot: SessionSnapshot;
  readonly version: number;
  readonly provisionedAt: number;
}
export interface SandboxRow {
  readonly record: Sandbox;
  readonly snapshot: SandboxSnapshot;
  readonly version: number;
  /** Null: nothing was recorded. */
  readonly secrets: GivenSecrets | null;
}
export interface ChangeRequestRow {
  readonly record: ChangeRequest;
  readonly snapshot: ChangeRequestSnapshot;
  readonly version: number;
}
export interface ConversationRow {
  readonly conversation: Conversation;
  readonly snapshot: ConversationSnapshot;
  readonly version: number;
  /** A turn that ended, until the conversation rests (../turn-endings.ts). */
  readonly turnToTell: EndedTurn | null;
  readonly items: Map<string, Item>;
  /** By item. */
  readonly outputs: Map<string, string>;
  readonly attachments: Map<string, { readonly attachment: Attachment; readonly expiresAt: number | null }>;
}
export interface EnvironmentBuildRow {
  readonly record: Omit<EnvironmentBuild, "status" | "tries" | "image" | "failure">;
  readonly snapshot: EnvironmentBuildSnapshot;
  readonly version: number;
  readonly log: readonly LogPiece[];
  readonly logBytes: number;
  readonly isForgotten: boolean;
}
export type FireRow = PlannedFire;
/** A row as readers see it. */
export const fireOf = (row: FireRow): Fire => {
  const {
    accountId: _account,
    firedAt: _firedAt,
    decidedAt: _decidedAt,
    answersDelivery: _answers,
    ...fire
  } = row;
  return fire;
};
export interface QueueRow {
  readonly fireId: string;
  readonly accountId: string;
  readonly projectId: string;
  readonly triggerSlug: string | null;
  readonly kind: PlannedFire["kind"];
  readonly session: NewSession;
  readonly template: CronTemplate | null;
  readonly queuedAt: number;
  readonly expiresAt: number;
}
export interface PreviewRow extends Omit<NewPreview, "hash" | "now"> {
  readonly createdAt: number;
  /** False once a cookie has replaced the link. */
  readonly isOpen: boolean;
}
export interface SuspensionRow extends Pick<Suspension, "act" | "at"> {
  readonly userId: string;
}

export interface SecretRow extends Omit<StoredSecret, "previousUntil"> {
  readonly version: number;
  /** Null: removed; the row keeps the version. */
  readonly envelope: Uint8Array | null;
  readonly previous: PreviousSecret | null;
}
/** The pending commands of one kind of actor, by actor. */
export class Outbox<Command extends Named> {
  readonly #byActor = new Map<string, readonly PendingCommand<Command>[]>();
  /** Since when each command waits, and its crashes, by its id. */
  readonly #notes = new Map<string, Omit<WaitingCommand, "command">>();
  #last = 0;

  append(actorId: string, commands: readonly Command[], now: number): readonly PendingCommand<Command>[] {
    const added = commands.map((command) => {
      this.#last += 1;
      const id = String(this.#last);
      this.#notes.set(id, { since: now, attempts: 0, lastError: null });
      return { id, command };
    });
    // After a step without commands the actor stays settled.
    if (added.length > 0) this.#byActor.set(actorId, [...this.of(actorId), ...added]);
    return added;
  }

  of(actorId: string): readonly PendingCommand<Command>[] {
    return this.#byActor.get(actorId) ?? [];
  }

  waiting(actorId: string): readonly WaitingCommand[] {
    return this.of(actorId).flatMap(({ id, command }) => {
      const note = this.#notes.get(id);
      return note === undefined ? [] : [{ command: command.type, ...note }];
    });
  }

  noteCrash(id: string, reason: string): void {
    const note = this.#notes.get(id);
    if (note !== undefined)
      this.#notes.set(id, { ...note, attempts: note.attempts + 1, lastError: boundDetail(reason) });
  }

  remove(actorId: string, ids: readonly string[]): void {
    for (const { id } of this.of(actorId)) if (ids.includes(id)) this.#notes.delete(id);
    const left = this.of(actorId).filter(({ id }) => !ids.includes(id));
    if (left.length > 0) this.#byActor.set(actorId, left);
    else this.#byActor.delete(actorId);
  }

  /** Removes all commands of an actor. */
  forget(actorId: string): void {
    for (const { id } of this.of(actorId)) this.#notes.delete(id);
    this.#byActor.delete(actorId);
  }

  unsettled(): readonly UnsettledActor[] {
    return [...this.#byActor].flatMap(([id, commands]) => {
      const newest = commands.at(-1)?.id;
      return newest === undefined ? [] : [{ id, newest }];
    });
  }

  actors(): Iterable<string> {
    return this.#byActor.keys();
  }
}

export class TableSet {
  readonly tokenSignInMs: number | null;
  readonly accounts = new Map<string, AccountRow>();
  readonly users = new Map<string, UserRow>();
  /** Own grants, by project, then by person. */
  readonly members = new Map<string, Map<string, ProjectRole>>();
  readonly invitations = new Map<string, InvitationRow>();
  readonly tokens = new Map<string, TokenRow>();
  /** By hash. */
  readonly signInLinks = new Map<string, SignInLinkRow>();
  readonly deviceLogins = new Map<string, DeviceLoginRow>();
  /** Wrong codes that a person typed. */
  readonly codeMisses = new Map<string, { readonly count: number; readonly since: number }>();
  /** By issuer and subject, as JSON. */
  readonly identities = new Map<string, IdentityRow>();
  /** From when people's sign-ins count (ports/people/identity.ts, TokenSignIn). */
  readonly signedInAt = new Map<string, number>();
  readonly projects = new Map<string, ProjectRow>();
  /** Those that are gone. */
  readonly deletedProjects = new Set<string>();
  /** By project, sealed. */
  readonly credentials = new Map<string, Uint8Array>();
  /** By project, then by slug. */
  readonly lastFired = new Map<string, Map<string, number>>();
  /** By project, then by slug. */
  readonly cursors = new Map<string, Map<string, TriggerCursor>>();
  /** By the fire's id, in order of insertion. */
  readonly requests = new Map<string, StoredRequest & { readonly accountId: string }>();
  readonly projectsWaiting = new Waiting();
  changes = 0;
  readonly sessions = new Map<string, SessionRow>();
  readonly sandboxes = new Map<string, SandboxRow>();
  readonly warmSandboxes = new Map<string, WarmSandboxRow>();
  readonly sessionOutbox = new Outbox<SessionCommand>();
  readonly sandboxOutbox = new Outbox<SandboxCommand>();
  readonly fires = new Map<string, FireRow>();
  /** In the order of arrival. */
  queue: readonly QueueRow[] = [];
  refusals: readonly WebhookRefusal[] = [];
  readonly events = new EventTable();
  readonly changeRequests = new Map<string, ChangeRequestRow>();
  /** Until when a person has seen a session, by `<session> <person>`. */
  readonly reads = new Map<string, number>();
  /** Until when a person has seen the list of what happened. */
  readonly activitySeen = new Map<string, number>();
  readonly uploads = new Map<string, UploadRow>();
  readonly remarks = new Map<string, Remark>();
  /** By change request. */
  readonly reviewers = new Map<string, readonly Reviewer[]>();
  readonly changeRequestOutbox = new Outbox<ChangeRequestCommand>();
  readonly environmentBases = new Map<string, EnvironmentBase>();
  readonly environmentBuilds = new Map<string, EnvironmentBuildRow>();
  readonly environmentBuildOutbox = new Outbox<EnvironmentBuildCommand>();
  /** By project, then by name. */
  readonly secrets = new Map<string, Map<string, SecretRow>>();
  readonly outboundWebhooks = new Map<string, OutboundWebhookRow>();
  readonly outboundDeliveries = new Map<string, OutboundDeliveryRow>();
  readonly ownReceivers = new Map<string, OwnReceiverRow>();
  /** Of all people's receivers, in the events. */
  ownNoticesPlace = 0;
  readonly modelProviders = new Map<string, ModelProvider>();
  readonly subscriptions = new Map<string, Subscription>();
  /** By sandbox. */
  readonly deliveredSubscriptions = new Map<string, Pick<Subscription, "id" | "userId" | "runtime">>();
  /** By session, day and model. */
  readonly modelUsage = new Map<string, ModelUsageRow>();
  readonly spendLimits = new Map<string, SpendLimitRow>();
  /** By account, scope, subject and period. */
  readonly spend = new Map<string, SpendRow>();
  readonly spendReservations = new Map<string, ReservationRow>();
  readonly settings = new Map<string, string>();
  /** By project and slug. */
  readonly connectorCredentials = new Map<string, ConnectorCredentialRow>();
  readonly toolsWaiting = new Waiting();
  readonly connectorGrants = new Map<string, ConnectorGrantRow>();
  /** By project, slug and person. */
  readonly connectorFlows = new Map<string, ConnectorFlowRow>();
  readonly connectorCatalogues = new Map<string, StoredCatalogue & { readonly projectId: string }>();
  readonly auditEvents = new Map<string, AuditEvent>();
  readonly executorCalls = new Map<string, ExecutorCall>();
  readonly approvals = new Map<string, ApprovalRow>();
  /** By session, then by sandbox. */
  readonly logs = new Map<string, Map<string, Buffer>>();
  /** By session. */
  readonly conversations = new Map<string, ConversationRow>();
  readonly conversationOutbox = new Outbox<ConversationCommand>();
  readonly conversationsWaiting = new Waiting();
  /** By project, day and model. */
  readonly usage = new Map<string, Map<string, Map<string, Usage>>>();
  readonly cloneCredentials = new Map<string, CloneCredential>();
  /** By the hash of the present secret: the link's, then the cookie's. */
  readonly previews = new Map<string, PreviewRow>();
  /** By session. */
  readonly suspensions = new Map<string, SuspensionRow>();
  readonly endings = new Set<HearEnding>();
  /** By kind and id, the oldest first. */
  readonly transitions = new Map<string, readonly (NewTransition & { readonly number: number })[]>();
  #transitionNumber = 0;

  /** @param tokenSignInMs see TokenSignIn of ports/people/identity.ts */
  constructor(tokenSignInMs: number | null = null) {
    this.tokenSignInMs = tokenSignInMs;
  }

  /** Keeps the row of a step. A stored actor's number is the version that the step made. */
  keep({ kind, id }: ActorKey, row: NewTransition | null, version: number | null): void {
    if (row === null) return;
    this.#transitionNumber += 1;
    const key = `${kind}/${id}`;
    const rows = this.transitions.get(key) ?? [];
    this.transitions.set(key, [...rows, { ...row, number: version ?? this.#transitionNumber }]);
  }

  /** A person's role in a project. Null: the project does not exist for her. */
  roleOf(userId: string, projectId: string): ProjectRole | null {
    const [user, project] = [this.users.get(userId), this.projects.get(projectId)?.record];
    if (user === undefined || user.accountId !== project?.accountId) return null;
    const own = this.members.get(projectId)?.get(userId) ?? null;
    return roleIn({ account: user.role, own, projectDefault: project.defaultRole });
  }

  personNow(userId: string, projectId: string): PersonNow {
    return {
      isActive: this.users.get(userId)?.deactivatedAt === null,
      role: this.roleOf(userId, projectId),
    };
  }

  grant(projectId: string, userId: string, role: ProjectRole): void {
    const members = this.members.get(projectId) ?? new Map<string, ProjectRole>();
    this.members.set(projectId, members.set(userId, role));
  }

  /** Tells listeners that a token or session has ended, or that a person's roles changed. */
  sayEnded(id: string): void {
    for (const hear of this.endings) hear(id);
  }

  isSandboxLive(id: string): boolean {
    const status = this.sandboxes.get(id)?.record.status;
    return status === "provisioning" || status === "active";
  }

  isSessionLive(id: string): boolean {
    const status = this.sessions.get(id)?.record.status;
    return status !== undefined && isLive(status);
  }

  moveSlots(accountId: string, by: number): void {
    this.moveCounters(accountId, { sessions: by });
  }

  moveCounters(
    accountId: string,
    {
      sessions = 0,
      queued = 0,
      requestBytes = 0,
    }: Partial<Record<"sessions" | "queued" | "requestBytes", number>>,
  ): void {
    const account = this.accounts.get(accountId);
    if (account === undefined) return;
    this.accounts.set(accountId, {
      ...account,
      activeSessions: account.activeSessions + sessions,
      queuedFires: account.queuedFires + queued,
      storedRequestBytes: account.storedRequestBytes + requestBytes,
    });
  }

  /** Raises the project's version. */
  markChanged(projectId: string): void {
    const row = this.projects.get(projectId);
    if (row === undefined) return;
    this.changes += 1;
    const record = { ...row.record, version: row.record.version + 1 };
    this.projects.set(projectId, { ...row, record, changedAt: this.changes });
    this.projectsWaiting.wake(null);
  }
}

export class Tables extends Context.Service<Tables, TableSet>()("platform/test/twins/store/Tables") {
  static readonly layer = Layer.effect(
    Tables,
    Effect.map(TokenSignIn, (ms) => new TableSet(ms)),
  );
}
