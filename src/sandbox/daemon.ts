/** The port to the daemon inside a sandbox: the service's own calls to it (api.md 7). */
import * as Context from "effect/Context";
import type { Readable } from "node:stream";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import type * as Scope from "effect/Scope";
import type * as Stream from "effect/Stream";
import type { ConversationReport } from "../domain/conversation/conversation.ts";
import { OLDEST_DAEMON_PROTOCOL } from "../domain/sandbox/daemon-protocol.ts";
import type {
  AnswerOrder,
  InterruptOrder,
  MessageHandedOver,
  OutgoingMessage,
  RuntimeOffers,
} from "../domain/conversation/steering.ts";
import type { NumberedTurn } from "../domain/session/last-turn.ts";
import type { Claim } from "../domain/sandbox/launch.ts";
import type { LogLine } from "../domain/session/log-line.ts";
import type { ListRequest, Listing, ReadRequest, RestorePart } from "../domain/save/listing.ts";
import { Restored } from "../domain/save/saved.ts";
import type {
  WorkspaceChanges,
  WorkspaceDirectory,
  WorkspaceFile,
  WorkspaceSides,
} from "../domain/session/workspace.ts";
import type { DaemonLink } from "./port.ts";

/** Daemons before protocol 3 report neither refs nor new names. */
const ReportedRestored = Schema.Struct({
  ...Restored.fields,
  refs: Restored.fields.refs.pipe(Schema.withDecodingDefaultKey(Effect.succeed([]))),
  renamed: Restored.fields.renamed.pipe(Schema.withDecodingDefaultKey(Effect.succeed([]))),
});

/** The part of `GET /platform/health` that the service uses. The daemon reports more (api.md 7). */
export const DaemonHealth = Schema.Struct({
  /** Which requests and answers it knows (domain/sandbox/daemon-protocol.ts). The client always has it. */
  protocol: Schema.optionalKey(Schema.Finite),
  status: Schema.Literals(["starting", "ready", "degraded", "error"]),
  runtime: Schema.Struct({
    state: Schema.Literals(["starting", "ready", "restarting", "failed", "stopped"]),
  }),
  repo: Schema.Struct({
    ready: Schema.Boolean,
    branch: Schema.NullOr(Schema.String),
    commit: Schema.NullOr(Schema.String),
  }),
  /** Whether the boot waits for saved work. Daemons before protocol 3 fetch it themselves, and do not report this. */
  restore: Schema.optionalKey(Schema.Literals(["none", "wanted", "running", "done"])),
  /** The saved work that the boot brought back. Absent from a daemon of an earlier version. */
  restored: Schema.optionalKey(Schema.NullOr(ReportedRestored)),
  bootstrap: Schema.Struct({ state: Schema.Literals(["none", "pending", "done", "failed"]) }),
  turn: Schema.Struct({
    /** Null if the runtime's adapter cannot know. */
    active: Schema.NullOr(Schema.Boolean),
    active_since: Schema.NullOr(Schema.String),
    last_activity_at: Schema.NullOr(Schema.String),
  }),
  /** When a person last typed in a terminal. Absent in daemons of former releases. */
  typed_at: Schema.optionalKey(Schema.NullOr(Schema.String)),
  boot: Schema.Array(Schema.Struct({ step: Schema.String, at_ms: Schema.Finite })),
  error: Schema.NullOr(Schema.String),
});
export type DaemonHealth = typeof DaemonHealth.Type;

/** The daemon did not answer, or its answer was invalid. */
export class DaemonUnreachable extends Schema.TaggedError<DaemonUnreachable>()("DaemonUnreachable", {
  message: Schema.String,
}) {}

/** The daemon is of an earlier version, with which this one does not work (domain/sandbox/daemon-protocol.ts). */
export class DaemonOutdated extends Schema.TaggedError<DaemonOutdated>()("DaemonOutdated", {
  protocol: Schema.Finite,
}) {
  override get message(): string {
    return `the sandbox's daemon has protocol ${this.protocol}, and the oldest supported is ${OLDEST_DAEMON_PROTOCOL}`;
  }
}

/** The sandbox's agent runtime has no conversation that can be followed. */
export class NoConversation extends Schema.TaggedError<NoConversation>()("NoConversation", {}) {}

/** Why the daemon could not read its workspace. */
export const WORKSPACE_REFUSALS = [
  "not_found",
  "path_unreadable",
  "workspace_busy",
  "workspace_slow",
  "workspace_too_large",
  "workspace_unreadable",
  "runtime_not_ready",
] as const;
export type WorkspaceRefusal = (typeof WORKSPACE_REFUSALS)[number];

export class WorkspaceRefused extends Schema.TaggedError<WorkspaceRefused>()("WorkspaceRefused", {
  code: Schema.Literals(WORKSPACE_REFUSALS),
}) {}

/** A call to a session's daemon. `context` is a signed user context for the session, or for the sandbox's own id before it has one. */
type DaemonCall<Part extends readonly unknown[], A, E = never, R = never> = (
  link: DaemonLink,
  context: string,
  ...part: Part
) => Effect.Effect<A, DaemonUnreachable | E, R>;
type WorkspaceCall<Part extends readonly unknown[], A> = DaemonCall<Part, A, WorkspaceRefused>;
type ConversationCall<Part extends readonly unknown[], A> = DaemonCall<Part, A, NoConversation>;

/** The workspace while the agent works in it, without secrets. */
export interface WorkspaceClient {
  /** What the workspace adds to the base. */
  readonly changes: WorkspaceCall<[sides: WorkspaceSides], WorkspaceChanges>;
  /** The same as a unified diff of at most 1 MiB, which says where it is cut. `path`: null for all files. */
  readonly diff: WorkspaceCall<[part: WorkspaceSides & { readonly path: string | null }], string>;
  /** A directory, or a file's text. An empty path is the workspace itself. */
  readonly files: WorkspaceCall<[path: string], WorkspaceDirectory | WorkspaceFile>;
}

/** What a daemon before protocol 3 saved: it pushes to refs/wip/<session>. */
export const PushedSave = Schema.Struct({
  wip: Schema.NullOr(Schema.String),
  skipped: Schema.Array(Schema.Struct({ path: Schema.String, reason: Schema.String })),
  error: Schema.NullOr(Schema.String),
});
export type PushedSave = typeof PushedSave.Type;

/** The agent's work, for a daemon of protocol 3 or later (saves.md). `context` is the signed user context. */
export interface SavingClient {
  /** The difference between the workspace and the pushed branch. Its texts are the sandbox's, with all secrets in them. */
  readonly listing: DaemonCall<
    [list: { readonly request: ListRequest; readonly timeoutMs: number }],
    Listing
  >;
  /** Frames (domain/save/frames.ts), as they arrive. The stream ends with an error if the connection breaks off. */
  readonly read: DaemonCall<[request: ReadRequest], Readable, never, Scope.Scope>;
  /** Gives a boot that waits for it the saved work, as frames. */
  readonly restore: DaemonCall<
    [delivery: { readonly body: Readable; readonly timeoutMs: number; readonly part?: RestorePart }],
    Restored
  >;
  /** Ends all programs of the agent's side for good. The work can still be listed and read. */
  readonly retire: DaemonCall<[], void>;
}

/** A change of the agent runtime's environment (`POST /platform/env`). Null removes a variable. */
export interface EnvironmentChange {
  readonly revision: string;
  readonly env: Readonly<Record<string, string | null>>;
}

/** The daemon's answer. `revision` is the one in force, which may be newer than the change's. */
export const EnvironmentChanged = Schema.Struct({
  changed: Schema.Array(Schema.String),
  revision: Schema.String,
  restarted: Schema.Boolean,
  turn_interrupted: Schema.Boolean,
});
export type EnvironmentChanged = typeof EnvironmentChanged.Type;

/** The largest commit with its history that a waiting sandbox gets. */
export const CHECKOUT_PACK_BYTES = 64 * 1024 * 1024;
/** The longest body that the control surface accepts (api.md 7). */
export const CONTROL_BODY_BYTES = 1024 * 1024;

export class DaemonClient extends Context.Service<
  DaemonClient,
  {
    /**
     * Gives a waiting sandbox a commit of the project with its history, once, before its session.
     *
     * @param context a signed user context for the sandbox's own id.
     */
    readonly prepare: DaemonCall<[preparation: { readonly commit: string; readonly pack: Uint8Array }], void>;
    /**
     * Gives a waiting sandbox its session. May be repeated.
     *
     * @param context a signed user context for that session.
     */
    readonly claim: DaemonCall<[claim: Claim], void>;
    /**
     * The daemon's health, within 1 s.
     *
     * @param until `booted`: while it boots without trouble, it may answer up to half a second later.
     */
    readonly health: (
      link: DaemonLink,
      until?: "booted",
    ) => Effect.Effect<DaemonHealth, DaemonUnreachable | DaemonOutdated>;
    /**
     * Ends the agent's turn. False if no turn was in progress. `context` is the signed user context, here and below.
     */
    readonly abort: DaemonCall<[timeoutMs: number], boolean>;
    /** Takes messages again. After an abort by the service, a daemon takes none, because its sandbox is about to end. */
    readonly goOn: DaemonCall<[], void>;
    readonly saving: SavingClient;
    /** Saves unpushed work by a push to refs/wip. Only daemons before protocol 3 can. */
    readonly saveByPush: DaemonCall<[timeoutMs: number], PushedSave>;
    /**
     * The last ended turn, as soon as its number is above this one. After 25 s, the last turn as it is, or null.
     *
     * @param context a signed user context for its session.
     */
    readonly turn: DaemonCall<[after: number], NumberedTurn | null>;
    /**
     * The numbered log lines after a number, and then each new one, no faster than they are read. Missing numbers are
     * lines that the daemon no longer has. Ends with the daemon.
     *
     * @param from `context` is a signed user context for its session.
     */
    readonly logs: (
      link: DaemonLink,
      from: { readonly context: string; readonly after: number },
    ) => Stream.Stream<LogLine, DaemonUnreachable>;
    /**
     * The conversation: each item whose version is above the number, the turn, and then each change, no faster than they
     * are read. Ends with the daemon.
     */
    readonly conversation: (
      link: DaemonLink,
      from: { readonly context: string; readonly after: number },
    ) => Stream.Stream<ConversationReport, DaemonUnreachable | NoConversation>;
    /** A tool's whole output, of which its item has the beginning. Null if the daemon does not have it. `item`: its native id. */
    readonly output: DaemonCall<[item: string], string | null>;
    /** Hands a message to the agent. May be repeated: the runtime has it once. */
    readonly hand: ConversationCall<[message: OutgoingMessage], MessageHandedOver>;
    /**
     * Gives the daemon an attachment of the message that was handed over last, and found incomplete. May be repeated.
     */
    readonly attach: ConversationCall<
      [attachment: { readonly id: string; readonly content: Uint8Array }],
      void
    >;
    /** Ends the turn of that number. False if it has ended. */
    readonly interrupt: ConversationCall<[order: InterruptOrder], boolean>;
    /** Answers a request of the agent. False if it is closed. */
    readonly answer: ConversationCall<[order: AnswerOrder], boolean>;
    /** What the runtime offers. */
    readonly models: ConversationCall<[], RuntimeOffers>;
    /** The ports on which programs in the sandbox listen, without the platform's own. At most 100, in ascending order. */
    readonly ports: DaemonCall<[], readonly number[]>;
    readonly workspace: WorkspaceClient;
    /**
     * Takes the own subscription of the session's person from the agent runtime, which starts again without it. When it returns, no process
     * has it. May be repeated.
     *
     * @param reason a sentence for the conversation
     */
    readonly withdraw: DaemonCall<[reason: string], void>;
    /**
     * Changes the environment and waits until the restarted runtime answers, up to 3 min, since another change or a
     * refresh may come first. If a turn is in progress, fails and changes nothing. No failure contains a value.
     */
    readonly env: DaemonCall<[change: EnvironmentChange], EnvironmentChanged>;
  }
>()("platform/sandbox/DaemonClient") {}
