/**
 * What the service reads from a repository when it starts a session: the base commit, a commit's manifest, and whether
 * an agent's file exists.
 */
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { needsNoFile, type Agent, type Agents } from "../../domain/agents/agents.ts";
import { AGENT_FILE_LIMIT, agentFile, DEFAULT_AGENT, isAgentName } from "../../domain/sandbox/agent.ts";
import { MANIFEST_FILE, MANIFEST_LIMIT_BYTES, parseManifest } from "../../domain/manifest/manifest.ts";
import { GitBackend, type GitError, type Repository } from "../../git/port.ts";
import { knownAgent, knownAgents } from "./agents.ts";
import type { Directory } from "../directory.ts";
import { BrokenAgent } from "./runtimes.ts";

/** The repository has no such branch, tag or commit (api.md 3: 422 `unknown_base_ref`). */
export class UnknownBaseRef extends Schema.TaggedError<UnknownBaseRef>()("UnknownBaseRef", {
  baseRef: Schema.String,
  message: Schema.String,
}) {}

/** The agent has neither a table in the manifest nor a file at that commit (api.md 3: 422 `unknown_agent`). */
export class UnknownAgent extends Schema.TaggedError<UnknownAgent>()("UnknownAgent", {
  message: Schema.String,
}) {}

/** How many agents with files are listed, and how many agents one sentence names. */
const AGENTS_MAX = 200;
const NAMED_MAX = 20;
/** Definitions of agents beyond these bytes in all are not looked at. */
const AGENTS_BYTES = 1024 * 1024;

/** The words for a project whose default branch is gone, for example because its upstream renamed it. */
export const noDefaultBranch = (name: string): string =>
  `The repository has no branch ${name}. If it has another name now, set it with platform projects update --default-branch NAME.`;

/** The commit at which a session's branch starts. */
export const baseCommit = Effect.fnUntraced(function* (
  repository: Repository,
  baseRef: string,
): Effect.fn.Return<string, UnknownBaseRef | GitError, GitBackend> {
  const git = yield* GitBackend;
  return yield* Effect.catchTag(git.resolveBase(repository, baseRef), "GitError", (error) =>
    Effect.fail(
      error.code === "unknown_ref" ? new UnknownBaseRef({ baseRef, message: error.message }) : error,
    ),
  );
});

/** The manifest's text at a commit. Null if the commit has none. */
export const manifestText = Effect.fnUntraced(function* (
  repository: Repository,
  commit: string,
): Effect.fn.Return<Uint8Array | null, GitError, GitBackend> {
  const git = yield* GitBackend;
  return yield* git.readFile(repository, { commit, path: MANIFEST_FILE, maxBytes: MANIFEST_LIMIT_BYTES });
});

/** A file's text at the commit. Null if the path is missing, not a file, or too large. */
export const fileText = Effect.fnUntraced(function* (
  repository: Repository,
  request: { readonly commit: string; readonly path: string; readonly maxBytes: number },
): Effect.fn.Return<string | null, GitError, GitBackend> {
  const git = yield* GitBackend;
  const bytes = yield* Effect.catchIf(
    git.readFile(repository, request),
    (error) => error.code === "not_a_file" || error.code === "file_too_large",
    () => Effect.succeed(null),
  );
  return bytes === null ? null : Buffer.from(bytes).toString("utf8");
});

/** Whether the commit has a file for the agent, small enough to be a definition. A link or a folder does not count. */
export const hasAgentFile = Effect.fnUntraced(function* (
  repository: Repository,
  commit: string,
  path: string,
): Effect.fn.Return<boolean, GitError, GitBackend> {
  return (yield* fileText(repository, { commit, path, maxBytes: AGENT_FILE_LIMIT })) !== null;
});

/** The names of the agents that have files at the commit, in order. */
export const agentFilesAt = Effect.fnUntraced(function* (
  repository: Repository,
  commit: string,
): Effect.fn.Return<readonly string[], GitError, GitBackend> {
  const git = yield* GitBackend;
  const { configDir } = parseManifest((yield* manifestText(repository, commit)) ?? new Uint8Array());
  const path = `${configDir}/agents`;
  const page = yield* Effect.catchIf(
    git.readTree(repository, { commit, path, after: null, maxBytes: AGENTS_BYTES }),
    ({ code }) => code === "file_too_large" || code === "not_a_file",
    () => Effect.succeed(null),
  );
  const names = (page?.entries ?? []).flatMap((entry) =>
    entry.kind !== "link" && entry.path.endsWith(".md") ? [entry.path.slice(0, -".md".length)] : [],
  );
  return names.filter(isAgentName).slice(0, AGENTS_MAX);
});

const unknownAgent = Effect.fnUntraced(function* (
  { projectId, commit, name }: WantedAgent,
  { path, agents }: { readonly path: string; readonly agents: Agents },
) {
  const files = yield* agentFilesAt({ projectId }, commit);
  const names = [...new Set([DEFAULT_AGENT, ...agents.keys(), ...files])];
  const more = names.length - NAMED_MAX;
  const nameList = [...names.slice(0, NAMED_MAX), ...(more > 0 ? [`${more} more`] : [])].join(", ");
  return new UnknownAgent({
    message:
      `There is no agent ${name}. platform.toml on the default branch has no table [agents.${name}], and the repository has no ` +
      `file ${path} at this ref. There are: ${nameList}.`,
  });
});

interface WantedAgent {
  readonly projectId: string;
  /** Where files are looked up. */
  readonly commit: string;
  readonly name: string;
}

/**
 * The agent of a name, with a table in the manifest in force or a file at the commit; `default` needs neither (spec 2.4, api.md 3
 * "Agents").
 */
export const requireAgent = Effect.fnUntraced(function* (
  wish: WantedAgent,
): Effect.fn.Return<Agent, UnknownAgent | BrokenAgent | GitError, GitBackend | Directory> {
  const { projectId, commit, name } = wish;
  const agents = yield* knownAgents(projectId);
  if (!needsNoFile(agents, name)) {
    const text = yield* manifestText({ projectId }, commit);
    const path = agentFile(parseManifest(text ?? new Uint8Array()).configDir, name);
    if (!(yield* hasAgentFile({ projectId }, commit, path)))
      return yield* Effect.flatMap(unknownAgent(wish, { path, agents }), Effect.fail);
  }
  const agent = yield* knownAgent(projectId, name);
  const { instructions: path } = agent;
  if (path !== null && !(yield* hasAgentFile({ projectId }, commit, path)))
    return yield* new BrokenAgent({
      message: `The agent ${name} has an error: the repository has no file ${path} at this ref.`,
    });
  return agent;
});
