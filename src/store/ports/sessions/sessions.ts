/** Sessions and their actors' memory. */
import * as Context from "effect/Context";
import type { SessionCommand, SessionEvent, SessionSnapshot } from "../../../machines/session.ts";
import type { BadCursor } from "../errors.ts";
import type { Memory, Stored, UnsettledActor } from "../journal.ts";
import type { ProjectReader } from "../projects/projects.ts";
import type { Page, PageRequest } from "../page.ts";
import type { ConversationRowState, SearchHit } from "./conversations.ts";
import type { TurnRequest } from "../../../domain/conversation/row-texts.ts";
import type { TurnNow } from "../../../domain/conversation/conversation.ts";
import type { Failure } from "../../../domain/session/failure.ts";
import type { ConversationTurn, LastTurn } from "../../../domain/session/last-turn.ts";
import type { Origin } from "../../../domain/person/privileges.ts";
import type { Activity, ActivityFacts, BranchChanges } from "../../../domain/session/session-activity.ts";
import type { SandboxStatus, SessionStatus, StopReason } from "../../../domain/session/session.ts";
import type { Unsaved } from "../../../domain/save/order.ts";
import type { Restored, Saved } from "../../../domain/save/saved.ts";

/** How a turn ended, with the sandbox's number of the turn. */
export interface EndedTurn extends LastTurn {
  readonly sandboxId: string;
  readonly number: number;
  /** The same turn as the conversation counts it. Null or absent: unknown. */
  readonly conversation?: ConversationTurn | null;
}

/** A first message with files, an effort or a mode. Its text is no `initialPrompt`. */
export interface FirstMessage {
  readonly text: string;
  /** Ids of uploads. */
  readonly attachments: readonly string[];
  /** The name of the person. */
  readonly author: string;
  /** How hard the model thinks. Absent: the agent's. */
  readonly effort?: string;
  /** A mode of the agent's runtime. Absent: the agent's. */
  readonly mode?: string;
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
  /** Until its conversation has it. Null or absent: none. */
  readonly firstMessage?: FirstMessage | null;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly triggerSlug: string | null;
  readonly fireId: string | null;
  /** The session of the same project whose agent started it. Null if a person or a trigger did. */
  readonly parentSessionId: string | null;
  /** The session acts for this user. */
  readonly createdBy: string;
  /** The origin of its sandbox's token: `session` for people, `trigger` for cron and webhook fires. */
  readonly origin: Exclude<Origin, "user">;
  readonly failure: (Failure & { readonly at: number }) | null;
  readonly stopReason: StopReason | null;
  /** The result of its last save, also while that goes on, and after a restart. Null before the first one. */
  readonly saved: Saved | null;
  /** Since when its idle sandbox stays because it cannot be saved. Null if it can, as far as is known. */
  readonly unsaved: Unsaved | null;
  /** Whether its current sandbox was asked to bring the saved work back. */
  readonly restoreSaved: boolean;
  /** What its current or last sandbox brought back. Null if it was not asked to, or has not answered yet. */
  readonly restored: Restored | null;
  /** The last turn that ended, also after a restart. Null before the first. */
  readonly lastTurn: EndedTurn | null;
  /** The changes of its branch at the last push. Null if not pushed yet, or by an earlier version. */
  readonly changes: BranchChanges | null;
  /** The id of its current sandbox (the machine's context). */
  readonly sandboxId: string | null;
  /** Why a running session is about to stop (the machine's context). Null if no stop is under way. */
  readonly ending: StopReason | null;
  /** The request for which its agent waited when it was last found idle. Null if it waited for nothing, or if it was restarted since. */
  readonly asked: TurnRequest | null;
  /** Whether a restart waits for the end of a stop, or for a place after it (the machine's context). */
  readonly restarts: boolean;
  readonly bootDeadlineAt: number;
  readonly bootstrapAcceptedAt: number | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly runningAt: number | null;
  readonly stoppedAt: number | null;
  /** When a person put it away (session-news.ts B2). Null or absent: never, or it was brought back. */
  readonly archivedAt?: number | null;
  /** Deleted sessions appear in no list and answer as unknown (api.md 3 DELETE). Their branch stays. */
  readonly deletedAt: number | null;
}

/** A session as answers show it, with what decides its activity. */
export interface ShownSession extends Session {
  /** The state of its conversation. Null if it was never opened. */
  readonly conversation: ConversationRowState | null;
  /** How many calls of its agent wait for a person's approval. */
  readonly pendingApprovals: number;
  readonly oldestApproval: ActivityFacts["oldestApproval"];
  readonly changeRequest:
    | (ActivityFacts["changeRequest"] & {
        readonly id: string;
        readonly number: number;
        readonly title: string;
        /** The name of the person whose newest verdict on the open request asks for changes, the newest of several. */
        readonly changesAskedBy: string | null;
        /** How many unresolved threads of the open request others than its opener began. */
        readonly comments: number;
      })
    | null;
  /** The name of `createdBy`. */
  readonly creatorName: string;
  /** Until when the reader of a list has seen it. Null or absent: no reader is known. */
  readonly seenAt?: number | null;
  /** The newest message that a search found. Null or absent: its name has the words, or nothing was looked for. */
  readonly hit?: SearchHit | null;
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
  | "firstMessage"
  | "metadata"
  | "triggerSlug"
  | "createdBy"
  | "origin"
  | "bootDeadlineAt"
> & {
  /** Absent: a person or a trigger starts it. */
  readonly parentSessionId?: string;
  /** What its first sandbox brings back: a copy of another session's saved work. Absent: nothing. */
  readonly saved?: Saved;
};

/** A live session that no actor will end, or a live sandbox that its session does not hold. */
export interface OwnerlessSession {
  readonly id: string;
  readonly sandboxId: string | null;
  /** The state of the sandbox's record. Null without a record. */
  readonly sandbox: SandboxStatus | null;
  /** Whether it is the session's current sandbox, and the session is live. */
  readonly isHeld: boolean;
}

/** A running session, as the sweeper judges it. */
export interface RunningSession {
  readonly id: string;
  readonly accountId: string;
  readonly sandboxId: string;
  readonly runningAt: number;
  readonly unsaved: Unsaved | null;
  /** Whether its last save had everything. */
  readonly isSaved: boolean;
  /** What its agent asks a person. Null if it does not wait for one, as far as the conversation's row says. */
  readonly asks: TurnRequest | null;
  /** Whether it is unsaved, and half of its account's slots or more hold sessions that are unsaved for a shorter time. */
  readonly isSurplus: boolean;
}

/**
 * How many sessions one list looks at to find those that its filter wants: a filter that fits few rows must not read
 * all rows of an account at once.
 */
export const LIST_SCAN_MAX = 10_000;

/** How many characters of a prompt stand for the name of a session without one. */
export const PROMPT_AS_NAME_MAX = 200;

/** The conditions of a list of sessions. An absent one accepts all. */
export interface SessionFilter {
  readonly status: string | null;
  /**
   * Live sessions whose agent's turn has this state. With `requires_action` also those that are `unsaved`, and those, live
   * or not, with a call that waits for an approval which the reader may give.
   */
  readonly turn?: TurnNow["state"] | undefined;
  /** Those with one of these activities. */
  readonly activities?: readonly Activity[] | undefined;
  /** Whether the reader's token may give approvals. Absent: no. Over several projects, her role in each counts, too. */
  readonly mayApprove?: boolean | undefined;
  readonly triggerSlug?: string | undefined;
  /** Whether a person or a trigger started it. */
  readonly startedBy?: "person" | "trigger" | undefined;
  readonly createdBy?: string | undefined;
  /** Whether it is archived. Absent: either. */
  readonly archived?: boolean | undefined;
  /** Those that the agent of this session started. */
  readonly parentSessionId?: string | undefined;
  /**
   * A part of its name; of its trigger's slug if it has no name; of the beginning of its prompt if it has neither. Or the
   * beginnings of words that are all in one message of a person or the agent. The case of letters does not matter.
   */
  readonly search?: string | undefined;
}

/**
 * @property lookedAt how many sessions are looked at, or LIST_SCAN_MAX. A page that ends there has a cursor, and may
 * have fewer items than its limit.
 */
export type SessionRequest = PageRequest &
  SessionFilter & {
    readonly lookedAt?: number;
    /** The id of the person who reads, for `seenAt`. */
    readonly reader?: string | undefined;
  };

export class Sessions extends Context.Service<
  Sessions,
  {
    readonly memory: Memory<SessionSnapshot, SessionEvent, SessionCommand>;
    readonly get: (id: string) => Stored<Session | null>;
    readonly shown: (id: string) => Stored<ShownSession | null>;
    /** Newest first, without deleted ones. `get` still returns those, with `deletedAt`. */
    readonly list: (projectId: string, request: SessionRequest) => Stored<Page<ShownSession>, BadCursor>;
    /** The same for all projects that a person sees. */
    readonly listForReader: (
      reader: ProjectReader,
      request: SessionRequest,
    ) => Stored<Page<ShownSession>, BadCursor>;
    /** How many live sessions the agent of this session started. */
    readonly liveChildren: (id: string) => Stored<number>;
    /** Whether the project ever had a session, deleted ones included. */
    readonly anyIn: (projectId: string) => Stored<boolean>;
    /** With the event `session.updated`. Null, without an event: the session is unknown or deleted. */
    readonly rename: (
      id: string,
      change: {
        readonly name?: string;
        readonly metadata?: Readonly<Record<string, unknown>>;
        /** When it was put away. Null if it is brought back. Absent: as it is. */
        readonly archivedAt?: number | null;
        readonly now: number;
      },
    ) => Stored<Session | null>;
    /**
     * Names a session that has no name, or the runtime's former title, with the event `session.updated`. Another name stays.
     *
     * @param title.former null: none is known
     */
    readonly entitle: (
      id: string,
      title: { readonly title: string; readonly former: string | null; readonly now: number },
    ) => Stored<void>;
    /** Notes that a person has seen the session up to an instant. An earlier one changes nothing. */
    readonly see: (id: string, by: { readonly userId: string; readonly at: number }) => Stored<void>;
    /** Records that the agent runtime accepted the initial prompt (api.md 7: exactly once per session). Idempotent. */
    readonly acceptBootstrap: (id: string, now: number) => Stored<void>;
    /** Records what a sandbox brought back, if it is still the session's. Idempotent. */
    readonly noteRestored: (
      id: string,
      by: { readonly sandboxId: string; readonly restored: Restored },
    ) => Stored<void>;
    /**
     * Records what a save of a sandbox has so far, if it is still the session's, with the event `session.saved` if that
     * changes. A complete save ends `unsaved`.
     */
    readonly noteSaved: (
      id: string,
      by: { readonly sandboxId: string; readonly saved: Saved },
    ) => Stored<void>;
    /** Records the changes of the session's branch after a push, with the event `session.updated`. */
    readonly noteChanges: (id: string, changes: BranchChanges, now: number) => Stored<void>;
    /** The nodes that the sessions of a project name as those of their saves, in order. */
    readonly nodesWithSaves: (projectId: string) => Stored<readonly string[]>;
    /** Takes a deleted save out of `saved.earlier`. */
    readonly forgetEarlier: (id: string, saveId: string) => Stored<void>;
    /**
     * Writes how a turn ended, with the event `session.turn`, and with `session.turn_ended` if the agent rests then
     * (turn-endings.ts). Returns null and writes nothing if the sandbox is not the
     * session's any more, or if this turn or a later one of that sandbox was written before.
     */
    readonly noteTurn: (
      id: string,
      turn: EndedTurn & { readonly now: number },
    ) => Stored<{ readonly projectId: string } | null>;
    /** The running sessions whose sandboxes are on this node. */
    readonly runningOn: (nodeId: string) => Stored<readonly RunningSession[]>;
    /**
     * How many sessions of each account would have to end so that all waiting requests of its people have a slot, by the
     * account's id. Free slots and sessions that are about to stop count. Accounts that need none are left out.
     */
    readonly roomWanted: Stored<ReadonlyMap<string, number>>;
    /**
     * Sessions with pending commands, which are woken at start. A settled session waits for its next message.
     */
    readonly unsettled: Stored<readonly UnsettledActor[]>;
    /**
     * Live sessions without any work left, neither for them nor for their sandbox. Live sandboxes that their session does
     * not hold, although no work is left that ends them. No actor would ever end them. Only changes by hand, or a backup
     * that was restored in part, leave them behind.
     */
    readonly ownerless: Stored<readonly OwnerlessSession[]>;
  }
>()("platform/store/Sessions") {}
