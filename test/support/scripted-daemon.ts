/** The daemon of every simulated sandbox, as a test wants it to answer. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import {
  DaemonClient,
  DaemonUnreachable,
  type DaemonHealth,
  type EnvironmentChange,
} from "../../src/sandbox/daemon.ts";

const ready: DaemonHealth = {
  status: "ready",
  runtime: { state: "ready" },
  repo: { ready: true, branch: null, commit: null },
  turn: { active: false },
  bootstrap: { state: "done" },
  boot: [],
  error: null,
};

export type DaemonMood =
  /** Up at once, its prompt taken. */
  | "ready"
  /** The same in the middle of a turn. */
  | "busy"
  /** Answers, and never gets further than its clone. */
  | "cloning"
  /** Nothing answers. */
  | "unreachable"
  /** Says that it has given up, with this sentence. */
  | { readonly failed: string };

const answerOf = (mood: DaemonMood): Effect.Effect<DaemonHealth, DaemonUnreachable> => {
  if (mood === "ready") return Effect.succeed(ready);
  if (mood === "busy") return Effect.succeed({ ...ready, turn: { active: true } });
  if (mood === "unreachable") return Effect.fail(new DaemonUnreachable({ message: "nothing listens" }));
  const repo = { ready: false, branch: null, commit: null };
  const starting = { ...ready, repo, status: "starting" as const, runtime: { state: "starting" as const } };
  return Effect.succeed(
    mood === "cloning" ? starting : { ...starting, status: "error" as const, error: mood.failed },
  );
};

/** One `env` that a daemon was asked for, whether it took it or not. */
export interface AskedEnv extends EnvironmentChange {
  readonly context: string;
}

export interface DaemonScript {
  readonly layer: Layer.Layer<DaemonClient>;
  /** From now on every daemon answers so. */
  readonly become: (mood: DaemonMood) => void;
  /** How often health was asked for. */
  readonly asked: () => number;
  /** Changes of the environment, oldest first. */
  readonly envs: readonly AskedEnv[];
  /** This many changes are taken by the daemon, and their answers lost. */
  readonly loseAnswers: (count: number) => void;
}

export const scriptedDaemon = (): DaemonScript => {
  let mood: DaemonMood = "ready";
  let lost = 0;
  let asked = 0;
  const envs: AskedEnv[] = [];
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
  return {
    layer: Layer.succeed(DaemonClient, {
      health: () =>
        Effect.suspend(() => {
          asked += 1;
          return answerOf(mood);
        }),
      env: (_link, context, change) => env(context, change),
    }),
    become: (next) => {
      mood = next;
    },
    asked: () => asked,
    envs,
    loseAnswers: (count) => {
      lost = count;
    },
  };
};
