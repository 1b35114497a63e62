/**
 * What the service remembers. Every operation is one transaction; instants are parameters (`now`, ms since the
 * epoch), never the database's clock. Two adapters keep it: Postgres (`store/postgres/`) and the in-memory twin
 * (`store/memory/`), held to one conformance suite (test/conformance/store.ts).
 *
 * Invariants of every adapter:
 *  D1 A save is fenced: it changes a row only at the version the writer read, else `Fenced` and nothing is written.
 *  D2 Snapshot, commands (outbox rows), the completed command and event rows are written together or not at all.
 *  D3 An account's slot counter moves in the same transaction as the session's status, and never passes its cap (I1, I12).
 *  D4 A fire leaves exactly one ledger row of another status than `duplicate` (api.md 4 "Ledger").
 */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import type * as Scope from "effect/Scope";
import type { SessionCommand, SessionEvent, SessionSnapshot } from "../machines/session.ts";
import type { SandboxCommand, SandboxEvent, SandboxSnapshot } from "../machines/sandbox.ts";
import type { Grant, HearEnding } from "./grants.ts";
import type { Memory, Stored } from "./journal.ts";
import type {
  Account,
  CloneCredential,
  Fire,
  GivenSecrets,
  GoodManifest,
  ManifestFailure,
  NewFire,
  NewProject,
  NewSession,
  NewToken,
  NotedTurn,
  OutdatedSandbox,
  OwnerlessSession,
  Page,
  PageRequest,
  Principal,
  Project,
  ProjectState,
  ProjectUpdate,
  QueuedFire,
  Sandbox,
  Session,
  StoredEvent,
  StoredRequest,
  Token,
  TriggerCursor,
  TriggerKey,
} from "./records.ts";

/** A unique name is taken. */
export class Taken extends Schema.TaggedError<Taken>()("Taken", { what: Schema.String }) {}

/** A page cursor that no list gave (threats.md T07: 400). */
export class BadCursor extends Schema.TaggedError<BadCursor>()("BadCursor", { cursor: Schema.String }) {}

// ---------------------------------------------------------------------------------------------- admission

/**
 * A wish for a session: by a person (`fire: null`) or by a fire, whose prompt takes the place of the session's. `atCap`
 * says what becomes of it without a slot.
 */
export interface AdmissionRequest {
  readonly session: NewSession;
  readonly fire: NewFire | null;
  /** The version of the project that the wish was decided by; null: it went by nothing of it. */
  readonly projectVersion: number | null;
  readonly atCap: "refuse" | "queue";
  readonly now: number;
}

export type Admission =
  | { readonly outcome: "admitted"; readonly sessionId: string; readonly fireId: string | null }
  /** `slotIsFree`: others wait before it, and could start. */
  | { readonly outcome: "queued"; readonly fireId: string; readonly slotIsFree: boolean }
  | { readonly outcome: "refused"; readonly limit: number; readonly activeSessions: number }
  | { readonly outcome: "queue_full"; readonly limit: number }
  /** The delivery id was seen within 24 h on a fired or queued row: that row as it is now. */
  | { readonly outcome: "duplicate"; readonly fire: Fire }
  /** The trigger's filter does not match; it has its row. */
  | { readonly outcome: "filtered"; readonly fireId: string }
  /** It has its row, which says why (api.md 4 "Ledger"). */
  | { readonly outcome: "failed"; readonly fireId: string; readonly reason: FireFailure }
  /** The project is of another version by now: nothing was written, whoever asks looks at it again. */
  | { readonly outcome: "stale" }
  /** The project was archived or deleted meanwhile. */
  | { readonly outcome: "inactive" };

/**
 * Why a fire failed: its prompt is over the limit, it could not wait (a cron instant: nobody can be told to return), or its
 * project has no model for the agent.
 */
export type FireFailure = "prompt_too_large" | "queue_full" | "no_model";

/** Due instants that are accounted for without a fire, oldest first. */
export interface Skip {
  readonly accountId: string;
  readonly projectId: string;
  readonly projectVersion: number;
  readonly triggerSlug: string;
  readonly reason: "missed" | "paused";
  readonly instants: readonly { readonly id: string; readonly dueAt: number }[];
  readonly now: number;
}

/** For this long after it was seen a delivery id is answered with the row it has (api.md 4 "Webhook"), ms. */
export const DELIVERY_WINDOW_MS = 24 * 60 * 60 * 1000;

export class Admissions extends Context.Service<
  Admissions,
  {
    /**
     * Decides a batch of one account's wishes in one transaction, in their order: slot counter, ledger row, session
     * or queue row, last_fired_at, the session's first command in the outbox, event rows (api.md 4 "Admission").
     * @returns one answer a wish, in the same order.
     */
    readonly admit: (
      accountId: string,
      requests: readonly AdmissionRequest[],
    ) => Stored<readonly Admission[]>;
    /**
     * Gives free slots to waiting fires: round robin between projects, first come first served within one, one fire
     * a slot. Expired fires are marked on the way. `sessionIds` are fresh ids for at most that many sessions.
     */
    readonly drain: (
      accountId: string,
      request: {
        readonly sessionIds: readonly string[];
        readonly now: number;
        readonly bootTimeoutMs: number;
      },
    ) => Stored<{
      readonly admitted: readonly { fireId: string; sessionId: string }[];
      readonly more: boolean;
    }>;
    /**
     * Writes `skipped` rows for instants that have no row yet and moves the trigger's cursor to the last of them.
     * @returns false where the project is of another version by now: nothing was written.
     */
    readonly skip: (skip: Skip) => Stored<boolean>;
    /** Takes a waiting fire out of the queue for good; false where it does not wait (any more). */
    readonly cancel: (fireId: string, now: number) => Stored<boolean>;
    /** Accounts with waiting fires, for start-up and the timer. */
    readonly waitingAccounts: Stored<readonly string[]>;
  }
>()("platform/store/Admissions") {}

// ---------------------------------------------------------------------------------------------- records by noun

export class Sessions extends Context.Service<
  Sessions,
  {
    readonly memory: Memory<SessionSnapshot, SessionEvent, SessionCommand>;
    readonly get: (id: string) => Stored<Session | null>;
    /** Newest first, without deleted ones; `get` still gives those, with `deletedAt`. */
    readonly list: (
      projectId: string,
      request: PageRequest & { readonly status: string | null },
    ) => Stored<Page<Session>, BadCursor>;
    /** Whether the project ever had a session, deleted ones included. */
    readonly anyIn: (projectId: string) => Stored<boolean>;
    readonly rename: (
      id: string,
      change: {
        readonly name?: string;
        readonly metadata?: Readonly<Record<string, unknown>>;
        readonly now: number;
      },
    ) => Stored<Session | null>;
    /** The agent runtime took the initial prompt (api.md 7: exactly once per session). Idempotent. */
    readonly acceptBootstrap: (id: string, now: number) => Stored<void>;
    /**
     * Writes how a turn ended, with the event `session.turn`. Null, and nothing is written, where the sandbox is not the
     * session's (any more), or where this turn or a later one of that sandbox was written before.
     */
    readonly noteTurn: (
      id: string,
      turn: NotedTurn & { readonly now: number },
    ) => Stored<{ readonly projectId: string } | null>;
    /** The running sessions whose sandboxes this node has. */
    readonly runningOn: (
      nodeId: string,
    ) => Stored<readonly { readonly id: string; readonly sandboxId: string; readonly runningAt: number }[]>;
    /** Ids of sessions with commands not done: what is woken at start. One at rest waits for its next message. */
    readonly unsettled: Stored<readonly string[]>;
    /** Live sessions for which nobody has anything left to do, neither they nor their sandbox: they would stay so. */
    readonly ownerless: Stored<readonly OwnerlessSession[]>;
  }
>()("platform/store/Sessions") {}

export class Sandboxes extends Context.Service<
  Sandboxes,
  {
    readonly memory: Memory<SandboxSnapshot, SandboxEvent, SandboxCommand>;
    /**
     * Opens the record with its first commands, and the two tokens of this boot (by hash). Idempotent by id. Fenced by the
     * session (I18): nothing is written where it is not provisioning with just this sandbox (any more), so that an owner
     * that comes late leaves no sandbox that nobody ends. At most one of a session is provisioning or active (api.md 3).
     */
    readonly open: (request: {
      readonly id: string;
      readonly sessionId: string;
      readonly provider: string;
      readonly nodeId: string;
      readonly bootDeadlineAt: number;
      readonly snapshot: SandboxSnapshot;
      readonly commands: readonly SandboxCommand[];
      readonly serviceKeyHash: string;
      readonly cliToken: { readonly id: string; readonly hash: string };
      readonly now: number;
    }) => Stored<void>;
    readonly get: (id: string) => Stored<Sandbox | null>;
    readonly newestOf: (sessionId: string) => Stored<Sandbox | null>;
    /** Notes that a provisioning one boots from now on, until its deadline. Again for each try. False: it boots no more. */
    readonly beginBoot: (
      id: string,
      boot: { readonly now: number; readonly deadlineAt: number },
    ) => Stored<boolean>;
    readonly unsettled: Stored<readonly string[]>;
    /** Those of these ids that no record holds: there is none, or it has ended and has no command left to do. */
    readonly unheld: (ids: readonly string[]) => Stored<readonly string[]>;
    /** Notes what it is given, where `former` is the revision noted before (null: none). False: it is not. */
    readonly noteSecrets: (id: string, former: number | null, given: GivenSecrets) => Stored<boolean>;
    /** Active ones of this node that were given another revision of the secrets than their project has now. */
    readonly outdated: (nodeId: string) => Stored<readonly OutdatedSandbox[]>;
  }
>()("platform/store/Sandboxes") {}

export class Identity extends Context.Service<
  Identity,
  {
    /** First start of an empty database: one account, one user, one account-wide token. False when there was one. */
    readonly bootstrap: (request: {
      readonly accountId: string;
      readonly userId: string;
      readonly tokenId: string;
      readonly tokenHash: string;
      readonly tier: string;
      readonly cap: number;
      readonly now: number;
    }) => Stored<boolean>;
    /** Who presents the token with this hash; null for unknown, expired or revoked, or of an ended session (T03). */
    readonly authenticate: (tokenHash: string, now: number) => Stored<Principal | null>;
    /** Of these grants, the ones that no longer hold. One statement checks all of them and writes nothing. */
    readonly ended: (grants: readonly Grant[], now: number) => Stored<readonly Grant[]>;
    /** Hears, for as long as the scope is open, of tokens and sessions that end on any node. */
    readonly endings: (hear: HearEnding) => Effect.Effect<void, never, Scope.Scope>;
    readonly account: (id: string) => Stored<Account | null>;
    readonly setTier: (accountId: string, tier: string, cap: number) => Stored<void>;
    /** Caps of every tier as configured now, applied to all accounts; a lower cap ends nothing (R07). */
    readonly applyCaps: (caps: Readonly<Record<string, number>>) => Stored<void>;
    readonly createToken: (token: NewToken) => Stored<Token>;
    /** Tokens a user made, newest first; never those of sandboxes. */
    readonly listTokens: (accountId: string, request: PageRequest) => Stored<Page<Token>, BadCursor>;
    readonly deleteToken: (accountId: string, id: string, now: number) => Stored<boolean>;
  }
>()("platform/store/Identity") {}

export class Projects extends Context.Service<
  Projects,
  {
    readonly create: (project: NewProject) => Stored<Project>;
    readonly get: (id: string) => Stored<Project | null>;
    /** The project's sealed credential; null where it has none. */
    readonly credential: (id: string) => Stored<Uint8Array | null>;
    /** Puts another sealed credential, or none, in its place; null where there is no such project. */
    readonly replaceCredential: (
      id: string,
      credential: Uint8Array | null,
      now: number,
    ) => Stored<Project | null>;
    readonly list: (
      accountId: string,
      request: PageRequest & { readonly onlyId: string | null },
    ) => Stored<Page<Project>, BadCursor>;
    readonly update: (id: string, change: ProjectUpdate, now: number) => Stored<Project | null>;
    /** Those of these ids that no project has. */
    readonly unheld: (ids: readonly string[]) => Stored<readonly string[]>;
    /** What the last reading of the manifest gave; `good` only of a reading that parsed (the last good one stays). */
    readonly recordManifest: (
      id: string,
      reading: {
        readonly commit: string | null;
        readonly good: GoodManifest | null;
        readonly failure: ManifestFailure | null;
        readonly now: number;
      },
    ) => Stored<void>;
    /** What the triggers of these projects go by; of archived ones too. */
    readonly states: (ids: readonly string[]) => Stored<readonly ProjectState[]>;
    /**
     * Ids and versions of the projects that changed since an earlier look, all of them for `since: null`. Some may come
     * again that were seen before; none is missed, whenever its change is committed.
     */
    readonly changedSince: (since: string | null) => Stored<{
      readonly changed: readonly { readonly id: string; readonly version: number }[];
      /** For the next look. */
      readonly since: string;
    }>;
    /** Completes when a project may have changed (a commit's signal; lost ones are covered by the reader's poll). */
    readonly changed: Effect.Effect<void>;
    /**
     * Sees to it that exactly these cron triggers of the project have a cursor: one that is new, or of another schedule,
     * starts at `now`. Fenced by the project's version: null where it is another by now, and nothing is written.
     */
    readonly keepCursors: (request: {
      readonly projectId: string;
      readonly projectVersion: number;
      readonly schedules: ReadonlyMap<string, string>;
      readonly now: number;
    }) => Stored<readonly TriggerCursor[] | null>;
    /** The cursors of these cron triggers, as far as they have one, in any order. */
    readonly cursors: (of: readonly TriggerKey[]) => Stored<readonly (TriggerCursor & TriggerKey)[]>;
    /** last_fired_at by slug (spec 2.3). */
    readonly lastFired: (id: string) => Stored<ReadonlyMap<string, number>>;
  }
>()("platform/store/Projects") {}

export class Fires extends Context.Service<
  Fires,
  {
    readonly get: (id: string) => Stored<Fire | null>;
    /** What it came with, where that is stored. */
    readonly request: (id: string) => Stored<StoredRequest | null>;
    /** The prompt of a fire that fired or waits with a finished one; null for any other. */
    readonly prompt: (id: string) => Stored<string | null>;
    readonly list: (
      projectId: string,
      request: PageRequest & { readonly slug: string | null; readonly status: string | null },
    ) => Stored<Page<Fire>, BadCursor>;
    /** The newest row of each of these triggers that has one; a repeated delivery is none. */
    readonly lastBySlug: (projectId: string, slugs: readonly string[]) => Stored<ReadonlyMap<string, Fire>>;
    /** The account's waiting fires in the order in which they will start. */
    readonly queue: (accountId: string) => Stored<readonly QueuedFire[]>;
    /**
     * One small step of pruning: rows received before `before`, but those that wait, and stored requests over
     * `requestBytes` an account, oldest first. @returns how many rows went; none: there is nothing left to prune.
     */
    readonly prune: (limits: { readonly before: number; readonly requestBytes: number }) => Stored<number>;
  }
>()("platform/store/Fires") {}

/** Event rows are kept this long, ms, and this many a project (api.md 1 "Live data"). */
export const EVENTS_KEPT_MS = 24 * 60 * 60 * 1000;
export const EVENTS_KEPT_PER_PROJECT = 10_000;

export class Events extends Context.Service<
  Events,
  {
    /**
     * Events after a cursor in commit order (api.md 1 "Live data"): none can appear behind one already returned.
     * `cursor: null` starts at the end. `reset`: the cursor is older than what is kept.
     */
    readonly after: (request: {
      readonly projectId: string;
      readonly sessionId: string | null;
      readonly cursor: string | null;
      readonly limit: number;
    }) => Stored<{
      readonly events: readonly StoredEvent[];
      readonly cursor: string;
      readonly reset: boolean;
    }>;
    /** Completes when something may have been appended (a commit's signal; lost ones are covered by the reader's poll). */
    readonly changed: (projectId: string) => Effect.Effect<void>;
    /** Removes what is over 24 h or 10,000 a project, in small steps. */
    readonly prune: (now: number) => Stored<void>;
  }
>()("platform/store/Events") {}

export class CloneCredentials extends Context.Service<
  CloneCredentials,
  {
    readonly mint: (credential: CloneCredential) => Stored<void>;
    /** The credential with this hash while it lives, its session does, and its sandbox is provisioning or active (G10), else null. */
    readonly find: (hash: string, now: number) => Stored<CloneCredential | null>;
  }
>()("platform/store/CloneCredentials") {}

/** Says whether the database answers (`/readyz`). */
export class StoreHealth extends Context.Service<StoreHealth, { readonly ping: Stored<void> }>()(
  "platform/store/StoreHealth",
) {}
