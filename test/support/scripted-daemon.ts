/** The daemon of every simulated sandbox, as a test wants it to answer. */
import * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Queue from "effect/Queue";
import * as Stream from "effect/Stream";
import type { LogLine } from "../../src/domain/log-line.ts";
import { DaemonClient, DaemonUnreachable, type DaemonHealth } from "../../src/sandbox/daemon.ts";

const ready: DaemonHealth = {
  status: "ready",
  runtime: { state: "ready" },
  repo: { ready: true, branch: null, commit: null },
  bootstrap: { state: "done" },
  turn: { active: null, active_since: null, last_activity_at: null },
  boot: [],
  error: null,
};

export type DaemonMood =
  /** Up at once, its prompt taken. */
  | "ready"
  /** Answers, and never gets further than its clone. */
  | "cloning"
  /** Nothing answers. */
  | "unreachable"
  /** Says that it has given up, with this sentence. */
  | { readonly failed: string };

const answerOf = (mood: DaemonMood): Effect.Effect<DaemonHealth, DaemonUnreachable> => {
  if (mood === "ready") return Effect.succeed(ready);
  if (mood === "unreachable") return Effect.fail(new DaemonUnreachable({ message: "nothing listens" }));
  const repo = { ready: false, branch: null, commit: null };
  const starting = { ...ready, repo, status: "starting" as const, runtime: { state: "starting" as const } };
  return Effect.succeed(
    mood === "cloning" ? starting : { ...starting, status: "error" as const, error: mood.failed },
  );
};

/** What every daemon's log says, while it can be followed. */
export class ScriptedLog {
  readonly #lines: LogLine[] = [];
  readonly #streams = new Set<Queue.Queue<LogLine, DaemonUnreachable>>();
  /** How many follow it now. */
  get followers(): number {
    return this.#streams.size;
  }

  /** One more line. */
  say(line: LogLine): void {
    this.#lines.push(line);
    for (const stream of this.#streams) Queue.offerUnsafe(stream, line);
  }

  /** Every daemon hangs up, and has said nothing. */
  forget(): void {
    this.#lines.length = 0;
    const failure = new DaemonUnreachable({ message: "the daemon hung up" });
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

export interface DaemonScript {
  readonly log: ScriptedLog;
  readonly layer: Layer.Layer<DaemonClient>;
  /** From now on every daemon answers so. */
  readonly become: (mood: DaemonMood) => void;
}

export const scriptedDaemon = (): DaemonScript => {
  let mood: DaemonMood = "ready";
  const log = new ScriptedLog();
  return {
    layer: Layer.succeed(DaemonClient, {
      health: () => Effect.suspend(() => answerOf(mood)),
      logs: (_, { after }) => log.stream(after),
    }),
    log,
    become: (next) => {
      mood = next;
    },
  };
};
