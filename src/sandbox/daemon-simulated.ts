/** The twin of the daemon's control surface: every daemon is healthy at once and has taken its prompt. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { DaemonClient, type DaemonHealth } from "./daemon.ts";

const HEALTHY: DaemonHealth = {
  status: "ready",
  runtime: { state: "ready" },
  repo: { ready: true, branch: null, commit: null },
  turn: { active: false },
  bootstrap: { state: "done" },
  boot: [],
  error: null,
};

export const simulatedDaemon = Layer.succeed(DaemonClient, {
  health: () => Effect.succeed(HEALTHY),
  env: (_link, _context, { revision, env }) =>
    Effect.succeed({ changed: Object.keys(env), revision, restarted: true, turn_interrupted: false }),
});
