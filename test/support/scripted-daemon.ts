/** The daemon of every simulated sandbox, as a test wants it to answer. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
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

export interface DaemonScript {
  readonly layer: Layer.Layer<DaemonClient>;
  /** From now on every daemon answers so. */
  readonly become: (mood: DaemonMood) => void;
}

export const scriptedDaemon = (): DaemonScript => {
  let mood: DaemonMood = "ready";
  return {
    layer: Layer.succeed(DaemonClient, { health: () => Effect.suspend(() => answerOf(mood)) }),
    become: (next) => {
      mood = next;
    },
  };
};
