/**
 * A clone on this computer and a session: `platform sessions checkout` and `sessions take` bring the session's work here, and
 * `sessions create --from-here` takes the clone's work there. Both have what is not committed, too (docs/use/editors.md).
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import * as path from "node:path";
import type { Answer } from "../../contract.ts";
import type { Client } from "../../client.ts";
import type { Environment } from "../../configuration.ts";
import { command, type Call } from "../../command.ts";
import { usageFailure } from "../../failure.ts";
import { run, shellWord, thisProgram } from "../../programs.ts";
import { safeLine } from "../../terminal.ts";
import { sessionId, SHORT_DIGITS, shortId } from "../../words.ts";
import { outputInSandbox } from "./shell.ts";

type Session = Answer<"GET /v1/projects/:pid/sessions/:sid">;

const REMOTE = "platform";

/**
 * The sandbox's commits since the session's base, and its working tree as one more commit, as a bundle. The index and the branch of
 * the agent stay as they are.
 */
const PACK = `
set -e
index=$(mktemp)
trap 'rm -f "$index"; git update-ref -d refs/platform/working' EXIT
cp "$(git rev-parse --git-path index)" "$index"
export GIT_INDEX_FILE="$index"
git add -A
tree=$(git write-tree)
export GIT_AUTHOR_NAME=platform GIT_AUTHOR_EMAIL=platform@localhost GIT_COMMITTER_NAME=platform GIT_COMMITTER_EMAIL=platform@localhost
git update-ref refs/platform/working "$(git commit-tree "$tree" -p HEAD -m "Not committed in the sandbox")"
git bundle create -q - refs/platform/working "^$1"
`;

/** git in this directory, or in another one. */
const git = (words: readonly string[], where: Parameters<typeof run>[2] = {}): Promise<string> =>
  run("git", words, where);

/** What came from the session. */
interface Brought {
  /** Where its branch stands: the sandbox's, or what it has pushed. */
  readonly head: string;
  /** The working tree as a commit. Null if the session does not run. */
  readonly work: string | null;
}

/** This directory's clone knows the service as a remote, and git gets the token from this program. */
const addRemote = async (client: Client, pid: string): Promise<void> => {
  const url = `${client.page}/v1/git/${pid}.git`;
  await git(["config", `remote.${REMOTE}.url`, url]);
  await git(["config", `remote.${REMOTE}.fetch`, `+refs/heads/*:refs/remotes/${REMOTE}/*`]);
  const helper = `!${thisProgram().map(shellWord).join(" ")} git-credential`;
  await git(["config", `credential.${client.page}.helper`, helper]);
};

const bring = async (session: Session, client: Client): Promise<Brought> => {
  const { project_id: pid, id: sid, branch_name: branch, base_commit: base, status } = session;
  await addRemote(client, pid);
  await git(["fetch", "--quiet", REMOTE, `+refs/heads/${branch}:refs/remotes/${REMOTE}/${branch}`]);
  const remoteHead = await git(["rev-parse", `refs/remotes/${REMOTE}/${branch}`]);
  if (status !== "running" || base === null) return { head: remoteHead, work: null };
  const bundle = await outputInSandbox(["sh", "-c", PACK, "sh", base], client, { pid, sid });
  const directory = mkdtempSync(path.join(tmpdir(), "platform-checkout-"));
  try {
    const file = path.join(directory, "bundle");
    writeFileSync(file, bundle, { mode: 0o600 });
    await git(["fetch", "--quiet", file, "refs/platform/working"]);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  const work = await git(["rev-parse", "FETCH_HEAD"]);
  return { head: await git(["rev-parse", `${work}^`]), work };
};

type Asked = Pick<Call<{ readonly SESSION: string }, unknown>, "given" | "api" | "project" | "note">;

/** The session, and its work in the objects of this clone. */
const broughtHere = async ({ given, api, project, note }: Asked) => {
  await git(["rev-parse", "--show-toplevel"]);
  const params = { pid: await project(), sid: sessionId(given.SESSION) };
  const { value: session } = await api().call("GET /v1/projects/:pid/sessions/:sid", { params });
  const state = await bring(session, api());
  if (state.work === null)
    note("The session is not running. This is what it has pushed; restart it for the rest.");
  return { session, ...state };
};

/** Puts what is not committed into a working tree whose commit is the session's. */
const fillIn = async (directory: string, work: string | null, branch: string): Promise<void> => {
  if (work !== null) await git(["restore", `--source=${work}`, "--worktree", "--", ":/"], { cwd: directory });
  await git(["config", `branch.${branch}.remote`, REMOTE], { cwd: directory });
  await git(["config", `branch.${branch}.merge`, `refs/heads/${branch}`], { cwd: directory });
};

const outcome = (session: Session, directory: string) => ({
  json: JSON.stringify({ directory, branch: session.branch_name }),
  text: safeLine(
    `${directory} has the session's work, on branch ${session.branch_name}. git push sends commits to it.`,
  ),
});

const NOTES =
  "It works in a clone of the project's repository. Commits that are not pushed and files that are not committed come, too, while the session runs; ignored files do not.";

const checkout = command({
  name: "sessions checkout",
  about: "Make a worktree beside this clone with a session's work",
  takes: ["SESSION", "[DIRECTORY]"],
  inProject: true,
  notes: `${NOTES} Without DIRECTORY, it is a directory beside the clone.`,
  run: async ({ given, ...call }) => {
    const { session, head, work } = await broughtHere({ given, ...call });
    const clone = await git(["rev-parse", "--show-toplevel"]);
    const directory = path.resolve(given.DIRECTORY ?? `${clone}-${shortId(session.id)}`);
    await git(["worktree", "add", "--quiet", "--no-track", "-b", session.branch_name, directory, head]);
    await fillIn(directory, work, session.branch_name);
    return outcome(session, directory);
  },
});

const take = command({
  name: "sessions take",
  about: "Bring a session's work into this clone, and switch to its branch",
  takes: ["SESSION"],
  inProject: true,
  notes: `${NOTES} It changes nothing in a clone that has changes of its own.`,
  run: async (call) => {
    if ((await git(["status", "--porcelain"])) !== "")
      throw usageFailure(
        "This clone has changes. Commit them or put them away, or use `platform sessions checkout`.",
      );
    const { session, head, work } = await broughtHere(call);
    await git(["switch", "--quiet", "--no-track", "-c", session.branch_name, head]);
    const clone = await git(["rev-parse", "--show-toplevel"]);
    await fillIn(clone, work, session.branch_name);
    return outcome(session, clone);
  },
});

/** The clone's working tree as a commit: its own one, or one more that no branch has. Its index stays as it is. */
const workingTree = async (environment: Environment): Promise<string> => {
  const clone = await git(["rev-parse", "--show-toplevel"]);
  if ((await git(["status", "--porcelain"])) === "") return await git(["rev-parse", "HEAD"]);
  const directory = mkdtempSync(path.join(tmpdir(), "platform-from-here-"));
  try {
    const env = { ...environment, GIT_INDEX_FILE: path.join(directory, "index") };
    await git(["read-tree", "HEAD"], { env });
    await git(["add", "--all", "--", clone], { env });
    const tree = await git(["write-tree"], { env });
    return await git(["commit-tree", tree, "-p", "HEAD", "-m", "Work in progress"]);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
};

/**
 * Pushes what this clone has, with what is not committed, to a new branch.
 *
 * @returns the branch, for a session that begins there
 */
export const pushFromHere = async (
  client: Client,
  { pid, environment }: { readonly pid: string; readonly environment: Environment },
): Promise<string> => {
  const commit = await workingTree(environment);
  await addRemote(client, pid);
  const branch = `from-here-${commit.slice(0, SHORT_DIGITS)}`;
  await git(["push", "--quiet", REMOTE, `${commit}:refs/heads/${branch}`]);
  return branch;
};

export const checkoutCommands = [checkout, take];
