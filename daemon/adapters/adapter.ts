/** The port to one kind of agent runtime (api.md 7, PLATFORM_AGENT_ADAPTER). Names what the daemon needs to know of it. */
import type * as Effect from "effect/Effect";
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

/** Is told of the runtime's turns. */
export interface TurnObserver {
  /** Whether any turn is in progress now; told as often as one likes. */
  readonly turn: (active: boolean) => void;
  /** The agent did something just now. */
  readonly activity: () => void;
}

export interface RuntimeAdapter {
  /** Variables of the runtime's environment beyond AGENT_CONFIG_DIR. */
  readonly environment: (paths: RuntimePaths) => Readonly<Record<string, string>>;
  /** Text of the file at `RuntimePaths.defaults`, settings that the project may override; null: none is written. */
  readonly defaults: string | null;
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
