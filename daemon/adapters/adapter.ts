/** The port to one kind of agent runtime (api.md 7, PLATFORM_AGENT_ADAPTER). Names what the daemon needs to know of it. */
import type * as Effect from "effect/Effect";
import type { LastTurn } from "../../src/domain/last-turn.ts";
import type { HttpFailure } from "../http-client.ts";

/** The session's first prompt, and who is to take it. */
export interface InitialPrompt {
  /** Title of the agent session: the session's id, by which a later daemon finds it again. */
  readonly sessionId: string;
  readonly text: string;
  readonly agentName: string;
  /** `provider/model`, or null for the runtime's own choice. */
  readonly model: string | null;
}

/** The runtime will never take the prompt, e.g. since it has no such agent. */
export interface PromptRefused {
  readonly refused: string;
}

/** What the runtime's environment points to. */
export interface RuntimePaths {
  /** The project's agent config directory. */
  readonly configDir: string;
  /** The platform's own defaults, written before the runtime starts. */
  readonly defaults: string;
}

/** What the runtime's defaults are made from, asked anew before each start. */
export interface RuntimeModels {
  /** `provider/model` that is used where nobody names another; null: the repository's configuration has to. */
  readonly model: string | null;
  /** Model ids that the managed gateway is asked for; none where the session has no gateway. */
  readonly gateway: readonly string[];
  /** Whether somebody names the provider that the runtime's makers host. */
  readonly hosted: boolean;
}

/** How far a failing model may take one turn before it is ended. */
export interface TurnLimits {
  /** Tries of one call of the model. */
  readonly tries: number;
  /** How long one call may be tried, ms. */
  readonly tryingMs: number;
  /** Calls of the model in one turn. */
  readonly modelCalls: number;
}

/** A model that fails five times in a row for a minute will not recover within the turn. */
export const TURN_LIMITS: TurnLimits = { tries: 6, tryingMs: 180_000, modelCalls: 200 };

/** Is told of the runtime's turns. */
export interface TurnObserver {
  /** Whether any turn is in progress now; told as often as one likes. */
  readonly turn: (active: boolean) => void;
  /** The agent did something just now. */
  readonly activity: () => void;
  /** A turn has ended, and how. A turn of an agent that another agent asked for something is none of its own. */
  readonly ended: (end: TurnEnd) => void;
  /** Events are listened to from now on. */
  readonly followed: () => void;
  /** What `turn` was told last. */
  readonly isActive: () => boolean;
}

/** How a turn ended; `error` is what went wrong, in words that are not redacted yet. */
export type TurnEnd = Pick<LastTurn, "state" | "error">;

export interface RuntimeAdapter {
  /** Variables of the runtime's environment beyond AGENT_CONFIG_DIR. */
  readonly environment: (paths: RuntimePaths) => Readonly<Record<string, string>>;
  /**
   * Text of the file at `RuntimePaths.defaults`, settings that the project may override; null: none is written. It holds
   * no key: those are named as variables of the environment.
   */
  readonly defaults: ((models: RuntimeModels) => string) | null;
  /**
   * What the runtime by itself adds to JSON files of the project, a basic regular expression that `sed -z` knows; null:
   * nothing. A file that differs by that alone has no work in it.
   */
  readonly ownEdit: string | null;
  /** One question whether it answers; never waits long, since connections made while it boots can hang. */
  readonly probe: Effect.Effect<void, HttpFailure>;
  /** Hands the prompt over unless an agent session has it already. Asked again after a failure. */
  readonly deliverPrompt: (prompt: InitialPrompt) => Effect.Effect<"accepted" | PromptRefused, HttpFailure>;
  /**
   * Tells the agent something without asking it for a turn, in the agent session of the prompt, unless that has a message
   * already. Asked again after a failure.
   */
  readonly tell: (sessionId: string, text: string) => Effect.Effect<void, HttpFailure>;
  /** Follows the runtime's turns while it runs; fails when it can follow no longer. */
  readonly followTurns: (observer: TurnObserver) => Effect.Effect<never, HttpFailure>;
  /** Whether a turn is in progress now; false where the adapter cannot know. */
  readonly isBusy: Effect.Effect<boolean, HttpFailure>;
  /** Aborts turns in progress; false when there was none. */
  readonly abort: Effect.Effect<boolean, HttpFailure>;
}

/** How long one probe may take. */
export const PROBE_TIMEOUT_MS = 250;
/** How long a call to a running runtime may take. */
export const CALL_TIMEOUT_MS = 10_000;
