/** The records the store returns: plain, camelCase, instants in ms since the epoch. HTTP encodes them for the wire. */
import type { Failure } from "../../domain/failure.ts";
import type { CronTemplate } from "../../domain/prompt.ts";
import type { MergeSides } from "../../domain/merge.ts";
import type { LastTurn } from "../../domain/last-turn.ts";
import type { Saved } from "../../domain/saved.ts";
import type { SandboxStatus, SessionStatus, StopReason } from "../../domain/session.ts";
import type { RepositorySource } from "../../domain/repository.ts";

/** What a token may do is inherited from how it came to be (api.md 1 "Origin"). */
export type Origin = "user" | "session" | "trigger";

export interface PageRequest {
  readonly limit: number;
  /** Opaque; as a former page gave it. `null`: from the newest. */
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

/** The caller of a request, as its token says. */
export interface Principal {
  readonly tokenId: string;
  /** `sandbox`: a PLATFORM_TOKEN, good for the clone credential alone. */
  readonly kind: "access" | "sandbox";
  readonly origin: Origin;
  readonly accountId: string;
  readonly user: { readonly id: string; readonly name: string };
  /** Bound to this project; null: account-wide. */
  readonly projectId: string | null;
  /** The session whose sandbox carries it. */
  readonly sessionId: string | null;
  readonly sandboxId: string | null;
  /** When the token ends by itself; null: never. */
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
  /** Who made the project: sessions that a cron or webhook fire spawns act for them. */
  readonly createdBy: string;
  readonly manifest: {
    readonly commit: string | null;
    readonly syncedAt: number | null;
    readonly error: string | null;
  };
  /** Rises with every change of what its triggers go by; an admission names the one it decided by. */
  readonly version: number;
  readonly createdAt: number;
  readonly updatedAt: number;
}
export type NewProject = Pick<
  Project,
  "id" | "accountId" | "name" | "repository" | "defaultBranch" | "createdBy"
> & {
  /** The node that has its repository (store/ports/nodes.ts); absent: no node in particular. */
  readonly nodeId?: string;
  /** What opens a repository that is kept elsewhere, sealed. */
  readonly credential?: Uint8Array;
  readonly now: number;
};
export type ProjectUpdate = Partial<Pick<Project, "name" | "status" | "triggersPaused" | "defaultBranch">>;

/** The last reading of a manifest that parsed, with those of its triggers' agents that have a file in its commit. */
export interface GoodManifest {
  /** Whether the repository configures a model provider in that commit; null: that was not looked up. */
  readonly bringsModel: boolean | null;
  readonly commit: string;
  readonly text: string;
  readonly agents: readonly string[];
}

/** Why the newest manifest as a whole could not be read, and where, as far as it is known. */
export interface ManifestFailure {
  readonly message: string;
  readonly path: string | null;
  readonly line: number | null;
}

/** Up to which instant every due instant of a cron trigger's schedule has its ledger row (api.md 4). */
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

/** Everything about a project that its triggers go by: what the receiver and the scheduler hold in memory. */
export interface ProjectState {
  readonly project: Project;
  /** Its account's. */
  readonly tier: string;
  readonly manifest: GoodManifest | null;
  readonly manifestFailure: ManifestFailure | null;
  readonly secrets: readonly VerifyingSecret[];
}

/** A sealed value as it lies in the table; see domain/secret.ts for the envelope. */
export interface SealedSecret {
  readonly projectId: string;
  readonly name: string;
  readonly version: number;
  readonly envelope: Uint8Array;
}
/** The value before the current one, which verifies webhooks until an instant; never injected. */
export interface PreviousSecret {
  readonly version: number;
  readonly envelope: Uint8Array;
  readonly until: number;
}
/** What webhooks are verified with. */
export interface VerifyingSecret extends SealedSecret {
  readonly previous: PreviousSecret | null;
}
export interface StoredSecret {
  readonly name: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly updatedBy: string | null;
  /** Until when the value before this one verifies webhooks; null: it does not. */
  readonly previousUntil: number | null;
}

/** How a turn ended, and which it was: the number is the sandbox's. */
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
  /** The user it acts for. */
  readonly createdBy: string;
  /** Origin of the token its sandbox will carry: `session` for people, `trigger` for cron and webhook fires. */
  readonly origin: Exclude<Origin, "user">;
  readonly failure: (Failure & { readonly at: number }) | null;
  readonly stopReason: StopReason | null;
  /** What its last teardown saved, also after a restart; null before the first one that had something to ask. */
  readonly saved: Saved | null;
  /** The last turn that ended, also after a restart; null before the first. */
  readonly lastTurn: NotedTurn | null;
  /** Id of its current sandbox (the machine's context). */
  readonly sandboxId: string | null;
  readonly bootDeadlineAt: number;
  readonly bootstrapAcceptedAt: number | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly runningAt: number | null;
  readonly stoppedAt: number | null;
  /** Deleted sessions are in no list and answer as unknown (api.md 3 DELETE); their branch stays. */
  readonly deletedAt: number | null;
}
/** What admission inserts; status, version and first command are the session machine's start. */
export type NewSession = Pick<
  Session,
  | "id"
  | "projectId"
  | "accountId"
  | "baseRef"
  /** Resolved with a person's request; null for a fire, whose branch is cut from what base_ref is by then. */
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
  /** When its newest boot began; null while it waits for a place (services/boot-places.ts). */
  readonly bootStartedAt: number | null;
  readonly activeAt: number | null;
  readonly endedAt: number | null;
}

/** The project's secrets as a sandbox was last given them: no value, the version of each by its name. */
export interface GivenSecrets {
  readonly revision: number;
  readonly versions: Readonly<Record<string, number>>;
}

/** An active sandbox whose project has other secrets by now. */
export interface OutdatedSandbox {
  readonly id: string;
  readonly sessionId: string;
  readonly projectId: string;
  readonly given: GivenSecrets;
}

/** A live session that nobody works for; `sandbox` is the state of its sandbox's record, null where there is none. */
export interface OwnerlessSession {
  readonly id: string;
  readonly sandboxId: string | null;
  readonly sandbox: SandboxStatus | null;
}

export type FireKind = "cron" | "webhook" | "manual";
export type FireStatus = "queued" | "fired" | "failed" | "skipped" | "expired" | "cancelled" | "duplicate";

/** Which value of its secret a webhook was verified with. */
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
  /** null: no signature was looked at. */
  readonly verifiedWith: VerifiedWith | null;
}

/** What a fire came with (api.md 4 "Ledger"): for looking at it, and for firing it again. */
export interface StoredRequest {
  readonly body: Uint8Array;
  /** How the body lies in the table: as it came, or deflated (RFC 1951). */
  readonly encoding: "identity" | "deflate";
  /** Of a webhook; null for a fire by hand. */
  readonly headers: {
    readonly contentType: string | null;
    readonly userAgent: string | null;
    readonly forwardedFor: string | null;
  } | null;
}

/** A fire's prompt as it comes to admission. */
export type FirePrompt =
  | { readonly is: "rendered"; readonly text: string }
  /** Rendered at the fire, now or when a slot is free: it names the fire before it. */
  | { readonly is: "cron"; readonly template: CronTemplate }
  /** Over the limit: the fire fails, visible and replayable. */
  | { readonly is: "too_large" }
  /** The trigger's filter does not match: the fire is skipped, visible and replayable. */
  | { readonly is: "filtered" }
  /** The session would have no model: the fire fails, too. */
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
  /** Of a webhook. */
  readonly verifiedWith?: VerifiedWith;
  /** null: not stored, or nothing came with it. */
  readonly request: StoredRequest | null;
  /** How long it may wait in the queue, ms (PLATFORM_QUEUE_TTL_MS), and how many may (PLATFORM_QUEUE_MAX). */
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
  /** The commits that a merge brought together; of a request that is not merged, those of a merge whose outcome is unknown. */
  readonly mergeSides: MergeSides | null;
  readonly merged: {
    /** The base's commit that has the work. */
    readonly commit: string;
    readonly at: number;
    /** Null where it was merged at the code host. */
    readonly by: string | null;
  } | null;
  /** Where its branches stood when readers were last told. */
  readonly tips: BranchTips;
  /** What stands beside it at a code host; null where nothing does. */
  readonly pull: PullBeside | null;
}
/** `wanted`: about to be opened, and perhaps open already; else as the host was last seen to say. */
export type PullBeside =
  | { readonly status: "wanted" }
  | { readonly status: "open" | "merged" | "closed"; readonly number: number; readonly url: string };
/** Tips of a change request's branches; null: there is no such branch, or it was not looked at yet. */
export interface BranchTips {
  readonly base: string | null;
  readonly head: string | null;
}

export interface CloneCredential {
  readonly hash: string;
  readonly projectId: string;
  readonly sessionId: string;
  readonly sandboxId: string;
  readonly expiresAt: number;
  readonly now: number;
}
