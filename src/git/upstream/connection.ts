/** Checks the connection to a repository at any git server: git/connection.ts. Only a push shows whether it may push. */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import {
  type Connection,
  type ConnectionStep,
  failedStep,
  passedStep,
  unknown,
} from "../../domain/repository/connection.ts";
import type { Upstream } from "../../domain/repository/repository-credential.ts";
import type { CheckConnection } from "../connection.ts";
import type { GitError } from "../port.ts";
import { listRemote, openRemote, type RemoteOptions, type RemoteRepository } from "./remote.ts";

/** Git's and ssh's sentences about a credential, as remote.ts passes them on. */
const ABOUT_CREDENTIAL =
  /Authentication failed|could not read|error: 40[13]|HTTP 40[13]|Permission denied|Host key|libcrypto|invalid format|access denied|sign in/i;

const HOST = "Check the address, and whether this service's machine can reach it. Then check again.";
const CREDENTIAL =
  "Check the user name and the password or access token. For ssh, check the key and the line of known_hosts.";
const REPOSITORY = "Check the path in the address, and whether the credential may read this repository.";

/** The step that a refusal concerns, after those that have passed. */
const refusalSteps = ({ message }: GitError): readonly ConnectionStep[] => {
  const host = passedStep("host", "The server answers.");
  return ABOUT_CREDENTIAL.test(message)
    ? [host, failedStep("credential", message, CREDENTIAL)]
    : [host, failedStep("repository", message, REPOSITORY)];
};

const faultSteps = (error: GitError): readonly ConnectionStep[] =>
  error.code === "refused" ? refusalSteps(error) : [failedStep("host", error.message, HOST)];

const branchStep = (branch: string | null, isThere: boolean): ConnectionStep => {
  if (branch === null)
    return failedStep("default_branch", "The repository has no branches.", "Push a first commit to it.");
  return isThere
    ? passedStep("default_branch", `The branch ${branch} can be read.`)
    : failedStep("default_branch", `The repository has no branch ${branch}.`, "Name an existing branch.");
};

/** The wanted branch, else the one that the server names, and whether it exists. */
const read = Effect.fnUntraced(function* (
  repository: RemoteRepository,
  branch: string | null,
  options: RemoteOptions,
) {
  const remote = yield* openRemote(repository, options);
  const head = branch === null ? (yield* listRemote(remote, ["HEAD"])).get("HEAD") : undefined;
  const target = branch ?? /^ref: refs\/heads\/(.+)$/.exec(head ?? "")?.[1] ?? null;
  const ref = `refs/heads/${target ?? "main"}`;
  return { wanted: target, isThere: (yield* listRemote(remote, [ref])).has(ref) };
}, Effect.scoped);

/** @param findRemote null for an upstream of another kind: it has no steps here. */
export const gitConnection = (
  findRemote: (upstream: Upstream) => Effect.Effect<RemoteRepository | null, GitError>,
  options: RemoteOptions,
): CheckConnection =>
  Effect.fnUntraced(function* (upstream, branch): Effect.fn.Return<Connection> {
    const remote = yield* Effect.orElseSucceed(findRemote(upstream), () => null);
    if (remote === null) return { steps: [], defaultBranch: null };
    const result = yield* Effect.result(read(remote, branch, options));
    if (Result.isFailure(result)) return { steps: faultSteps(result.failure), defaultBranch: null };
    const { wanted, isThere } = result.success;
    const steps = [
      passedStep("host", "The server answers."),
      passedStep(
        "credential",
        remote.credential === null
          ? "The server asks for no credential."
          : "The server accepts the credential.",
      ),
      passedStep("repository", "The repository was found."),
      branchStep(wanted, isThere),
    ];
    return {
      steps: isThere
        ? [...steps, unknown("push", "The first push shows whether the credential may push.")]
        : steps,
      defaultBranch: isThere ? wanted : null,
    };
  });
