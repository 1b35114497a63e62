/**
 * Checks out the session branch into the workspace (spec.md 1 and 4.2, api.md 7). Git runs as the agent, with the
 * credential of credential.ts. A failed attempt is retried with backoff until the boot deadline.
 *
 * The checkout has the full history of the session branch and of the default branch, and no other branch: session
 * branches are never removed, so fetching all of them would cost more with every session. It is not shallow: after a
 * restart the branch has moved on from its base, and a shallow branch could be neither merged nor compared with the
 * base.
 */
import { relative } from "node:path";
import type { Writable } from "node:stream";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import * as Schema from "effect/Schema";
import type * as Scope from "effect/Scope";
import { AGENT_FILE_LIMIT, agentFile } from "../../src/domain/sandbox/agent.ts";
import { readConfigDir, type ConfigDir } from "../boot/config-dir.ts";
import type { CloneCredential } from "./credential.ts";
import type { HttpFailure } from "../http/client.ts";
import {
  ProcessGroup,
  runForBytes,
  runToEnd,
  type Launch,
  type Finished,
  type LaunchFailure,
} from "../agent/process.ts";
import { manifestParts, type ManifestParts } from "../boot/manifest.ts";
import type { Settings } from "../settings.ts";

/** One attempt failed. `message` is git's own, complete and not yet redacted. */
export class CheckoutFailure extends Schema.TaggedError<CheckoutFailure>()("CheckoutFailure", {
  message: Schema.String,
}) {}

/** A commit that is checked out. */
export interface Prepared extends ManifestParts {
  readonly commit: string;
  /** The text of its platform.toml. Empty if it has none. */
  readonly manifest: string;
  readonly configDir: ConfigDir;
}

/** A commit that is checked out before there is a session. */
export interface Adoptable {
  readonly checkedOut: Prepared;
  /** Makes it the commit of the session branch. Once. */
  readonly adopt: (branch: string) => Effect.Effect<void, CheckoutFailure>;
}

export interface Checkout extends Prepared {
  readonly credential: CloneCredential;
}

export interface CheckoutOptions {
  readonly settings: Settings;
  readonly fetchCredential: Effect.Effect<CloneCredential, HttpFailure>;
  /** Called after each failed attempt. */
  readonly onFailure: (failure: CheckoutFailure) => void;
  readonly onCredential: () => void;
  /** The commit of the session branch, if it is checked out already. */
  readonly prepared: Adoptable | null;
}

/** How many characters of what the adopting program says are kept. */
const ADOPT_SAID = 2000;
/** A connection without any traffic for this long has failed (threats.md "Faults": git hangs). */
const STALL_S = 20;
const RETRY_FIRST = "250 millis";
const RETRY_LONGEST = Duration.seconds(5);

/**
 * Fetches, checks out, then prints commit and manifest. It is one shell, so that the launch prefix runs only once.
 * Every step may be repeated. The same fetch requests the default branch; a repository without it boots too.
 * $1 URL, $2 session branch, $3 default branch.
 */
const CHECKOUT_SCRIPT = `
own="+refs/heads/$2:refs/remotes/origin/$2" base="+refs/heads/$3:refs/remotes/origin/$3"
fetch() { git -c http.lowSpeedLimit=1 -c http.lowSpeedTime=${STALL_S} fetch --quiet origin "$@"; }
git init --quiet --initial-branch "$2" . &&
git config remote.origin.url "$1" &&
git config --replace-all remote.origin.fetch "$own" &&
{ fetch "$own" "$base" && git config --add remote.origin.fetch "$base" || fetch "$own"; } &&
git checkout --quiet --force -B "$2" --track "origin/$2" &&
git rev-parse --verify HEAD &&
{ git show HEAD:platform.toml 2>/dev/null || :; }
`;

/**
 * Unpacks a commit with its history, and checks it out, in a workspace without a repository. The checkout of the session's
 * branch then fetches the rest, or adopts the commit. Prints the manifest.
 * $1 default branch, $2 commit, $3 URL; the pack is the standard input.
 */
const PREPARE_SCRIPT = `
git init --quiet --initial-branch "$1" . &&
git config remote.origin.url "$3" &&
git config remote.origin.fetch "+refs/heads/$1:refs/remotes/origin/$1" &&
git index-pack --stdin >/dev/null &&
git update-ref "refs/remotes/origin/$1" "$2" &&
git checkout --quiet --force --detach "$2" &&
{ git cat-file blob "$2:platform.toml" 2>/dev/null || :; }
`;

/**
 * Waits for the name of the session branch, and makes the checked out commit that of the branch: without the network, and with
 * one process of git, which moves HEAD in one step. The refs are new, and unknown to other programs. It leaves what CHECKOUT_SCRIPT
 * leaves, and that script may follow it.
 * $1 commit; the name is the standard input.
 */
const ADOPT_SCRIPT = `
read -r branch &&
printf '%s\\n' "$1" >".git/refs/heads/$branch" &&
printf '%s\\n' "$1" >".git/refs/remotes/origin/$branch" &&
printf '[remote "origin"]\\n\\tfetch = +refs/heads/%s:refs/remotes/origin/%s\\n[branch "%s"]\\n\\tremote = origin\\n\\tmerge = refs/heads/%s\\n' \\
  "$branch" "$branch" "$branch" "$branch" >>.git/config &&
git symbolic-ref HEAD "refs/heads/$branch"
`;

/** @param pack of the commit, a git pack without deltas against other objects. */
export const prepareCheckout = (
  settings: Settings,
  { commit, pack }: { readonly commit: string; readonly pack: Uint8Array },
): Effect.Effect<Prepared, CheckoutFailure> =>
  runToEnd({
    ...gitLaunch(settings, [
      "sh",
      "-c",
      PREPARE_SCRIPT,
      "prepare",
      settings.defaultBranch,
      commit,
      settings.repoUrl,
    ]),
    input: pack,
  }).pipe(
    Effect.mapError(notStarted),
    Effect.flatMap(({ code, stdout, stderr }) =>
      code === 0
        ? preparedAt(settings, commit, stdout)
        : Effect.fail(new CheckoutFailure({ message: stderr.trim() })),
    ),
  );

/**
 * Starts the program that gives a prepared commit to the session branch. It waits for the branch's name until the scope closes:
 * its start, behind the launch prefix, takes longer than its work.
 */
export const waitToAdopt = Effect.fnUntraced(function* (
  settings: Settings,
  commit: string,
): Effect.fn.Return<Adoptable["adopt"], never, Scope.Scope> {
  let name: Writable | null = null;
  let stderrText = "";
  const launch = gitLaunch(settings, ["sh", "-c", ADOPT_SCRIPT, "adopt", commit]);
  const group = yield* Effect.acquireRelease(
    ProcessGroup.start({ ...launch, talk: ({ stdin }) => (name = stdin) }, (_, chunk) => {
      if (stderrText.length < ADOPT_SAID) stderrText += chunk.toString("utf8");
    }),
    ({ end }) => end,
  );
  return (branch) =>
    Effect.suspend(() => {
      name?.end(`${branch}\n`);
      return group.exit;
    }).pipe(
      Effect.mapError(notStarted),
      Effect.flatMap(({ code }) =>
        code === 0 ? Effect.void : Effect.fail(new CheckoutFailure({ message: stderrText.trim() })),
      ),
    );
});

/** Resets the workspace to the files of the commit. If that fails, the session begins with the other files, too. */
export const cleanCheckout = (settings: Settings): Effect.Effect<void> =>
  Effect.ignore(runToEnd(gitLaunch(settings, ["sh", "-c", "git reset --quiet --hard && git clean -ffdxq"])));

const notStarted = ({ message }: LaunchFailure) =>
  new CheckoutFailure({ message: `git cannot be started: ${message}` });

const run = (launch: Launch): Effect.Effect<Finished, CheckoutFailure> =>
  Effect.mapError(runToEnd(launch), notStarted);

/** Retries until the branch is checked out, or until it is interrupted at the deadline. */
export const checkOut = (options: CheckoutOptions): Effect.Effect<Checkout> => {
  const { settings, prepared } = options;
  const withCredential = options.fetchCredential.pipe(
    Effect.mapError(({ message }) => new CheckoutFailure({ message: `no clone credential: ${message}` })),
    Effect.tap(() => Effect.sync(options.onCredential)),
  );
  const clone = Effect.gen(function* () {
    const credential = yield* withCredential;
    return yield* readClone(yield* run(checkoutLaunch(settings, credential)), credential, settings);
  });
  const adopt = (from: Adoptable) =>
    Effect.gen(function* () {
      const [credential] = yield* Effect.all([withCredential, from.adopt(settings.branch)], {
        concurrency: 2,
      });
      // The setup command may have made links meanwhile.
      const configDir = yield* Effect.promise(() =>
        readConfigDir(from.checkedOut.manifest, settings.layout.workspace),
      );
      return { ...from.checkedOut, configDir, credential } satisfies Checkout;
    });
  // If the short way fails, the long one says why, or mends it.
  const attempt = prepared === null ? clone : Effect.catch(adopt(prepared), () => clone);
  const withReport = Effect.tapError(attempt, (failure) => Effect.sync(() => options.onFailure(failure)));
  return Effect.orDie(Effect.retry(withReport, { schedule: backoff }));
};

const backoff = Schedule.exponential(RETRY_FIRST).pipe(
  Schedule.modifyDelay(({ duration }) => Effect.succeed(Duration.min(duration, RETRY_LONGEST))),
);

const readClone = Effect.fnUntraced(function* (
  { code, stdout, stderr }: Finished,
  credential: CloneCredential,
  settings: Settings,
): Effect.fn.Return<Checkout, CheckoutFailure> {
  if (code !== 0) {
    const message = stderr.trim() || `git ended with ${code ?? "a signal"}`;
    return yield* new CheckoutFailure({ message: `clone failed: ${message}` });
  }
  const [commit = ""] = stdout.split("\n", 1);
  return { credential, ...(yield* preparedAt(settings, commit, stdout.slice(commit.length + 1))) };
});

const REREAD_SCRIPT = `
git rev-parse --verify HEAD &&
{ git show HEAD:platform.toml 2>/dev/null || :; }
`;

/** The checkout after the session branch has moved. If git does not say, it is as it was. */
export const rereadCheckout = (settings: Settings, checkout: Checkout): Effect.Effect<Checkout> =>
  run(gitLaunch(settings, ["sh", "-c", REREAD_SCRIPT])).pipe(
    Effect.flatMap((output) => readClone(output, checkout.credential, settings)),
    Effect.catch(() => Effect.succeed(checkout)),
  );

const preparedAt = Effect.fnUntraced(function* (settings: Settings, commit: string, manifest: string) {
  const configDir = yield* Effect.promise(() => readConfigDir(manifest, settings.layout.workspace));
  const parts = yield* manifestParts(manifest, (path, maxBytes) =>
    fileAt(settings, `${commit}:${path}`, maxBytes),
  );
  return { commit, manifest, configDir, ...parts } satisfies Prepared;
});

/** The first bytes of a file of a commit. Git reads it as the agent, and follows no link. */
const fileAt = (settings: Settings, object: string, maxBytes: number) =>
  runForBytes(gitLaunch(settings, ["git", "cat-file", "blob", object]), maxBytes).pipe(
    Effect.map(({ code, stdout }) => (code === 0 ? new Uint8Array(stdout) : null)),
    Effect.mapError(notStarted),
  );

/**
 * The instructions of an agent with a table in the manifest, without the head of settings that its file may have. Null if it has no
 * table or no file.
 */
export const readInstructions = (
  settings: Settings,
  { commit, configDir }: Pick<Prepared, "commit" | "configDir">,
): Effect.Effect<string | null> => {
  const { launch, layout, agentName } = settings;
  if (launch.agent === undefined) return Effect.succeed(null);
  const own = relative(layout.workspace, agentFile(configDir.path, agentName));
  return fileAt(settings, `${commit}:${launch.agent.instructions ?? own}`, AGENT_FILE_LIMIT).pipe(
    Effect.map((bytes) => (bytes === null ? null : withoutHead(new TextDecoder().decode(bytes)))),
    Effect.catch(() => Effect.succeed(null)),
  );
};

const withoutHead = (text: string): string =>
  text.replace(/^---\r?\n[\s\S]*?\n---[ \t]*(?:\r?\n|$)/, "").trim();

/** A command in the workspace, as the agent, with the platform's git settings and no secrets. */
const gitLaunch = (settings: Settings, command: readonly string[]): Launch => ({
  prefix: settings.launch.prefix,
  command,
  env: { ...settings.launch.commonEnv, ...gitEnvironment(settings) },
  cwd: settings.layout.workspace,
});

const checkoutLaunch = (settings: Settings, credential: CloneCredential): Launch => {
  const parameters = ["checkout", credential.repoUrl, settings.branch, settings.defaultBranch];
  return gitLaunch(settings, ["sh", "-c", CHECKOUT_SCRIPT, ...parameters]);
};

/** For every git that runs as the agent: the daemon's clone, and the runtime's own calls. */
export const gitEnvironment = (settings: Settings): Record<string, string> => ({
  GIT_CONFIG_SYSTEM: settings.layout.gitConfigFile,
  GIT_TERMINAL_PROMPT: "0",
});
