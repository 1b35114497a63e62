/** The daemon of every simulated sandbox, with the answers that a test chooses. */
import * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import * as Latch from "effect/Latch";
import * as Layer from "effect/Layer";
import * as Queue from "effect/Queue";
import * as Stream from "effect/Stream";
import type { ConversationReport } from "../../../../src/domain/conversation/conversation.ts";
import { NOTHING_TO_SAVE, notSaved, type Saved } from "../../../../src/domain/save/saved.ts";
import type { LogLine } from "../../../../src/domain/session/log-line.ts";
import {
  DaemonClient,
  DaemonUnreachable,
  type DaemonHealth,
  type EnvironmentChange,
} from "../../../../src/sandbox/daemon.ts";
import { emptySaving, emptyWorkspace } from "../../../../src/sandbox/daemon-simulated.ts";
import { ScriptedSteering } from "./scripted-steering.ts";

const ready: DaemonHealth = {
  status: "ready",
  runtime: { state: "ready" },
  repo: { ready: true, branch: null, commit: null },
  protocol: 3,
  bootstrap: { state: "done" },
  turn: { active: null, active_since: null, last_activity_at: null },
  boot: [],
  error: null,
};

export type DaemonMood =
  /** Ready at once, with its prompt accepted. */
  | "ready"
  /** The same during a turn. */
  | "busy"
  /** Answers, but never finishes its clone. */
  | "cloning"
  /** Does not answer. */
  | "unreachable"
  /** Reports a permanent failure with this sentence. */
  | { readonly failed: string };

const answerOf = (mood: DaemonMood): Effect.Effect<DaemonHealth, DaemonUnreachable> => {
  if (mood === "ready") return Effect.succeed(ready);
  if (mood === "busy") return Effect.succeed({ ...ready, turn: { ...ready.turn, active: true } });
  if (mood === "unreachable") return Effect.fail(new DaemonUnreachable({ message: "nothing listens" }));
  const repo = { ready: false, branch: null, commit: null };
  const starting = { ...ready, repo, status: "starting" as const, runtime: { state: "starting" as const } };
  return Effect.succeed(
    mood === "cloning" ? starting : { ...starting, status: "error" as const, error: mood.failed },
  );
};

/** Every daemon's log, as a stream. */
export class ScriptedLog {
  readonly #lines: LogLine[] = [];
  readonly #streams = new Set<Queue.Queue<LogLine, DaemonUnreachable>>();
  /** How many readers follow it now. */
  get followers(): number {
    return this.#streams.size;
  }

  /** Adds a line. */
  say(line: LogLine): void {
    this.#lines.push(line);
    for (const stream of this.#streams) Queue.offerUnsafe(stream, line);
  }

  /** Every daemon hangs up, and its log is empty. */
  forget(): void {
    this.#lines.length = 0;
    const failure = new DaemonUnreachable({ message: "the daemon closed the connection" });
    for (const stream of this.#streams) Queue.failCauseUnsafe(stream, Cause.fail(failure));
  }

  stream(after: number): Stream.Stream<LogLine, DaemonUnreachable> {
    const opened = Effect.acquireRelease(
      Effect.map(Queue.unbounded<LogLine, DaemonUnreachable>(), (queue) => {
        for (const line of this.#lines) if (line.seq > after) Queue.offerUnsafe(queue, line);
        this.#streams.add(queue);
        return queue;
      }),
      (queue) => Effect.sync(() => this.#streams.delete(queue)),
    );
    return Stream.unwrap(Effect.map(opened, Stream.fromQueue));
  }
}

/** The conversation in each session's sandbox, as a stream of reports. */
export class ScriptedConversation {
  readonly #lines = new Map<string, ConversationReport[]>();
  readonly #streams = new Map<string, Set<Queue.Queue<ConversationReport, DaemonUnreachable>>>();

  /** How many readers follow the session's conversation now. */
  followers(sessionId: string): number {
    return this.#streams.get(sessionId)?.size ?? 0;
  }

  /** Reports these lines. A reader that comes later gets the items and turns of them, without the deltas. */
  say(sessionId: string, ...lines: readonly ConversationReport[]): void {
    this.#lines.set(sessionId, [...(this.#lines.get(sessionId) ?? []), ...lines]);
    for (const stream of this.#streams.get(sessionId) ?? []) Queue.offerAllUnsafe(stream, lines);
  }

  stream(context: string, after: number): Stream.Stream<ConversationReport, DaemonUnreachable> {
    const sessionId = sessionOf(context);
    const isNews = (line: ConversationReport) =>
      (line.type === "item" && line.item.rev > after) || (line.type === "turn" && line.rev > after);
    const opened = Effect.acquireRelease(
      Effect.map(Queue.unbounded<ConversationReport, DaemonUnreachable>(), (queue) => {
        Queue.offerAllUnsafe(queue, (this.#lines.get(sessionId) ?? []).filter(isNews));
        this.#streams.set(sessionId, (this.#streams.get(sessionId) ?? new Set()).add(queue));
        return queue;
      }),
      (queue) => Effect.sync(() => this.#streams.get(sessionId)?.delete(queue)),
    );
    return Stream.unwrap(Effect.map(opened, Stream.fromQueue));
  }
}

/** The session that a signed user context names. */
const sessionOf = (context: string): string => {
  const [payload = ""] = context.split(".");
  const { session_id: id } = JSON.parse(Buffer.from(payload, "base64url").toString()) as {
    session_id: string;
  };
  return id;
};

/** One `env` call to a daemon, accepted or not. */
export interface AskedEnv extends EnvironmentChange {
  readonly context: string;
}

export interface DaemonScript {
  readonly log: ScriptedLog;
  readonly conversation: ScriptedConversation;
  readonly steering: ScriptedSteering;
  readonly layer: Layer.Layer<DaemonClient>;
  /** From now on, every daemon behaves this way. */
  readonly become: (mood: DaemonMood) => void;
  /** How often health was requested. */
  readonly asked: () => number;
  /** How the work in each of their sandboxes is saved. */
  readonly save: Effect.Effect<Saved>;
  /** While it is closed, saves wait. */
  readonly saves: Latch.Latch;
  /** How many saves wait. */
  readonly saving: () => number;
  /** Changes of the environment, oldest first. */
  readonly envs: readonly AskedEnv[];
  /** Why subscriptions were withdrawn, oldest first. A daemon that is not ready does not answer. */
  readonly withdrawals: readonly string[];
  /** Begins `envs` anew. */
  readonly forgetEnvs: () => void;
  /** The daemon accepts this many changes, but their answers are lost. */
  readonly loseAnswers: (count: number) => void;
}

export const scriptedDaemon = (): DaemonScript => {
  let mood: DaemonMood = "ready";
  let lost = 0;
  let asked = 0;
  let saving = 0;
  const saves = Latch.makeUnsafe(true);
  const envs: AskedEnv[] = [];
  const withdrawals: string[] = [];
  const env = (context: string, change: EnvironmentChange) =>
    Effect.suspend(() => {
      envs.push({ ...change, context });
      if (lost === 0) {
        const changed = Object.keys(change.env);
        return Effect.succeed({
          changed,
          revision: change.revision,
          restarted: true,
          turn_interrupted: false,
        });
      }
      lost -= 1;
      return Effect.fail(new DaemonUnreachable({ message: "the answer was lost" }));
    });
  const log = new ScriptedLog();
  const conversation = new ScriptedConversation();
  const steering = new ScriptedSteering();
  return {
    layer: Layer.succeed(DaemonClient, {
      prepare: () => Effect.void,
      claim: () => Effect.void,
      health: () =>
        Effect.suspend(() => {
          asked += 1;
          return answerOf(mood);
        }),
      env: (_link, context, change) => env(context, change),
      turn: () => Effect.never,
      logs: (_, { after }) => log.stream(after),
      conversation: (_, { context, after }) => conversation.stream(context, after),
      ...steering.layer,
      output: () => Effect.succeed(null),
      ports: () => Effect.succeed([3000]),
      withdraw: (_link, _context, reason) =>
        Effect.suspend(() => Effect.map(answerOf(mood), () => void withdrawals.push(reason))),
      workspace: emptyWorkspace,
      abort: () => Effect.as(answerOf(mood), mood === "busy"),
      goOn: () => Effect.void,
      saveByPush: () => Effect.succeed({ wip: null, skipped: [], error: null }),
      saving: emptySaving,
    }),
    save: Effect.suspend(() => {
      saving += 1;
      return Effect.ensuring(
        saves.await,
        Effect.sync(() => (saving -= 1)),
      );
    }).pipe(
      Effect.andThen(Effect.suspend(() => answerOf(mood))),
      Effect.as(NOTHING_TO_SAVE),
      Effect.catch(({ message }) => Effect.succeed(notSaved(message))),
    ),
    log,
    conversation,
    steering,
    become: (next) => {
      mood = next;
    },
    asked: () => asked,
    saves,
    saving: () => saving,
    envs,
    withdrawals,
    forgetEnvs: () => void envs.splice(0),
    loseAnswers: (count) => {
      lost = count;
    },
  };
};
