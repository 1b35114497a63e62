/** `GET /v1/projects/{pid}/session-options`: what a person can choose from when she starts a session. */
import * as Effect from "effect/Effect";
import { deliveredNames } from "../../domain/manifest/required-secrets.ts";
import { isAgentName } from "../../domain/sandbox/agent.ts";
import { parseManifest } from "../../domain/manifest/manifest.ts";
import { MODEL_PROVIDERS } from "../../domain/sandbox/model.ts";
import { GitBackend, type GitError, type Repository } from "../../git/port.ts";
import { ModelPolicy, projectModel } from "../../services/models.ts";
import { manifestText } from "../../services/repository.ts";
import { Secrets } from "../../store/ports/secrets.ts";
import { Sessions } from "../../store/ports/sessions.ts";
import { Caller } from "../api/access.ts";
import { gitFailed } from "../refusals.ts";
import { projectFor } from "./answers.ts";

/** How many branches, and how many agents, an answer names. */
export const OPTIONS_MAX = 200;
/** The models of this many newest sessions are offered again. */
const RECENT_SESSIONS = 50;
/** Definitions of agents beyond these bytes in all are not looked at. */
const AGENTS_BYTES = 1024 * 1024;

/** The names of the agents that the repository defines at the commit, in order. */
const agentsAt = Effect.fnUntraced(function* (
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
  return names.filter(isAgentName).slice(0, OPTIONS_MAX);
});

/** @returns the branches, agents and models to choose from. A session may name others, as `POST …/sessions` says. */
export const sessionOptionsOf = Effect.fnUntraced(function* (pid: string) {
  const project = yield* projectFor(yield* Caller, pid);
  const repository = { projectId: project.id };
  const { defaults } = yield* ModelPolicy;
  const names = deliveredNames((yield* (yield* Secrets).list(project.id)).secrets);
  const git = yield* GitBackend;
  const read = Effect.gen(function* () {
    const commit = yield* git.branchTip(repository, project.defaultBranch);
    return {
      branches: yield* git.branches(repository, { limit: OPTIONS_MAX }),
      agents: commit === null ? [] : yield* agentsAt(repository, commit),
      model: yield* projectModel(project, names, commit),
    };
  });
  const { branches, agents, model } = yield* Effect.catchTag(read, "GitError", (error) => gitFailed(error));
  const recent = yield* (yield* Sessions).list(project.id, {
    limit: RECENT_SESSIONS,
    cursor: null,
    status: null,
  });
  const configured = MODEL_PROVIDERS.filter(({ keys }) => keys.some((key) => names.includes(key)));
  const models = [
    model.model,
    ...configured.map(({ id, model: known }) => `${id}/${defaults[id] ?? known}`),
    ...recent.items.map(({ agentModel }) => agentModel),
  ];
  return {
    default_branch: project.defaultBranch,
    branches,
    agents,
    default_model: model.model,
    models: [...new Set(models.filter((one) => one !== null))],
  };
});
