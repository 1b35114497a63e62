/**
 * The injected environment of a sandbox (spec.md, injected environment): exactly the variables that apply.
 * Project secrets are not part of it: they go to the agent runtime alone (domain/sandbox/launch.ts).
 *
 * Not injected: PLATFORM_WORKSPACE (the provider sets it, as part of the image), and any static git credential (spec.md
 * 5.3).
 */
import { SERVICE_PORT } from "./launch.ts";

/** The managed model gateway, for plans with bundled model access (api.md 2). */
export interface ModelGateway {
  readonly apiKey: string;
  readonly baseUrl: string;
}

export interface EnvironmentInput {
  readonly projectId: string;
  readonly sessionId: string;
  /** The service's address as the sandbox sees it, without `/v1`, e.g. `http://platform.internal` (api.md 8). */
  readonly baseUrl: string;
  readonly defaultBranch: string;
  readonly baseRef: string;
  readonly agentName: string;
  readonly agentModel: string | null;
  /** The first prompt, rendered if a trigger started the session. Null if the session has none. */
  readonly initialPrompt: string | null;
  /** Names of the project's secrets, in any order. */
  readonly secretNames: readonly string[];
  readonly secretsRevision: string;
  /** PLATFORM_TOKEN: the sandbox service key. */
  readonly sandboxToken: string;
  /** The project-scoped token that CLI and executor share (spec.md 5.2). */
  readonly projectToken: string;
  readonly gateway: ModelGateway | null;
}

/** The platform API's base, ending in `/v1` (spec.md 9). */
export const apiUrl = (baseUrl: string): string => `${baseUrl.replace(/\/+$/, "")}/v1`;

/** The clone URL of every project, wherever its repository is kept. It contains no credential (api.md 6). */
export const repositoryUrl = (baseUrl: string, projectId: string): string =>
  `${apiUrl(baseUrl)}/git/${projectId}.git`;

export const injectedEnvironment = (input: EnvironmentInput): Record<string, string> => ({
  PLATFORM_PROJECT_ID: input.projectId,
  PLATFORM_SESSION_ID: input.sessionId,
  PLATFORM_BRANCH_NAME: input.sessionId,
  PLATFORM_REPO_URL: repositoryUrl(input.baseUrl, input.projectId),
  PLATFORM_DEFAULT_BRANCH: input.defaultBranch,
  PLATFORM_BASE_REF: input.baseRef,
  PLATFORM_SERVICE_PORT: String(SERVICE_PORT),
  PLATFORM_API_URL: apiUrl(input.baseUrl),
  PLATFORM_AGENT_NAME: input.agentName,
  PLATFORM_PROJECT_AUTO_CLONE: "1",
  PLATFORM_PROJECT_SECRET_NAMES: input.secretNames.toSorted().join(","),
  PLATFORM_PROJECT_SECRETS_REVISION: input.secretsRevision,
  PLATFORM_TOKEN: input.sandboxToken,
  PLATFORM_CLI_TOKEN: input.projectToken,
  PLATFORM_EXECUTOR_TOKEN: input.projectToken,
  ...modelVariables(input.agentModel),
  ...promptVariables(input.initialPrompt),
  ...gatewayVariables(input.gateway),
});

/** The variables that differ between two sessions of a project. All others can be set before there is a session. */
const SESSION_VARIABLES: ReadonlySet<string> = new Set([
  "PLATFORM_SESSION_ID",
  "PLATFORM_BRANCH_NAME",
  "PLATFORM_BASE_REF",
  "PLATFORM_AGENT_NAME",
  "PLATFORM_AGENT_MODEL",
  "PLATFORM_INITIAL_PROMPT",
  "PLATFORM_BOOTSTRAP_AGENT_SESSION",
]);

/** An injected environment in two: what a session brings, and what its sandbox can have before. */
export const splitEnvironment = (
  environment: Readonly<Record<string, string>>,
): { readonly session: Record<string, string>; readonly standing: Record<string, string> } => {
  const entries = Object.entries(environment);
  return {
    session: Object.fromEntries(entries.filter(([name]) => SESSION_VARIABLES.has(name))),
    standing: Object.fromEntries(entries.filter(([name]) => !SESSION_VARIABLES.has(name))),
  };
};

const modelVariables = (model: string | null): Record<string, string> =>
  model === null ? {} : { PLATFORM_AGENT_MODEL: model };

/** Injected at every boot. The clone credential tells the daemon whether the prompt was accepted before (api.md 7). */
const promptVariables = (prompt: string | null): Record<string, string> =>
  prompt === null ? {} : { PLATFORM_INITIAL_PROMPT: prompt, PLATFORM_BOOTSTRAP_AGENT_SESSION: "1" };

const gatewayVariables = (gateway: ModelGateway | null): Record<string, string> =>
  gateway === null
    ? {}
    : {
        PLATFORM_LLM_API_KEY: gateway.apiKey,
        PLATFORM_LLM_BASE_URL: gateway.baseUrl,
        PLATFORM_YOLO_API_KEY: gateway.apiKey,
        PLATFORM_YOLO_URL: gateway.baseUrl,
      };
