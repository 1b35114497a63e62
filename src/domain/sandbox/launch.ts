/**
 * Settings that a sandbox provider passes to the daemon in addition to the injected environment (api.md 8: launch
 * settings are outside the environment's golden). The provider writes one JSON file that only the daemon's user may
 * read. The daemon reads it once and removes it. Project secrets travel here, so that neither PID 1 nor the daemon
 * carries them in its own environment (spec 2.5, issue rule "secrets go to the agent runtime").
 */
import * as Schema from "effect/Schema";
import {
  AGENT_ADAPTERS,
  type AddedStart,
  type AgentAdapter,
  PERMISSIONS,
  type Permissions,
} from "../runtimes/runtime.ts";
import { PROVIDER_KINDS, PROVIDER_OWNERS } from "./account-provider.ts";
import { History } from "../conversation/history.ts";

/** The path of the launch settings inside every sandbox, for every provider. */
export const LAUNCH_FILE = "/run/platform/launch.json";
/** The unix socket on which the daemon also listens. Providers without a network bind it into the sandbox. */
export const DAEMON_SOCKET = "/run/platform/d.sock";
/**
 * A directory that the daemon's user writes and the agent's user can only read (for example, the current clone
 * credential). The agent sees nothing else below /run/platform, with every provider.
 */
export const AGENT_READABLE_DIR = "/run/platform/agent";
/** The forwarder to the service's egress proxy listens here (api.md 8). */
export const FORWARDER_PORT = 3128;

const FORWARDER = `http://127.0.0.1:${FORWARDER_PORT}`;
const NOT_FORWARDED = "127.0.0.1,localhost";

/** A JVM reads no variable of the others. It separates hosts by a bar. */
const JAVA_PROXY = [
  ...["http", "https"].flatMap((scheme) => [
    `-D${scheme}.proxyHost=127.0.0.1`,
    `-D${scheme}.proxyPort=${FORWARDER_PORT}`,
  ]),
  `-Dhttp.nonProxyHosts=${NOT_FORWARDED.replaceAll(",", "|")}`,
].join(" ");

/** How programs of a sandbox find the forwarder. Both cases, because programs differ in which one they read. */
export const PROXY_VARIABLES: Readonly<Record<string, string>> = {
  HTTP_PROXY: FORWARDER,
  HTTPS_PROXY: FORWARDER,
  NO_PROXY: NOT_FORWARDED,
  http_proxy: FORWARDER,
  https_proxy: FORWARDER,
  no_proxy: NOT_FORWARDED,
  // Yarn 2 and later reads its own variables alone.
  YARN_HTTP_PROXY: FORWARDER,
  YARN_HTTPS_PROXY: FORWARDER,
  // Node's own fetch and http, from version 24 on.
  NODE_USE_ENV_PROXY: "1",
  JAVA_TOOL_OPTIONS: JAVA_PROXY,
};
/** The agent runtime's port, on 127.0.0.1 (spec 4.5). */
export const RUNTIME_PORT = 4096;
/** The daemon's port (spec 8; PLATFORM_SERVICE_PORT). */
export const SERVICE_PORT = 8000;

/** An agent with which a turn goes on if the model before it refuses (agents/fallback.ts). */
export const LaunchFallback = Schema.Struct({
  /** The agent's. */
  name: Schema.String,
  /** The runtime's name of its model. */
  model: Schema.String,
  /** If null, the present mode stays. */
  mode: Schema.NullOr(Schema.String),
  /** Absent: the present effort stays. */
  effort: Schema.optionalKey(Schema.String),
});
export type LaunchFallback = typeof LaunchFallback.Type;

/** The own subscription of a session's person (../agents/subscription.ts), for its runtime alone. */
const LaunchSubscription = Schema.Struct({
  /** For people. */
  title: Schema.String,
  /** A secret. */
  content: Schema.String,
  /** Where the runtime finds the content: in a variable, or in a file below the home directory. */
  variable: Schema.NullOr(Schema.String),
  file: Schema.NullOr(Schema.String),
  /** The runtime renews the file. */
  isRenewed: Schema.Boolean,
  /** Files below the home directory that are removed with it. */
  traces: Schema.Array(Schema.String),
  /** The agent's variables and files while its runtime has the subscription, in place of the others. */
  variables: Schema.Record(Schema.String, Schema.String),
  files: Schema.Record(Schema.String, Schema.String),
});
export type LaunchSubscription = typeof LaunchSubscription.Type;

/** The mode in which a runtime plans: a turn in it ends with a plan, which a person approves. */
const LaunchPlan = Schema.Struct({
  mode: Schema.String,
  /** The modes in which an approved plan may be carried out, the usual one first. Empty: the runtime's own. */
  next: Schema.Array(Schema.String),
});
export type LaunchPlan = typeof LaunchPlan.Type;

/** What the manifest says of a session's agent, for its runtime. */
export const LaunchAgent = Schema.Struct({
  /** The runtime's way of working. Null means its own. */
  mode: Schema.NullOr(Schema.String),
  /** A file of the checkout. Null means the agent's own in the config directory, if there is one. */
  instructions: Schema.NullOr(Schema.String),
  /** Variables of the runtime that depend on the session. */
  variables: Schema.Record(Schema.String, Schema.String),
  /** Files of the runtime in `AGENT_READABLE_DIR`, by their names. Absent: none. */
  files: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  /** The account's provider whose models the runtime knows by their ids alone. Absent: none. */
  provider: Schema.optionalKey(Schema.String),
  /** How hard the model thinks. Absent: the model's own. */
  effort: Schema.optionalKey(Schema.String),
  /** The first to try first. Absent: none. */
  fallback: Schema.optionalKey(Schema.Array(LaunchFallback)),
  /** Absent: none. */
  subscription: Schema.optionalKey(LaunchSubscription),
});
export type LaunchAgent = typeof LaunchAgent.Type;

/** Where a runtime keeps its own record of a conversation (runtimes/history.ts). */
export const LaunchHistory = Schema.Struct({
  /** The runtime's name. */
  runtime: Schema.String,
  files: Schema.Array(Schema.String),
});
export type LaunchHistory = typeof LaunchHistory.Type;

/** What starts an agent runtime. It is the same for all sessions of an agent. */
export interface LaunchRuntime {
  readonly adapter: AgentAdapter;
  readonly command: readonly string[];
  /** Beyond those of the adapter. Secrets of the project win over those of the same name. */
  readonly variables: Readonly<Record<string, string>>;
  /** Whether a person is asked before commands and changes. If null, the runtime decides. */
  readonly permissions: Permissions | null;
  /** Whether it is told by its protocol which servers have tools. Absent: it is not. */
  readonly takesServers?: boolean;
  /** PlanMode.asks (runtimes/runtime.ts). Absent: it has none. */
  readonly planTitle?: string;
  /** Absent: it has no mode that plans. */
  readonly plan?: LaunchPlan;
  /** Absent: where it keeps its record of a conversation is not known. */
  readonly history?: LaunchHistory;
  /** Its start on a node to which an operator has added it. Absent: its program is on the PATH. */
  readonly packaged?: {
    /** The runtime's name. */
    readonly name: string;
    /** Null if only the files on the node say it, and no program on the PATH is the same one. */
    readonly start: AddedStart | null;
  };
}

export const LaunchSettings = Schema.Struct({
  /**
   * Arguments placed before every command that runs as the agent (the runtime, git after the first checkout). They
   * change the user or pid namespace and drop every privilege. `[]` if the provider isolates in another way.
   */
  prefix: Schema.Array(Schema.String),
  /** Starts the agent runtime, e.g. `["opencode", "serve", "--hostname", "127.0.0.1", "--port", "4096"]`. */
  agentCommand: Schema.Array(Schema.String),
  adapter: Schema.Literals(AGENT_ADAPTERS),
  /** The runtime's variables (`LaunchRuntime`). Absent: none. */
  runtimeVariables: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  /** Whether a person is asked before commands and changes. Absent: the runtime decides. */
  permissions: Schema.optionalKey(Schema.Literals(PERMISSIONS)),
  /** Whether the runtime is told by its protocol where the gateway to tools is. Absent: it is not. */
  takesServers: Schema.optionalKey(Schema.Boolean),
  /** The title of a request to carry out a plan that is in a file, up to the file. Absent: the runtime has no such requests. */
  planTitle: Schema.optionalKey(Schema.String),
  /** Nothing is permitted in its mode without a person. Absent: the runtime has no mode that plans. */
  plan: Schema.optionalKey(LaunchPlan),
  /** Where the runtime keeps its own record of the conversation. Absent: not known. */
  history: Schema.optionalKey(LaunchHistory),
  /** Absent: no table of the manifest defines the agent, or a claim brings it. */
  agent: Schema.optionalKey(LaunchAgent),
  /** Default models by provider (domain/sandbox/model.ts), including the managed gateway's. */
  models: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  /** The providers of models that the session uses (account-provider.ts). Absent: none. */
  providers: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        owner: Schema.Literals(PROVIDER_OWNERS),
        name: Schema.String,
        kind: Schema.Literals(PROVIDER_KINDS),
        models: Schema.Array(Schema.String),
      }),
    ),
  ),
  /** Limits on a turn whose model keeps failing, if they differ from the daemon's own (daemon/adapters/adapter.ts). */
  turnLimits: Schema.optionalKey(
    Schema.Struct({
      tries: Schema.optionalKey(Schema.Finite),
      tryingMs: Schema.optionalKey(Schema.Finite),
      modelCalls: Schema.optionalKey(Schema.Finite),
      idleCalls: Schema.optionalKey(Schema.Finite),
      turnMs: Schema.optionalKey(Schema.Finite),
      modelSilenceMs: Schema.optionalKey(Schema.Finite),
      silentMs: Schema.optionalKey(Schema.Finite),
    }),
  ),
  /** Variables that the image and then the project's devcontainer.json set. Everything else overrides them. Absent: none. */
  imageEnv: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  /** The image's own variables, from a provider that cannot read the image. `imageEnv` overrides them. Absent: none. */
  imageEnvironment: Schema.optionalKey(
    Schema.Struct({
      /** A file with the environment of a program in the image: `NAME=value`, each ended by NUL. */
      file: Schema.String,
      /** The platform's search paths before and behind the image's PATH. */
      pathBefore: Schema.String,
      pathAfter: Schema.String,
    }),
  ),
  /**
   * The injected environment, from a provider that keeps it out of the environment of PID 1. Absent: it is in the daemon's
   * own environment.
   */
  environment: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  /** The environment of the agent runtime alone: project secrets by name. */
  agentEnv: Schema.Record(Schema.String, Schema.String),
  /**
   * PATH of the agent runtime and its children. It replaces the common PATH, by which the daemon finds its own
   * programs.
   */
  agentPath: Schema.optionalKey(Schema.String),
  /** The environment that daemon and agent share: proxies, PATH, HOME. */
  commonEnv: Schema.Record(Schema.String, Schema.String),
  /** The addresses at which package managers of the agent find registries, if nothing else tells them. Absent: their own. */
  packages: Schema.optionalKey(
    Schema.Struct({ npm: Schema.NullOr(Schema.String), pypi: Schema.NullOr(Schema.String) }),
  ),
  /** The commit of the work that a former sandbox of the session saved, if there is any. Empty: it is made when somebody fetches it. */
  wip: Schema.optionalKey(Schema.String),
  /** What that work lacks, as sentences for the agent. Absent: nothing, as far as is known. */
  wipLacks: Schema.optionalKey(Schema.String),
  /** Whether that work is brought back into the checkout. Absent: it is not. */
  restore: Schema.optionalKey(Schema.Boolean),
  /** The conversation with former sandboxes of the session, and up to its beginning from another one. Absent without one. */
  recap: Schema.optionalKey(
    Schema.Struct({
      /** The name of the session from which this one begins. Absent: it had a sandbox before, or begins with a branch. */
      begun: Schema.optionalKey(Schema.String),
      /** A summary, for a runtime that cannot get the conversation itself. At most `RECAP_MAX` bytes (recap.ts). */
      text: Schema.String,
      /** The conversation itself. Absent if there is nothing to restore. */
      history: Schema.optionalKey(History),
      /** The agent and the `provider/model` that a person chose last. Null means those of the session. */
      agent: Schema.NullOr(Schema.String),
      model: Schema.NullOr(Schema.String),
      /** The effort that a person chose last. Absent: that of the session. */
      effort: Schema.optionalKey(Schema.String),
    }),
  ),
  /**
   * The sandbox has no session yet: it starts the agent runtime and waits for a claim. Until then, signed contexts name
   * this id in place of a session. Absent: it has its session.
   */
  standby: Schema.optionalKey(Schema.String),
  /** The runtime is told where the gateway to tools is. Absent: it is not. */
  hasConnectors: Schema.optionalKey(Schema.Boolean),
  /**
   * Milliseconds without contact from the service after which the sandbox ends itself. Without it, the sandbox never
   * does.
   */
  orphanMs: Schema.optionalKey(Schema.Finite),
  /** How long the project's setup command may run, ms. Absent: the daemon's default. */
  setupTimeoutMs: Schema.optionalKey(Schema.Finite),
  /** Milliseconds from the daemon's start after which a clone is no longer retried. */
  bootDeadlineMs: Schema.Finite,
});
export type LaunchSettings = typeof LaunchSettings.Type;

/** The launch settings of a runtime and its agent, for every provider. */
export const launchedRuntime = (
  { adapter, command, variables, permissions, takesServers, planTitle, plan, history }: LaunchRuntime,
  agent: LaunchAgent | null,
): Pick<
  LaunchSettings,
  | "agentCommand"
  | "adapter"
  | "runtimeVariables"
  | "permissions"
  | "takesServers"
  | "planTitle"
  | "plan"
  | "history"
  | "agent"
> => ({
  agentCommand: command,
  adapter,
  ...(Object.keys(variables).length > 0 && { runtimeVariables: variables }),
  ...(permissions !== null && { permissions }),
  ...(takesServers !== undefined && { takesServers }),
  ...(planTitle !== undefined && { planTitle }),
  ...(plan !== undefined && { plan }),
  ...(history !== undefined && { history }),
  ...(agent !== null && { agent }),
});

/** The limits on a turn that an operator sets. */
export type OperatorTurnLimits = Required<
  Pick<NonNullable<LaunchSettings["turnLimits"]>, "turnMs" | "modelSilenceMs">
>;

/** What the agent's git gets to the session's repository: the answer of `GET …/git/clone-credential` (api.md 7). */
export const GitCredential = Schema.Struct({
  repo_url: Schema.NonEmptyString,
  auth: Schema.Struct({
    type: Schema.Literal("basic"),
    username: Schema.NonEmptyString,
    password: Schema.NonEmptyString,
  }),
  expires_at: Schema.NonEmptyString,
  /** `done`: the initial prompt was accepted in an earlier boot. */
  bootstrap: Schema.Literals(["pending", "done"]),
});
export type GitCredential = typeof GitCredential.Type;

/** What a waiting sandbox gets with its session: the body of `POST /platform/claim` (api.md 7). */
export const Claim = Schema.Struct({
  session_id: Schema.String,
  /** The injected variables that a session brings (domain/sandbox/environment.ts). */
  environment: Schema.Record(Schema.String, Schema.String),
  wip: LaunchSettings.fields.wip,
  wip_lacks: LaunchSettings.fields.wipLacks,
  restore: LaunchSettings.fields.restore,
  recap: LaunchSettings.fields.recap,
  agent: LaunchSettings.fields.agent,
  /** Where the session branch is. A sandbox that was prepared with this commit does not fetch. Absent: unknown. */
  branch_commit: Schema.optionalKey(Schema.String),
  /** The first credential. Absent: the sandbox asks for one. */
  credential: Schema.optionalKey(GitCredential),
  /** Counted from the claim. */
  boot_deadline_ms: LaunchSettings.fields.bootDeadlineMs,
});
export type Claim = typeof Claim.Type;
export type Recap = NonNullable<LaunchSettings["recap"]>;
