/** `GET /v1/projects/{pid}/setup`: what a project still needs before its first session. */
import * as Effect from "effect/Effect";
import { deliveredNames } from "../../../domain/manifest/required-secrets.ts";
import { initialCommit } from "../../../domain/repository/git-ref.ts";
import { MODEL_PROVIDERS } from "../../../domain/sandbox/model.ts";
import { GitBackend } from "../../../git/port.ts";
import { ModelPolicy, projectModel } from "../../../services/projects/models.ts";
import { Secrets } from "../../../store/ports/projects/secrets.ts";
import { callingPerson } from "../../callers/person.ts";
import { Caller } from "../../api/access.ts";
import { Addresses, repositoryUrl } from "../../limits.ts";
import { gitFailed } from "../../answers/refusals.ts";
import { projectFor } from "../answers.ts";

/** @returns the repository's address and state, the model of a session, and the providers whose keys the service knows. */
export const projectSetup = Effect.fnUntraced(function* (pid: string) {
  const project = yield* projectFor(yield* Caller, pid);
  const { publicUrl } = yield* Addresses;
  const { defaults } = yield* ModelPolicy;
  const { secrets } = yield* (yield* Secrets).list(project.id);
  const names = deliveredNames(secrets);
  const git = yield* GitBackend;
  const read = Effect.gen(function* () {
    const commit = yield* git.branchTip({ projectId: project.id }, project.defaultBranch);
    const scope = { secretNames: names, commit, personId: yield* callingPerson };
    return { commit, model: yield* projectModel(project, scope) };
  });
  const { commit, model } = yield* Effect.catchTag(read, "GitError", (error) => gitFailed(error));
  return {
    repository: {
      url: repositoryUrl({ publicUrl }, project.id),
      branch: project.defaultBranch,
      commit,
      empty: commit === null || commit === initialCommit,
    },
    model,
    providers: MODEL_PROVIDERS.map(({ id, keys, model: known }) => ({
      id,
      secrets: keys,
      model: `${id}/${defaults[id] ?? known}`,
      configured: keys.some((key) => names.includes(key)),
    })),
  };
});
