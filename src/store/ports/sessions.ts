/** Sessions and their actors' memory. */
import * as Context from "effect/Context";
import type { SessionCommand, SessionEvent, SessionSnapshot } from "../../machines/session.ts";
import type { BadCursor } from "./errors.ts";
import type { Memory, Stored } from "./journal.ts";
import type { NotedTurn, OwnerlessSession, Page, PageRequest, Session } from "./records.ts";

export class Sessions extends Context.Service<
  Sessions,
  {
    readonly memory: Memory<SessionSnapshot, SessionEvent, SessionCommand>;
    readonly get: (id: string) => Stored<Session | null>;
    /** Newest first, without deleted ones. `get` still returns those, with `deletedAt`. */
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
    /** Records that the agent runtime accepted the initial prompt (api.md 7: exactly once per session). Idempotent. */
    readonly acceptBootstrap: (id: string, now: number) => Stored<void>;
    /**
     * Writes how a turn ended, with the event `session.turn`. Returns null and writes nothing if the sandbox is not the
     * session's any more, or if this turn or a later one of that sandbox was written before.
     */
    readonly noteTurn: (
      id: string,
      turn: NotedTurn & { readonly now: number },
    ) => Stored<{ readonly projectId: string } | null>;
    /** The running sessions whose sandboxes are on this node. */
    readonly runningOn: (
      nodeId: string,
    ) => Stored<readonly { readonly id: string; readonly sandboxId: string; readonly runningAt: number }[]>;
    /**
     * Ids of sessions with pending commands, which are woken at start. A settled session waits for its next message.
     */
    readonly unsettled: Stored<readonly string[]>;
    /** Live sessions without any work left, neither for them nor for their sandbox. No actor would ever end them. */
    readonly ownerless: Stored<readonly OwnerlessSession[]>;
  }
>()("platform/store/Sessions") {}
