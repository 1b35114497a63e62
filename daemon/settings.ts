/**
 * The daemon's settings: the injected environment (spec.md, injected environment), the launch file (domain/sandbox/launch.ts) and the layout
 * of the sandbox. Read once at the start; the environment is not read later.
 */
import { readFileSync, rmSync } from "node:fs";
import * as Schema from "effect/Schema";
import { subscriptionSecrets } from "../src/domain/agents/subscription.ts";
import { imageVariables, processVariables } from "../src/domain/environment/image-variables.ts";
import {
  AGENT_READABLE_DIR,
  DAEMON_SOCKET,
  type Claim,
  LAUNCH_FILE,
  LaunchSettings,
  RUNTIME_PORT,
} from "../src/domain/sandbox/launch.ts";

/** Paths and addresses. `SANDBOX_LAYOUT` is a sandbox's own. Tests run the daemon in other layouts. */
export interface Layout {
  readonly launchFile: string;
  /** The address of the daemon's port: all addresses in a sandbox, loopback for a daemon outside of one. */
  readonly serviceHost: string;
  /** The unix socket on which the daemon listens in addition to its port. */
  readonly socket: string;
  readonly workspace: string;
  /**
   * The current clone credential, in the only directory of the platform that the agent may read. The daemon writes it
   * and the agent's git reads it.
   */
  readonly credentialFile: string;
  /** The named pipe into which the agent's git reports a refused credential. */
  readonly rejectionPipe: string;
  /** Git's system configuration for every git that runs as the agent. */
  readonly gitConfigFile: string;
  /** The platform's defaults for the agent runtime, in the same directory. */
  readonly runtimeDefaultsFile: string;
  /** Files that people attached to messages, in the same directory. */
  readonly attachmentsDir: string;
  /**
   * In the same directory, for a runtime that started before its session: `.json` has the session's variables, `.mjs` is
   * the runtime's plugin that takes them.
   */
  readonly sessionEnvironment: string;
  /** In the same directory: npm's settings for all users, and a directory of settings, as XDG_CONFIG_DIRS names them. */
  readonly npmConfigFile: string;
  readonly configDirectory: string;
  readonly runtimePort: number;
}

export const SANDBOX_LAYOUT: Layout = {
  launchFile: LAUNCH_FILE,
  serviceHost: "0.0.0.0",
  socket: DAEMON_SOCKET,
  workspace: "/workspace",
  credentialFile: `${AGENT_READABLE_DIR}/git-credential`,
  rejectionPipe: `${AGENT_READABLE_DIR}/git-credential-refused`,
  gitConfigFile: `${AGENT_READABLE_DIR}/gitconfig`,
  runtimeDefaultsFile: `${AGENT_READABLE_DIR}/runtime-defaults.json`,
  attachmentsDir: `${AGENT_READABLE_DIR}/attachments`,
  sessionEnvironment: `${AGENT_READABLE_DIR}/session-environment`,
  npmConfigFile: `${AGENT_READABLE_DIR}/npmrc`,
  configDirectory: `${AGENT_READABLE_DIR}/config`,
  runtimePort: RUNTIME_PORT,
};

export interface Settings {
  readonly layout: Layout;
  readonly launch: LaunchSettings;
  /** PLATFORM_TOKEN: never passed to a child process. */
  readonly token: string;
  readonly projectId: string;
  readonly sessionId: string;
  readonly branch: string;
  readonly defaultBranch: string;
  readonly repoUrl: string;
  readonly apiUrl: string;
  readonly servicePort: number;
  readonly autoClone: boolean;
  readonly agentName: string;
  readonly agentModel: string | null;
  /** Present if the daemon must open the agent session with it (PLATFORM_BOOTSTRAP_AGENT_SESSION). */
  readonly initialPrompt: string | null;
  /** The injected variables that the agent sees too: all except PLATFORM_TOKEN. */
  readonly injected: Readonly<Record<string, string>>;
}

const Port = Schema.NumberFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 0, maximum: 65_535 }));

const Environment = Schema.Struct({
  PLATFORM_TOKEN: Schema.NonEmptyString,
  PLATFORM_PROJECT_ID: Schema.NonEmptyString,
  PLATFORM_SESSION_ID: Schema.NonEmptyString,
  PLATFORM_BRANCH_NAME: Schema.NonEmptyString,
  PLATFORM_DEFAULT_BRANCH: Schema.NonEmptyString,
  PLATFORM_REPO_URL: Schema.NonEmptyString,
  PLATFORM_API_URL: Schema.NonEmptyString,
  PLATFORM_SERVICE_PORT: Port,
  PLATFORM_AGENT_NAME: Schema.NonEmptyString,
  PLATFORM_AGENT_MODEL: Schema.optionalKey(Schema.NonEmptyString),
  PLATFORM_PROJECT_AUTO_CLONE: Schema.optionalKey(Schema.String),
  PLATFORM_INITIAL_PROMPT: Schema.optionalKey(Schema.String),
  PLATFORM_BOOTSTRAP_AGENT_SESSION: Schema.optionalKey(Schema.String),
});

const decodeEnvironment = Schema.decodeUnknownSync(Environment);
const decodeLaunch = Schema.decodeUnknownSync(Schema.fromJsonString(LaunchSettings));

type Variables = Readonly<Record<string, string | undefined>>;

/**
 * Reads and removes the launch file.
 *
 * @throws if it is missing or malformed: the daemon cannot start without it.
 */
export const readLaunch = (layout: Layout): LaunchSettings => {
  const launch = decodeLaunch(readFileSync(layout.launchFile, "utf8"));
  rmSync(layout.launchFile);
  return withImageVariables(launch);
};

/** The image's variables are for the agent alone: the daemon reads them as text, and never has them in its environment. */
const withImageVariables = (launch: LaunchSettings): LaunchSettings => {
  const { imageEnvironment } = launch;
  if (imageEnvironment === undefined) return launch;
  const { file, pathBefore, pathAfter } = imageEnvironment;
  const variables = processVariables(readFileSync(file, "utf8"));
  rmSync(file);
  const { PATH: path = "" } = variables;
  return {
    ...launch,
    imageEnv: { ...imageVariables(variables), ...launch.imageEnv },
    ...(path !== "" && { agentPath: `${pathBefore}:${path}:${pathAfter}` }),
  };
};

/**
 * Reads and removes the launch file, and takes the other settings from the environment.
 *
 * @throws if a variable or the launch file is missing or malformed.
 */
export const readSettings = (environment: Variables, layout: Layout): Settings =>
  decodeSettings(environment, readLaunch(layout), layout);

/** Takes the place of a session's variables until a waiting sandbox gets them. Nothing that the agent sees has them. */
const UNCLAIMED = {
  PLATFORM_SESSION_ID: "unclaimed",
  PLATFORM_BRANCH_NAME: "unclaimed",
  PLATFORM_AGENT_NAME: "default",
};

/** The settings of a sandbox that waits for its session. */
export const standbySettings = (
  environment: Variables,
  launch: LaunchSettings,
  layout: Layout,
): Settings => ({
  ...decodeSettings({ ...environment, ...UNCLAIMED }, launch, layout),
  injected: injectedWithoutToken(environment),
});

/** The settings of a sandbox that has waited, once it has a session. */
export const claimedSettings = (environment: Variables, waiting: Settings, claim: Claim): Settings => {
  const { wip, wip_lacks: wipLacks, restore, recap, agent, boot_deadline_ms: bootDeadlineMs } = claim;
  const launch = {
    ...waiting.launch,
    ...(wip !== undefined && { wip }),
    ...(wipLacks !== undefined && { wipLacks }),
    ...(restore !== undefined && { restore }),
    ...(recap !== undefined && { recap }),
    ...(agent !== undefined && { agent }),
    bootDeadlineMs,
  };
  return decodeSettings({ ...environment, ...claim.environment }, launch, waiting.layout);
};

/** @throws if a variable is missing or malformed. */
export const decodeSettings = (environment: Variables, launch: LaunchSettings, layout: Layout): Settings => {
  const variables = decodeEnvironment(environment);
  const prompt = variables.PLATFORM_INITIAL_PROMPT ?? null;
  return {
    layout,
    launch,
    token: variables.PLATFORM_TOKEN,
    projectId: variables.PLATFORM_PROJECT_ID,
    sessionId: variables.PLATFORM_SESSION_ID,
    branch: variables.PLATFORM_BRANCH_NAME,
    defaultBranch: variables.PLATFORM_DEFAULT_BRANCH,
    repoUrl: variables.PLATFORM_REPO_URL,
    apiUrl: variables.PLATFORM_API_URL,
    servicePort: variables.PLATFORM_SERVICE_PORT,
    autoClone: variables.PLATFORM_PROJECT_AUTO_CLONE === "1",
    agentName: variables.PLATFORM_AGENT_NAME,
    agentModel: variables.PLATFORM_AGENT_MODEL ?? null,
    initialPrompt: variables.PLATFORM_BOOTSTRAP_AGENT_SESSION === "1" ? prompt : null,
    injected: injectedWithoutToken(environment),
  };
};

const injectedWithoutToken = (
  environment: Readonly<Record<string, string | undefined>>,
): Record<string, string> => {
  const entries = Object.entries(environment).filter(
    (entry): entry is [string, string] =>
      entry[0].startsWith("PLATFORM_") && entry[0] !== "PLATFORM_TOKEN" && entry[1] !== undefined,
  );
  return Object.fromEntries(entries);
};

/** Values that must not occur in any log line, error text or health report. */
export const settingSecrets = (settings: Settings): readonly string[] => [
  settings.token,
  ...Object.values(settings.launch.agentEnv),
  ...subscriptionSecrets(settings.launch.agent?.subscription?.content ?? ""),
  ...["PLATFORM_CLI_TOKEN", "PLATFORM_LLM_API_KEY"].flatMap((name) => settings.injected[name] ?? []),
];
