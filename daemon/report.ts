/**
 * The content of `GET /platform/health` (api.md 7). The daemon's parts record their state here. It contains no secret.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import { DAEMON_PROTOCOL } from "../src/domain/sandbox/daemon-protocol.ts";
import { cutText, storableText } from "../src/domain/text.ts";
import {
  TURN_MESSAGE_MAX,
  type ConversationTurn,
  type LastTurn,
  type NumberedTurn,
} from "../src/domain/session/last-turn.ts";
import type { AgentRuntimeState } from "../src/machines/agent-runtime.ts";
import type { Restored } from "../src/domain/save/saved.ts";
import type { Redactor } from "../src/domain/secret/redactor.ts";

/** How a turn ended. `error` is not redacted yet. */
export interface TurnEnd extends Pick<LastTurn, "state" | "error"> {
  /** The daemon ended the turn, or found its end: no item has the error. Absent: an item may have it. */
  readonly isOurs?: true;
}

export type BootStep =
  | "listening"
  | "runtime_started"
  | "credential"
  | "cloned"
  | "runtime_ready"
  | "ready"
  /** The project's setup command has ended. */
  | "setup_ended"
  | "prompt_accepted";

/** How the agent runtime's last process ended. `output` is its last lines. */
export interface RuntimeExit {
  readonly code: number | null;
  readonly signal: string | null;
  readonly at: string;
  readonly output: readonly string[];
}

/** `none`: no initial prompt. `done`: the runtime accepted it, now (`at`) or before this boot (`at` is null). */
export interface BootstrapReport {
  readonly state: "none" | "pending" | "done" | "failed";
  readonly at: string | null;
}

export interface TurnReport {
  /** Null if the adapter cannot know. */
  readonly active: boolean | null;
  /** When the turns in progress began. Null while the agent is idle. */
  readonly active_since: string | null;
  readonly last_activity_at: string | null;
  /** The last turn that ended. Null before the first. */
  readonly last: NumberedTurn | null;
}

export interface HealthReport {
  /** Which requests and answers the daemon knows (src/domain/sandbox/daemon-protocol.ts). */
  readonly protocol: number;
  readonly status: "starting" | "ready" | "degraded" | "error";
  readonly daemon: { readonly version: string; readonly uptime_ms: number };
  readonly runtime: {
    readonly state: AgentRuntimeState;
    readonly pid: number | null;
    readonly restarts: number;
    readonly last_exit: RuntimeExit | null;
  };
  readonly repo: {
    readonly ready: boolean;
    readonly url: string;
    readonly branch: string;
    readonly commit: string | null;
  };
  readonly bootstrap: BootstrapReport;
  /** `wanted`: the boot waits for saved work, which the service delivers. */
  readonly restore: "none" | "wanted" | "running" | "done";
  /** The saved work that this boot brought back. Null if it was not asked to. */
  readonly restored: Restored | null;
  readonly turn: TurnReport;
  /** When a person last typed in a terminal. */
  readonly typed_at: string | null;
  /** Milliseconds since the boot began: with the daemon's process, or with a waiting sandbox's claim. */
  readonly boot: readonly { readonly step: BootStep; readonly at_ms: number }[];
  readonly error: string | null;
}

/** The longest error text in a report. */
const MAX_ERROR_LENGTH = 4096;

export class Report {
  #runtime: HealthReport["runtime"] = { state: "starting", pid: null, restarts: 0, last_exit: null };
  #repo: HealthReport["repo"];
  readonly #served = Deferred.makeUnsafe<void>();
  /** Completes when requests can be passed to the runtime for the first time. */
  readonly whenServed: Effect.Effect<void> = Deferred.await(this.#served);
  bootstrap: BootstrapReport = { state: "none", at: null };
  restore: HealthReport["restore"] = "none";
  restored: Restored | null = null;
  turn: TurnReport = { active: null, active_since: null, last_activity_at: null, last: null };
  /** When a person last typed in a terminal, ISO 8601. */
  typedAt: string | null = null;
  readonly #turnWatchers = new Set<() => void>();
  readonly #bootWatchers = new Set<() => void>();
  readonly #boot: { step: BootStep; at_ms: number }[] = [];
  readonly #errors = new Map<"checkout" | "runtime" | "bootstrap", string>();
  readonly #version: string;
  readonly #redactor: Redactor;
  readonly #bornMs: number;
  readonly #onStep: (step: BootStep, atMs: number) => void;
  #checkoutFailed = false;

  constructor(options: {
    version: string;
    redactor: Redactor;
    repoUrl: string;
    branch: string;
    /** When the boot began, in milliseconds since the daemon's process did. Absent: with it. */
    bornMs?: number;
    /** Called when each boot step is reached, with milliseconds since the boot began. */
    onStep?: (step: BootStep, atMs: number) => void;
  }) {
    this.#onStep = options.onStep ?? (() => undefined);
    this.#bornMs = options.bornMs ?? 0;
    this.#version = options.version;
    this.#redactor = options.redactor;
    this.#repo = { ready: false, url: options.repoUrl, branch: options.branch, commit: null };
  }

  get runtime(): HealthReport["runtime"] {
    return this.#runtime;
  }

  setRuntime(change: Partial<HealthReport["runtime"]>): void {
    this.#runtime = { ...this.#runtime, ...change };
    this.#noteChange();
  }

  setRepo(change: Partial<HealthReport["repo"]>): void {
    this.#repo = { ...this.#repo, ...change };
    this.#noteChange();
  }

  /** Records that a boot step was reached. A step counts once. */
  reached(step: BootStep): void {
    if (this.#boot.some((entry) => entry.step === step)) return;
    const atMs = Math.round(performance.now() - this.#bornMs);
    this.#boot.push({ step, at_ms: atMs });
    this.#onStep(step, atMs);
  }

  /** Records how a turn ended. @returns the reported form: redacted and bounded. */
  endTurn({ state, error }: TurnEnd, at: string, conversation: ConversationTurn | null = null): NumberedTurn {
    const failure =
      error === null
        ? null
        : {
            code: error.code,
            message: cutText(this.#redactor.redact(storableText(error.message)), TURN_MESSAGE_MAX),
          };
    const last = { number: (this.turn.last?.number ?? 0) + 1, state, error: failure, at, conversation };
    this.turn = { ...this.turn, last };
    for (const look of this.#turnWatchers) look();
    return last;
  }

  /** Calls back once, as soon as a turn after this number has ended. @returns a function that cancels it. */
  whenTurnEnded(after: number, tell: () => void): () => void {
    const stop = () => void this.#turnWatchers.delete(look);
    const look = (): void => {
      if ((this.turn.last?.number ?? 0) <= after) return;
      stop();
      tell();
    };
    this.#turnWatchers.add(look);
    look();
    return stop;
  }

  /**
   * Calls back once, as soon as the boot is over or something has gone wrong. @returns a function that cancels it.
   */
  whenBootTold(tell: () => void): () => void {
    const stop = () => void this.#bootWatchers.delete(look);
    const look = (): void => {
      if (this.#status() === "starting" && this.#errors.size === 0) return;
      stop();
      tell();
    };
    this.#bootWatchers.add(look);
    look();
    return stop;
  }

  /** Sets or clears the error of one part. */
  setError(part: "checkout" | "runtime" | "bootstrap", message: string | null): void {
    if (message === null) this.#errors.delete(part);
    else this.#errors.set(part, cutText(this.#redactor.redact(storableText(message)), MAX_ERROR_LENGTH));
    this.#noteChange();
  }

  /** The checkout is given up: this sandbox makes no further attempt. */
  giveUpCheckout(): void {
    this.#checkoutFailed = true;
    this.#noteChange();
  }

  /** The state of the first checkout. */
  get checkout(): "running" | "done" | "failed" {
    if (this.#repo.ready) return "done";
    return this.#checkoutFailed ? "failed" : "running";
  }

  /** Whether requests may be passed to the agent runtime: it answers, and its project is checked out. */
  get serving(): boolean {
    return this.#repo.ready && this.#runtime.state === "ready";
  }

  health(): HealthReport {
    return {
      protocol: DAEMON_PROTOCOL,
      status: this.#status(),
      daemon: { version: this.#version, uptime_ms: Math.round(performance.now()) },
      runtime: this.#runtime,
      repo: this.#repo,
      bootstrap: this.bootstrap,
      restore: this.restore,
      restored: this.restored,
      turn: this.turn,
      typed_at: this.typedAt,
      boot: this.#boot,
      error: [...this.#errors.values()].join("; ") || null,
    };
  }

  #noteChange(): void {
    if (this.serving) {
      this.reached("ready");
      Deferred.doneUnsafe(this.#served, Effect.void);
    }
    for (const look of this.#bootWatchers) look();
  }

  #status(): HealthReport["status"] {
    if (this.#checkoutFailed || this.#runtime.state === "failed") return "error";
    if (this.serving) return this.#errors.size > 0 ? "degraded" : "ready";
    return this.#boot.some(({ step }) => step === "ready") ? "degraded" : "starting";
  }
}
