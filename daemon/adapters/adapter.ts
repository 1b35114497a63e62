/**
 * The port to one kind of agent runtime (api.md 7, PLATFORM_AGENT_ADAPTER): everything that the daemon needs to know
 * about it.
 */
import type { AccountProvider } from "../../src/domain/sandbox/account-provider.ts";
import type * as Effect from "effect/Effect";
import type {
  ItemError,
  NativeItem,
  TextDelta,
  TurnNow,
} from "../../src/domain/conversation/conversation.ts";
import type { History } from "../../src/domain/conversation/history.ts";
import type { Permissions } from "../../src/domain/runtimes/runtime.ts";
import type { TurnEnd } from "../report.ts";
import type {
  OutgoingMessage,
  RequestAnswer,
  RuntimeOffers,
} from "../../src/domain/conversation/steering.ts";
import type { AttachedFile } from "../agent/attachments.ts";
import type { HttpFailure } from "../http/client.ts";
import type { BroughtHistory } from "../saving/command.ts";
import type { Pipes } from "../agent/process.ts";

/** The agent session, with the agent and model for its first message. */
export interface AgentSession {
  /** The title of the agent session: the session's id. A later daemon finds the agent session by it. */
  readonly sessionId: string;
  readonly agentName: string;
  /** The runtime's name of a model. If null, the runtime chooses. */
  readonly model: string | null;
  /** How hard the model thinks. Absent: the model's own. */
  readonly effort?: string;
  /** Absent: the agent has no table. */
  readonly table?: AgentTable;
}

/** What a table of the manifest says of the session's agent. */
export interface AgentTable {
  /** The account's provider whose models the runtime knows by their ids alone. Null means no provider. */
  readonly provider: string | null;
  /** A runtime without an agent or mode of the name does as it does by itself. */
  readonly isOptional: boolean;
  /** Whether its instructions are the file that a runtime with an agent of the name reads by itself. */
  readonly isOwnFile: boolean;
  /** Known once the repository is checked out. */
  readonly instructions: () => string | null;
}

/** The session's first prompt. */
export interface InitialPrompt extends AgentSession {
  readonly text: string;
}

/** What the agent hears of its session's former sandbox. */
export interface Briefing extends AgentSession {
  readonly text: string;
  /** What people see of it: a note in the conversation, in place of the text. */
  readonly note: string;
}

/** The result of restoring a history. */
export type Restoring =
  | {
      readonly outcome: "restored";
      /** The runtime has its own record as it was then, ms since the epoch. Absent: it has the whole history. */
      readonly until?: number;
    }
  /** The runtime has no part of it. */
  | {
      readonly outcome: "failed";
      /** `different`: the runtime kept something else than it was given. `missing`: its own record did not come back. */
      readonly why: "refused" | "different" | "late" | "missing";
      /** For the log. */
      readonly message: string;
    };

/** The runtime will never accept the prompt, e.g. because it has no such agent. */
export interface PromptRefused {
  readonly refused: string;
}

/** Paths in the runtime's environment. */
export interface RuntimeTools {
  /** The runtime is told where the gateway to tools is: of connectors, and of the platform itself. */
  readonly hasConnectors: boolean;
  /** Whether a person is asked before commands and changes. Null if the project's configuration says it. */
  readonly permissions: Permissions | null;
}

export interface RuntimePaths {
  /** The project's agent config directory. */
  readonly configDir: string;
  /** The file of the platform's own defaults, written before the runtime starts. */
  readonly defaults: string;
}

/** The inputs of the runtime's defaults, computed again before each start. */
export interface RuntimeModels {
  /** The default `provider/model`. Null if the repository's configuration must name one. */
  readonly model: string | null;
  /** The runtime's plugin that takes the session's variables (`AheadOfSession`), an absolute path. Null if it has them. */
  readonly plugin: string | null;
  /** Model ids that the managed gateway serves. Empty if the session has no gateway. */
  readonly gateway: readonly string[];
  /** The account's own providers, with the models that they offer. */
  readonly providers: readonly AccountProvider[];
  /** Whether the session or the repository names the provider that the makers of the runtime host. */
  readonly hosted: boolean;
  /** An agent that a table of the manifest defines, and that the runtime may not know. Null if the agent has no table. */
  readonly defined: string | null;
  /** A file with instructions that the runtime does not find by itself, an absolute path. Null if it finds all of them. */
  readonly instructions: string | null;
}

/** How long a failing model is tolerated before its turn is ended. */
export interface TurnLimits {
  /** Attempts at one call of the model. */
  readonly tries: number;
  /** Time limit for all attempts at one call, ms. */
  readonly tryingMs: number;
  /** Calls of the model in one turn. */
  readonly modelCalls: number;
  /** Calls of the model in a row that bring neither new text nor a finished tool. */
  readonly idleCalls: number;
  /** The whole turn, ms (PLATFORM_MAX_TURN_MS). */
  readonly turnMs: number;
  /**
   * How long a call of the model may bring no text, no thought, no tool and no usage, ms (PLATFORM_MODEL_SILENCE_MS). A connection
   * that is only kept open brings nothing.
   */
  readonly modelSilenceMs: number;
  /** The same where the calls of the model are not reported: while the runtime neither runs a tool nor asks. */
  readonly silentMs: number;
  /** How long a runtime that takes its turns over its standard input may take to end a turn that is stopped, ms. Then its process is ended. */
  readonly stopMs: number;
}

/** A model that fails five times in a row within a minute will not recover during the turn. */
export const TURN_LIMITS: TurnLimits = {
  tries: 6,
  tryingMs: 180_000,
  modelCalls: 200,
  idleCalls: 10,
  turnMs: 14_400_000,
  modelSilenceMs: 120_000,
  // A model that thinks long may stream nothing meanwhile.
  silentMs: 600_000,
  stopMs: 5000,
};

/** Receives reports of the runtime's turns. */
export interface TurnObserver {
  /** Whether any turn is in progress now. May be reported repeatedly. */
  readonly turn: (active: boolean) => void;
  /** The agent did something just now. */
  readonly activity: () => void;
  /** A turn has ended, with its result. Turns of subagents are not reported. */
  readonly ended: (end: TurnEnd) => void;
  /** Events are received from now on. */
  readonly followed: () => void;
  /** The last value that `turn` got. */
  readonly isActive: () => boolean;
}

/** The end of a turn whose answer was cut off. */
export const ANSWER_CUT_OFF: ItemError = {
  code: "max_tokens",
  message: "The answer reached the model's limit of tokens and was cut off. Ask the agent to go on.",
};

/** An item of the conversation before the daemon numbers its version. */
export interface ItemDraft extends Omit<NativeItem, "rev"> {
  /** How many characters of its text the adapter left out behind its end, beyond `TEXT_KEPT_MAX`. */
  readonly dropped?: number;
}

/** Receives the conversation, as the runtime records it. Nothing is redacted yet. */
export interface ConversationObserver {
  /** The present version of an item. May be reported repeatedly. */
  readonly item: (item: ItemDraft) => void;
  /** Text that was added to the last text part of an item that is running. */
  readonly grown: (delta: TextDelta) => void;
  readonly turn: (now: TurnNow) => void;
  /** The runtime's own title of the conversation. */
  readonly titled: (title: string) => void;
}

/** Before an adapter is connected. */
export const NO_OBSERVER: ConversationObserver = {
  item: () => undefined,
  grown: () => undefined,
  turn: () => undefined,
  titled: () => undefined,
};

/** Receives what is followed of a runtime. */
export interface Observers {
  readonly turns: TurnObserver;
  readonly conversation: ConversationObserver;
}

/** What became of a message. */
export type Handover =
  /** The runtime works on it, or has answered it. */
  | { readonly outcome: "accepted" }
  /** The runtime works on something else and has not got it. */
  | { readonly outcome: "busy" }
  | { readonly outcome: "refused"; readonly error: ItemError };

/** A turn is to go on, and this daemon has not handed its message. */
export const NO_LAST: ItemError = {
  code: "message_not_taken",
  message: "The message is not known any more. Send it again.",
};

/** What a turn goes on with. */
export interface TurnChoice {
  /** The runtime's name of it. */
  readonly model: string;
  /** If null, the present mode stays. */
  readonly mode: string | null;
  /** Absent: the present effort stays. */
  readonly effort?: string;
}

/** Why the model of a message that chose an effort does not take it. */
export const unknownEffort = (
  effort: string,
  model: string | null,
  efforts: readonly string[],
): ItemError => ({
  code: "unknown_effort",
  message:
    `${model === null ? "The model" : `The model ${model}`} does not take the effort "${effort}". ` +
    (efforts.length === 0 ? "It offers no choice of efforts." : `Choose one of: ${efforts.join(", ")}.`),
});

/** What an agent hears whose permission no person grants. */
export const NOT_ALLOWED = {
  unattended:
    "No person can grant this permission. Find a way without it, or skip this step and say so in your answer.",
  expired:
    "No person granted this permission in time. Find a way without it, or skip this step and say so in your answer.",
} as const;

/** One look at the agent session. */
export type Sight =
  | { readonly isBusy: true }
  /** `hasBegun`: the turn of the message in question shows a sign of its beginning. */
  | { readonly isBusy: false; readonly hasBegun: boolean };

/** Steers a runtime's conversation. */
export interface AdapterSteering {
  /** Hands a message to the agent session. May be repeated: the runtime has the message once (steering.ts, Y1). */
  readonly hand: (
    session: AgentSession,
    message: OutgoingMessage,
    files: readonly AttachedFile[],
  ) => Effect.Effect<Handover, HttpFailure>;
  /**
   * Gives the agent session the last message again, with another model, after its turn failed. The message is no further one, and its turn
   * goes on. May be repeated after a failure.
   */
  readonly again: (session: AgentSession, choice: TurnChoice) => Effect.Effect<Handover, HttpFailure>;
  /**
   * Looks whether the agent session rests. If it does, all that it has done was reported to the observer of `follow`.
   *
   * @param messageId the message or prompt whose turn is in question
   */
  readonly look: (sessionId: string, messageId: string | null) => Effect.Effect<Sight, HttpFailure>;
  /** Ends the turn of the agent session. Nothing happens if it rests. */
  readonly interrupt: (sessionId: string) => Effect.Effect<void, HttpFailure>;
  /** Answers an open request of the agent. False if it is closed, or takes no such answer. */
  readonly answer: (requestId: string, answer: RequestAnswer) => Effect.Effect<boolean, HttpFailure>;
  readonly offers: (session: AgentSession) => Effect.Effect<RuntimeOffers, HttpFailure>;
  /** The modes that the running process has told, the one in which it began first. Empty: it tells none. */
  readonly modes: () => readonly string[];
}

export interface AheadOfSession {
  /**
   * The text of a plugin by which the runtime takes the session's variables, when it opens its project. The variables are in
   * a JSON file.
   *
   * @param variables the file's absolute path.
   */
  readonly plugin: (variables: string) => string;
  /**
   * Makes a runtime that answers the probe do once what it does for each project that it opens, in a directory that is
   * none. The first time takes it several times as long as later ones.
   */
  readonly rehearse: (directory: string) => Effect.Effect<void, HttpFailure>;
}

/** What a runtime adds to files of the project when it reads them. A file that differs only by it contains no work. */
export interface OwnEdit {
  /** A basic regular expression for `sed -z`. */
  readonly pattern: string;
  /** The names of the files, in the configuration directory and in these directories of the workspace. */
  readonly files: readonly string[];
  readonly directories: readonly string[];
  /** Completes when a runtime that has answered the probe has made its additions. */
  readonly made: Effect.Effect<void, HttpFailure>;
}

export interface RuntimeAdapter {
  /** Null if the runtime's conversation can be neither followed nor steered. */
  readonly steering: AdapterSteering | null;
  /** Variables of the runtime's environment beyond AGENT_CONFIG_DIR. */
  readonly environment: (paths: RuntimePaths & RuntimeTools) => Readonly<Record<string, string>>;
  /**
   * The text of the file at `RuntimePaths.defaults`: settings that the project may override. It contains no key; keys
   * are named as environment variables. Null if no file is written.
   */
  readonly defaults: ((models: RuntimeModels) => string) | null;
  /** The runtime's own addition to the project's files. Null if the runtime adds nothing. */
  readonly ownEdit: OwnEdit | null;
  /** How the runtime starts before its session. Null if it starts with it. */
  readonly ahead: AheadOfSession | null;
  /**
   * Takes the standard input and output of each process that starts: they carry a protocol. If null, the output is the
   * runtime's log, and there is no input.
   */
  readonly talk: ((pipes: Pipes) => void) | null;
  /**
   * Completes when the present process can no longer be spoken with, although it may still run. Then the daemon ends it and starts
   * another one.
   */
  readonly lost: Effect.Effect<void>;
  /** Whether it has an HTTP API on the runtime's port, to which requests are passed. */
  readonly hasHttp: boolean;
  /** Asks once whether it answers. Never waits long, because connections made while it boots can hang. */
  readonly probe: Effect.Effect<void, HttpFailure>;
  /**
   * Prepares a process that has answered the probe, once the repository is checked out. Then the process is ready. May be
   * repeated. Null if it is ready when it answers.
   */
  readonly open: Effect.Effect<void, HttpFailure> | null;
  /** Delivers the prompt, unless an agent session already has it. Called again after a failure. */
  readonly deliverPrompt: (prompt: InitialPrompt) => Effect.Effect<"accepted" | PromptRefused, HttpFailure>;
  /**
   * Makes the prompt's agent session from a history or the runtime's own record, whole or not at all, before it gets anything else. It is
   * not reported as items, and no turn begins. It is given up after `RESTORED_WITHIN_MS`. Null if the
   * runtime cannot take over a history.
   */
  readonly restore: ((session: AgentSession, history: History) => Effect.Effect<Restoring>) | null;
  /** What the runtime keeps of the conversation in files of its own. Null if the daemon does not use it. */
  readonly record: {
    /** The runtime's id of the present conversation. Null if it has had no message. */
    readonly present: () => string | null;
    /** The record of a conversation was brought back. The first process, which has not started yet, goes on with it. */
    readonly recall: (record: BroughtHistory) => void;
  } | null;
  /**
   * Gives the agent a briefing without starting a turn, in the prompt's agent session, unless that session already has a
   * message of its own. Later messages get its agent and model. Called again after a failure.
   */
  readonly tell: (briefing: Briefing) => Effect.Effect<void, HttpFailure>;
  /**
   * Follows the runtime's turns, and the conversation of the agent session with that title, while the runtime runs.
   * Fails when it cannot follow any longer.
   */
  readonly follow: (sessionId: string, observers: Observers) => Effect.Effect<never, HttpFailure>;
  /** Whether a turn is in progress now. False if the adapter cannot know. */
  readonly isBusy: Effect.Effect<boolean, HttpFailure>;
  /** Aborts turns in progress. False if the agent was idle. */
  readonly abort: Effect.Effect<boolean, HttpFailure>;
}

/** How long one probe may take. */
export const PROBE_TIMEOUT_MS = 250;
/** How long it may take to restore a history. 4,000 records take about 12 s on an idle machine. */
export const RESTORED_WITHIN_MS = 60_000;
/** How long a call to a running runtime may take. */
export const CALL_TIMEOUT_MS = 10_000;
