/**
 * What a sandbox provider tells the daemon beside the injected environment (api.md 8: launch settings are outside
 * the environment's golden). The provider writes one JSON file that only the daemon's user may read; the daemon
 * reads it once and removes it. Project secrets travel here, so that neither PID 1 nor the daemon carries them in
 * its own environment (spec.md 2.5).
 */
import * as Schema from "effect/Schema";

/** Where the daemon finds its launch settings inside every sandbox, whatever the provider. */
export const LAUNCH_FILE = "/run/platform/launch.json";
/** The unix socket on which the daemon also listens, bound into the sandbox by providers without a network. */
export const DAEMON_SOCKET = "/run/platform/d.sock";
/**
 * A directory that the daemon's user writes and the agent's user only reads (the current clone credential, for one).
 * Nothing else below /run/platform is visible or readable to the agent, whatever the provider.
 */
export const AGENT_READABLE_DIR = "/run/platform/agent";
/** The forwarder to the service's egress proxy listens here (api.md 8). */
export const FORWARDER_PORT = 3128;
/** The agent runtime's port, on 127.0.0.1 (spec 4.5). */
export const RUNTIME_PORT = 4096;
/** The daemon's port (spec 8; PLATFORM_SERVICE_PORT). */
export const SERVICE_PORT = 8000;

export const LaunchSettings = Schema.Struct({
  /**
   * Arguments put before every command that runs as the agent (the runtime, git after the first checkout): they
   * change user or pid namespace and drop every privilege. `[]` where the provider isolates in another way.
   */
  prefix: Schema.Array(Schema.String),
  /** Starts the agent runtime, e.g. `["opencode", "serve", "--hostname", "127.0.0.1", "--port", "4096"]`. */
  agentCommand: Schema.Array(Schema.String),
  /** Which adapter drives the runtime (PLATFORM_AGENT_ADAPTER). */
  adapter: Schema.Literals(["opencode", "plain"]),
  /** Models by provider that are used where nobody names one (domain/model.ts), the managed gateway's among them. */
  models: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  /** How far a failing model may take a turn, where that is not the daemon's own limits (daemon/adapters/adapter.ts). */
  turnLimits: Schema.optionalKey(
    Schema.Struct({
      tries: Schema.optionalKey(Schema.Finite),
      tryingMs: Schema.optionalKey(Schema.Finite),
      modelCalls: Schema.optionalKey(Schema.Finite),
    }),
  ),
  /** Environment of the agent runtime alone: project secrets by name. */
  agentEnv: Schema.Record(Schema.String, Schema.String),
  /** PATH of the agent runtime and what it starts, in place of the common one, by which the daemon finds its own programs. */
  agentPath: Schema.optionalKey(Schema.String),
  /** Environment of daemon and agent: proxies, PATH, HOME. */
  commonEnv: Schema.Record(Schema.String, Schema.String),
  /** Commit on refs/wip/<session> of what a former sandbox of the session saved, where there is one. */
  wip: Schema.optionalKey(Schema.String),
  /** Milliseconds of its service's silence after which the sandbox stops; absent: it never does. */
  orphanMs: Schema.optionalKey(Schema.Finite),
  /** Milliseconds from the daemon's start until a clone is no longer retried. */
  bootDeadlineMs: Schema.Finite,
});
export type LaunchSettings = typeof LaunchSettings.Type;
