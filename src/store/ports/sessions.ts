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
