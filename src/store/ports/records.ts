/**
 * The records that the store returns: plain, camelCase, instants in ms since the epoch. HTTP encodes them for the wire.
 */
import type { Failure } from "../../domain/failure.ts";
import type { FireStatus } from "../../domain/fire.ts";
import type { CronTemplate } from "../../domain/prompt.ts";
import type { MergeSides } from "../../domain/merge.ts";
import type { LastTurn } from "../../domain/last-turn.ts";
import type { Saved } from "../../domain/saved.ts";
import type { SandboxStatus, SessionStatus, StopReason } from "../../domain/session.ts";
import type { RepositorySource } from "../../domain/repository.ts";

/** A token's permissions follow from its origin (api.md 1 "Origin"). */
export type Origin = "user" | "session" | "trigger";

export interface PageRequest {
  readonly limit: number;
  /** Opaque, from an earlier page. `null`: from the newest. */
  readonly cursor: string | null;
}
export interface Page<A> {
  readonly items: readonly A[];
  readonly nextCursor: string | null;
}

export interface Account {
  readonly id: string;
  readonly name: string;
  readonly tier: string;
  readonly sessionCap: number;
  readonly activeSessions: number;
  readonly queuedFires: number;
}

/** The caller of a request, according to its token. */
export interface Principal {
  readonly tokenId: string;
  /** `sandbox`: a PLATFORM_TOKEN, valid for the clone credential alone. */
  readonly kind: "access" | "sandbox";
  readonly origin: Origin;
  readonly accountId: string;
  readonly user: { readonly id: string; readonly name: string };
  /** Null: account-wide. Otherwise the token is bound to this project. */
  readonly projectId: string | null;
  /** The session whose sandbox carries the token. */
  readonly sessionId: string | null;
  readonly sandboxId: string | null;
  /** When the token expires. Null: never. */
  readonly expiresAt: number | null;
}

export interface Token {
  readonly id: string;
  readonly name: string;
  readonly origin: Origin;
  readonly projectId: string | null;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly lastUsedAt: number | null;
}
export interface NewToken {
  readonly id: string;
  readonly accountId: string;
  readonly userId: string;
  readonly projectId: string | null;
  readonly name: string;
  readonly hash: string;
  readonly origin: Origin;
  readonly expiresAt: number | null;
  readonly now: number;
}

export interface Project {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  readonly status: "active" | "archived";
  readonly repository: RepositorySource;
  readonly defaultBranch: string;
  readonly triggersPaused: boolean;
  /** The project's creator. Sessions that a cron or webhook fire starts act for this user. */
  readonly createdBy: string;
  readonly manifest: {
    readonly commit: string | null;
    readonly syncedAt: number | null;
    readonly error: string | null;
  };
  /** Rises with every change that its triggers depend on. An admission names the version on which it was decided. */
  readonly version: number;
  readonly createdAt: number;
  readonly updatedAt: number;
}
export type NewProject = Pick<
  Project,
  "id" | "accountId" | "name" | "repository" | "defaultBranch" | "createdBy"
> & {
  /** The node that has its repository (store/ports/nodes.ts). Absent: not recorded. */
  readonly nodeId?: string;
  /** The sealed credential of a repository that is kept elsewhere. */
  readonly credential?: Uint8Array;
  readonly now: number;
};
export type ProjectUpdate = Partial<Pick<Project, "name" | "status" | "triggersPaused" | "defaultBranch">>;

/** The last reading of a manifest that parsed. Lists those agents of its triggers that have a file in its commit. */
export interface GoodManifest {
  /** Whether the repository configures a model provider in that commit. Null: that was not looked up. */
  readonly bringsModel: boolean | null;
  readonly commit: string;
  readonly text: string;
  readonly agents: readonly string[];
}

/** Why the newest manifest could not be read, and where, as far as that is known. */
export interface ManifestFailure {
  readonly message: string;
  readonly path: string | null;
  readonly line: number | null;
}

/** The instant up to which every due instant of a cron trigger's schedule has its ledger row (api.md 4). */
export interface TriggerCursor {
  readonly slug: string;
  /** Expression and zone in one text. */
  readonly schedule: string;
  readonly accountedUntil: number;
}

/** Names a trigger. */
export interface TriggerKey {
  readonly projectId: string;
  readonly slug: string;
}

/** The state of a project that its triggers depend on. The receiver and the scheduler hold it in memory. */
export interface ProjectState {
  readonly project: Project;
  /** The tier of the project's account. */
  readonly tier: string;
  readonly manifest: GoodManifest | null;
  readonly manifestFailure: ManifestFailure | null;
  readonly secrets: readonly VerifyingSecret[];
}

/** A sealed value as stored; see domain/secret.ts for the envelope. */
export interface SealedSecret {
  readonly projectId: string;
  readonly name: string;
  readonly version: number;
  readonly envelope: Uint8Array;
}
/** The value before the current one. It verifies webhooks until an instant, and is never injected. */
export interface PreviousSecret {
  readonly version: number;
  readonly envelope: Uint8Array;
  readonly until: number;
}
/** A secret that verifies webhooks. */
export interface VerifyingSecret extends SealedSecret {
  readonly previous: PreviousSecret | null;
}
export interface StoredSecret {
  readonly name: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly updatedBy: string | null;
  /** Until when the previous value verifies webhooks. Null: it does not. */
  readonly previousUntil: number | null;
}

/** How a turn ended, with the sandbox's number of the turn. */
export interface NotedTurn extends LastTurn {
  readonly sandboxId: string;
  readonly number: number;
}

export interface Session {
  readonly id: string;
  readonly projectId: string;
  readonly accountId: string;
  readonly status: SessionStatus;
  readonly baseRef: string;
  readonly baseCommit: string | null;
  readonly name: string | null;
  readonly agentName: string;
  readonly agentModel: string | null;
  readonly initialPrompt: string | null;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly triggerSlug: string | null;
  readonly fireId: string | null;
  /** The session acts for this user. */
  readonly createdBy: string;
  /** The origin of its sandbox's token: `session` for people, `trigger` for cron and webhook fires. */
  readonly origin: Exclude<Origin, "user">;
  readonly failure: (Failure & { readonly at: number }) | null;
  readonly stopReason: StopReason | null;
  /**
   * The result of its last save at a teardown, also after a restart. Null before the first teardown with a daemon to
   * ask.
   */
  readonly saved: Saved | null;
  /** The last turn that ended, also after a restart. Null before the first. */
  readonly lastTurn: NotedTurn | null;
  /** The id of its current sandbox (the machine's context). */
  readonly sandboxId: string | null;
  readonly bootDeadlineAt: number;
  readonly bootstrapAcceptedAt: number | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly runningAt: number | null;
  readonly stoppedAt: number | null;
  /** Deleted sessions appear in no list and answer as unknown (api.md 3 DELETE). Their branch stays. */
  readonly deletedAt: number | null;
}
/** The fields that admission inserts. Status, version and first command come from the session machine's start. */
export type NewSession = Pick<
  Session,
  | "id"
  | "projectId"
  | "accountId"
  | "baseRef"
  /** Resolved with a person's request. Null for a fire: its base_ref is resolved when its branch is created. */
  | "baseCommit"
  | "name"
  | "agentName"
  | "agentModel"
  | "initialPrompt"
  | "metadata"
  | "triggerSlug"
  | "createdBy"
  | "origin"
  | "bootDeadlineAt"
>;

export interface Sandbox {
  readonly id: string;
  readonly sessionId: string;
  readonly provider: string;
  readonly nodeId: string;
  readonly status: SandboxStatus;
  readonly failure: Failure | null;
  readonly bootDeadlineAt: number;
  readonly createdAt: number;
  /** When its newest boot began. Null while it waits for a place (services/boot-places.ts). */
  readonly bootStartedAt: number | null;
  readonly activeAt: number | null;
  readonly endedAt: number | null;
}

/** The project's secrets that a sandbox last received: the version of each by its name, no values. */
export interface GivenSecrets {
  readonly revision: number;
  readonly versions: Readonly<Record<string, number>>;
}

/** An active sandbox whose project's secrets have changed since. */
export interface OutdatedSandbox {
  readonly id: string;
  readonly sessionId: string;
  readonly projectId: string;
  readonly given: GivenSecrets;
}

/** A live session that no actor will end. `sandbox` is the state of its sandbox's record, null if it has none. */
export interface OwnerlessSession {
  readonly id: string;
  readonly sandboxId: string | null;
  readonly sandbox: SandboxStatus | null;
}

export type FireKind = "cron" | "webhook" | "manual";

/** Which value of its secret verified a webhook. */
export type VerifiedWith = "current" | "previous";

export interface Fire {
  readonly id: string;
  readonly projectId: string;
  readonly triggerSlug: string;
  readonly kind: FireKind;
  readonly status: FireStatus;
  readonly reason: string | null;
  readonly scheduledFor: number | null;
  readonly receivedAt: number;
  readonly deliveryId: string | null;
  readonly sessionId: string | null;
  readonly attempts: number;
  readonly replayOf: string | null;
  /** Null: no signature was checked. */
  readonly verifiedWith: VerifiedWith | null;
}

/** The request of a fire (api.md 4 "Ledger"), kept for display and replay. */
export interface StoredRequest {
  readonly body: Uint8Array;
  /** How the body is stored: as it came, or deflated (RFC 1951). */
  readonly encoding: "identity" | "deflate";
  /** Null for a manual fire. */
  readonly headers: {
    readonly contentType: string | null;
    readonly userAgent: string | null;
    readonly forwardedFor: string | null;
  } | null;
}

/** A fire's prompt as admission gets it. */
export type FirePrompt =
  | { readonly is: "rendered"; readonly text: string }
  /** Rendered when it fires, now or when a slot is free: it contains the time of the fire before it. */
  | { readonly is: "cron"; readonly template: CronTemplate }
  /** Over the limit: the fire fails. It is visible and can be replayed. */
  | { readonly is: "too_large" }
  /** The trigger's filter does not match: the fire is skipped. It is visible and can be replayed. */
  | { readonly is: "filtered" }
  /** The session would have no model: the fire fails. */
  | { readonly is: "no_model" };

export interface NewFire {
  readonly id: string;
  readonly accountId: string;
  readonly projectId: string;
  readonly triggerSlug: string;
  readonly kind: FireKind;
  readonly scheduledFor: number | null;
  readonly receivedAt: number;
  readonly deliveryId: string | null;
  readonly replayOf: string | null;
  readonly prompt: FirePrompt;
  /** Set for a webhook. */
  readonly verifiedWith?: VerifiedWith;
  /** Null: not stored, or the fire came without one. */
  readonly request: StoredRequest | null;
  /** How long it may wait in the queue, ms (PLATFORM_QUEUE_TTL_MS), and how many may wait (PLATFORM_QUEUE_MAX). */
  readonly queueTtlMs: number;
  readonly queueMax: number;
}
export interface QueuedFire {
  readonly fireId: string;
  readonly projectId: string;
  readonly triggerSlug: string;
  readonly position: number;
  readonly queuedAt: number;
  readonly expiresAt: number;
}

/** An event row (api.md 3 "Events"); `type` e.g. `session.status`. */
export interface StoredEvent {
  readonly cursor: string;
  readonly type: string;
  readonly at: number;
  readonly projectId: string;
  readonly sessionId: string | null;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface ChangeRequest {
  readonly id: string;
  readonly projectId: string;
  readonly number: number;
  readonly sessionId: string | null;
  readonly headRef: string;
  readonly baseRef: string;
  readonly title: string;
  readonly description: string;
  readonly status: "open" | "merged" | "closed";
  readonly createdBy: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  /**
   * The two commits that a merge joined. Of a request that is not merged: those of a merge whose outcome is unknown. Null if
   * no merge was begun.
   */
  readonly mergeSides: MergeSides | null;
  readonly merged: {
    /** The base branch's commit that contains the work. */
    readonly commit: string;
    readonly at: number;
    /** Null if it was merged at the code host. */
    readonly by: string | null;
  } | null;
  /** Where its branches were when readers were last told. */
  readonly tips: BranchTips;
  /** Its pull request at a code host. Null if it has none. */
  readonly pull: PullBeside | null;
}
/** `wanted`: about to be opened, perhaps open already. Otherwise the status last seen at the host. */
export type PullBeside =
  | { readonly status: "wanted" }
  | { readonly status: "open" | "merged" | "closed"; readonly number: number; readonly url: string };
/** Tips of a change request's branches. Null: the branch does not exist, or was not checked yet. */
export interface BranchTips {
  readonly base: string | null;
  readonly head: string | null;
}
