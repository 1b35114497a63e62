/**
 * Checks the connection to a repository at a code host: git/connection.ts. Each step asks the host for what only that step
 * needs, so that a failure names the part that a person has to change.
 */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { type CodeHost, readCodeHost } from "../../domain/repository/code-host.ts";
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
import type { Access, Api, ApiAnswer } from "./api.ts";
import { pathIn, type Place } from "./refs.ts";
import { asInstallation, digest, type GithubSource, type Minted } from "./tokens.ts";
import type { Wire } from "./wire.ts";

export interface CheckOptions {
  readonly api: Api;
  readonly wire: Wire;
  readonly allowHosts: readonly string[];
}

const Found = Schema.Struct({
  default_branch: Schema.String,
  archived: Schema.optionalKey(Schema.Boolean),
  permissions: Schema.optionalKey(Schema.Struct({ push: Schema.Boolean })),
});
const Ref = Schema.Struct({ ref: Schema.String, object: Schema.Struct({ sha: Schema.String }) });

/** A large repository has a long list of refs. The check drops it. */
const REFS_BYTES = 32 * 1024 * 1024;
const REFS_MS = 15_000;

/** The steps so far, and what the next ones need. */
interface Checking {
  readonly options: CheckOptions;
  readonly source: GithubSource;
  readonly host: CodeHost;
  readonly steps: ConnectionStep[];
}

/** Ends the check: the last step failed. */
const stop = Symbol("stop");

const add = (checking: Checking, step: ConnectionStep): Effect.Effect<void, typeof stop> => {
  checking.steps.push(step);
  return step.outcome === "failed" ? Effect.fail(stop) : Effect.void;
};

const quoteHost = (message: string): string => (message === "" ? "" : ` It says: ${message}`);

/** The host gives no useful answer. */
const hostFailed = ({ message }: GitError): ConnectionStep =>
  failedStep(
    "host",
    message,
    message.includes("rate limit")
      ? "Wait until then, and check again."
      : "Check the address of the API, and whether this service's machine can reach it. Then check again.",
  );

const request = <A>(
  checking: Checking,
  call: Effect.Effect<ApiAnswer<A>, GitError>,
): Effect.Effect<ApiAnswer<A>, typeof stop> =>
  Effect.catch(call, (error) => Effect.andThen(add(checking, hostFailed(error)), Effect.fail(stop)));

type App = Extract<NonNullable<Upstream["credential"]>, { kind: "app" }>;

const installationFault = (status: number, message: string, { owner, name }: GithubSource) => {
  switch (status) {
    case 401:
      return failedStep(
        "credential",
        `The code host rejects the app's id and private key.${quoteHost(message)}`,
        "Copy the App ID from the app's settings page, and generate a new private key there.",
      );
    case 404:
      return failedStep(
        "credential",
        "The app has no installation with this number.",
        "Open the app's installation on GitHub. Its number is the end of the page's address.",
      );
    default:
      return failedStep(
        "repository",
        `The app's installation cannot reach ${owner}/${name}.${quoteHost(message)}`,
        "On GitHub, open the installation's settings and add this repository under “Repository access”.",
      );
  }
};

/** The access of an app's installation, with the permissions that it was given. */
const byApp = Effect.fnUntraced(function* (checking: Checking, app: App) {
  const { options, source, host } = checking;
  const answer = yield* request(checking, asInstallation(options.api, { app, name: source.name, host }));
  const isReached = `The API at ${host.host} answers.`;
  yield* add(checking, passedStep("host", isReached));
  if (!answer.ok) {
    const fault = installationFault(answer.status, answer.message, source);
    if (fault.step === "repository")
      yield* add(checking, passedStep("credential", "The code host accepts the app."));
    yield* add(checking, fault);
    return yield* Effect.fail(stop);
  }
  yield* add(checking, passedStep("credential", "The code host accepts the app and its installation."));
  const { token } = answer.value;
  const access: Access = { host, key: digest(host.api, token), token: () => Effect.succeed(token) };
  return { access, minted: answer.value };
});

const repositoryFault = (checking: Checking, status: number, message: string): ConnectionStep => {
  const { owner, name } = checking.source;
  switch (status) {
    case 401:
      return failedStep(
        "credential",
        `The code host rejects the token: it is wrong, expired or revoked.${quoteHost(message)}`,
        "Generate a new token on GitHub, and paste it whole.",
      );
    case 404:
      return failedStep(
        "repository",
        `The code host shows no repository ${owner}/${name} to this credential.`,
        "Check owner and name. A fine-grained token must list this repository, and an organization may have to approve the token.",
      );
    case 403:
      return failedStep(
        "repository",
        `The code host does not show the repository to this credential.${quoteHost(message)}`,
        "If the organization uses single sign-on, authorize the token for it on GitHub.",
      );
    default:
      return failedStep(
        "repository",
        "The repository has moved.",
        "Use its current owner and name, as GitHub's page shows them.",
      );
  }
};

/** The repository as the host shows it. For a token, this is also the first answer at all. */
const readRepository = Effect.fnUntraced(function* (checking: Checking, access: Access) {
  const { options, source, host, steps } = checking;
  const answer = yield* request(
    checking,
    options.api(access, {
      method: "GET",
      path: pathIn({ source }),
      answer: Found,
      known: [301, 302, 307, 308, 401, 403, 404],
    }),
  );
  const isFirst = steps.length === 0;
  if (isFirst) yield* add(checking, passedStep("host", `The API at ${host.host} answers.`));
  const fault = answer.ok ? null : repositoryFault(checking, answer.status, answer.message);
  if (isFirst && fault?.step !== "credential")
    yield* add(checking, passedStep("credential", "The code host accepts the token."));
  if (fault !== null) yield* add(checking, fault);
  if (!answer.ok) return yield* Effect.fail(stop);
  yield* add(checking, passedStep("repository", `${source.owner}/${source.name} was found.`));
  return answer.value;
});

const branchRead = Effect.fnUntraced(function* (checking: Checking, place: Place, branch: string) {
  const answer = yield* request(
    checking,
    place.api(place.access, {
      method: "GET",
      path: pathIn(place, "git", "ref", "heads", ...branch.split("/")),
      answer: Ref,
      known: [403, 404, 409],
    }),
  );
  if (answer.ok && answer.value.ref === `refs/heads/${branch}`)
    return yield* add(checking, passedStep("default_branch", `The branch ${branch} can be read.`));
  const status = answer.ok ? 404 : answer.status;
  if (status === 409)
    return yield* add(
      checking,
      failedStep("default_branch", "The repository is empty.", "Push a first commit to it, and check again."),
    );
  return yield* add(
    checking,
    status === 403
      ? failedStep(
          "default_branch",
          `The branch ${branch} cannot be read.${answer.ok ? "" : quoteHost(answer.message)}`,
          "Give the token or the app read and write access to the repository's contents.",
        )
      : failedStep(
          "default_branch",
          `The repository has no branch ${branch} that this credential can read.`,
          "Name an existing branch as the default branch. If it exists, give read and write access to the repository's contents.",
        ),
  );
});

const CONTENTS = "Give the token or the app write access to the repository's contents on GitHub.";

/** Asks git's own door for a push, as far as the list of refs with which each push begins. Nothing is pushed. */
const doorOpens = ({ options, host }: Checking, token: string) =>
  options.wire({
    method: "GET",
    url: `${host.git}/info/refs?service=git-receive-pack`,
    headers: {
      authorization: `Basic ${Buffer.from(`x-access-token:${token}`).toString("base64")}`,
      "user-agent": "git/platform",
    },
    body: null,
    maxBytes: REFS_BYTES,
    deadlineMs: REFS_MS,
  });

const pushes = Effect.fnUntraced(function* (
  checking: Checking,
  { access, minted, found }: { access: Access; minted: Minted | null; found: typeof Found.Type },
) {
  if (found.archived === true)
    return yield* add(
      checking,
      failedStep(
        "push",
        "The repository is archived, and so read-only.",
        "Unarchive it in its settings on GitHub.",
      ),
    );
  const contents = minted?.permissions?.["contents"];
  if (minted === null ? found.permissions?.push === false : contents !== undefined && contents !== "write")
    return yield* add(
      checking,
      failedStep("push", "The credential can read the repository, but not push to it.", CONTENTS),
    );
  const token = yield* Effect.orElseSucceed(access.token(null), () => "");
  const answer = yield* Effect.result(doorOpens(checking, token));
  if (Result.isFailure(answer))
    return yield* add(
      checking,
      failedStep(
        "push",
        `The git server at ${new URL(checking.host.git).host} ${answer.failure.why}.`,
        "Check whether this service's machine can reach that address, and check again.",
      ),
    );
  const { status } = answer.success;
  return yield* add(
    checking,
    status === 200
      ? passedStep("push", "The credential may push.")
      : failedStep("push", `Git refuses a push with this credential (${status}).`, CONTENTS),
  );
});

const PULLS = "Give the token or the app read and write access to pull requests on GitHub.";

const pullRequests = Effect.fnUntraced(function* (checking: Checking, place: Place, token: Minted | null) {
  if (checking.source.pull_requests !== true) return;
  const permission = token?.permissions?.["pull_requests"];
  if (token?.permissions !== undefined && permission !== "write")
    return yield* add(checking, failedStep("pull_requests", "The app may not open pull requests.", PULLS));
  const answer = yield* request(
    checking,
    place.api(place.access, {
      method: "GET",
      path: `${pathIn(place, "pulls")}?state=open&per_page=1`,
      answer: Schema.Array(Schema.Unknown),
      known: [403, 404],
    }),
  );
  if (!answer.ok)
    return yield* add(
      checking,
      failedStep("pull_requests", "The credential cannot read pull requests.", PULLS),
    );
  return yield* add(
    checking,
    permission === "write"
      ? passedStep("pull_requests", "The app may open pull requests.")
      : unknown(
          "pull_requests",
          "Pull requests can be read. The first change request shows whether the token may open one.",
        ),
  );
});

const run = Effect.fnUntraced(function* (
  checking: Checking,
  credential: Upstream["credential"],
  branch: string | null,
) {
  if (credential?.kind !== "app" && credential?.kind !== "token")
    return yield* add(
      checking,
      failedStep("credential", "The repository has no token and no app.", "Give it one of them."),
    );
  const { options, source, host } = checking;
  const entrance =
    credential.kind === "app"
      ? yield* byApp(checking, credential)
      : {
          access: {
            host,
            key: digest(host.api, credential.token),
            token: () => Effect.succeed(credential.token),
          },
          minted: null,
        };
  const place: Place = { api: options.api, access: entrance.access, source };
  const repository = yield* readRepository(checking, entrance.access);
  const wantedBranch = branch ?? repository.default_branch;
  yield* branchRead(checking, place, wantedBranch);
  yield* pushes(checking, { ...entrance, found: repository });
  yield* pullRequests(checking, place, entrance.minted);
  return wantedBranch;
});

/** Checks repositories at code hosts. A repository of another kind has no steps here. */
export const githubConnection = (options: CheckOptions): CheckConnection =>
  Effect.fnUntraced(function* ({ source, credential }, branch): Effect.fn.Return<Connection> {
    if (source.kind !== "github") return { steps: [], defaultBranch: null };
    const host = readCodeHost(source, new Set(options.allowHosts));
    if (Result.isFailure(host))
      return {
        steps: [failedStep("host", host.failure, "Correct the address of the API.")],
        defaultBranch: null,
      };
    const checking: Checking = { options, source, host: host.success, steps: [] };
    const failure = yield* Effect.catch(run(checking, credential, branch), () => Effect.succeed(null));
    return { steps: checking.steps, defaultBranch: failure ?? null };
  });
