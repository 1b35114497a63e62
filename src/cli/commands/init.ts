/** `platform init`: a project of this directory's repository, and the first lines of its manifest. */
import { existsSync, writeFileSync } from "node:fs";
import * as path from "node:path";
import type { Request } from "../contract.ts";
import { command } from "../command.ts";
import { usageFailure } from "../failure.ts";
import { gitOutput } from "../programs.ts";
import { onGitHub, projectHere, remotes } from "../project-here.ts";
import { safeLine } from "../terminal.ts";

type Repository = Request<"POST /v1/projects">["payload"]["repository"];

const MANIFEST = "platform.toml";
const EXAMPLE = `# What starts agents in this repository. It counts on the default branch.

# [[triggers]]
# slug = "weekly-updates"
# type = "cron"
# cron = "0 0 6 * * 1"        # Mondays at 6:00 UTC
# prompt = "Update the dependencies, run the tests, and open a change request."
`;
/** The root of the clone. @throws Failure outside of one */
const root = async (): Promise<string> => {
  const directory = await gitOutput("rev-parse", "--show-toplevel");
  if (directory === null)
    throw usageFailure("This directory is not in a git repository. Run `git init` first.");
  return directory.trimEnd();
};

const repositoryAt = (remote: string | undefined): Repository => {
  if (remote === undefined) return { kind: "hosted" };
  const github = onGitHub(remote);
  return github === null ? { kind: "git", url: remote } : { kind: "github", ...github };
};

export const init = command({
  name: "init",
  about: "Make a project of this directory's repository",
  takes: ["[NAME]"],
  notes:
    "The project works with the repository of the clone's first remote. Without a remote, the service keeps the repository, and the command says where to push. A private repository needs a credential: create its project with `platform projects create`. If there is no platform.toml, the command writes one with an example.",
  run: async ({ given, note, api }) => {
    const [directory, [remote]] = [await root(), await remotes()];
    const existing = await projectHere(api());
    const name = given.NAME ?? path.basename(directory);
    const { value, text } =
      existing === null
        ? await api().call("POST /v1/projects", { payload: { name, repository: repositoryAt(remote) } })
        : await api().call("GET /v1/projects/:pid", { params: { pid: existing } });
    const file = path.join(directory, MANIFEST);
    if (!existsSync(file)) {
      writeFileSync(file, EXAMPLE);
      note(`Wrote ${MANIFEST}. Edit it, and commit it to ${value.default_branch}.`);
    }
    if (value.repository.kind === "hosted" && remote === undefined)
      note(
        `Push the repository: git push ${api().page}/v1/git/${value.id}.git HEAD:${value.default_branch}. The password is a token.`,
      );
    const outcome = existing === null ? "is created" : "is the project of this directory";
    return { json: text, text: safeLine(`${value.id} ${value.name} ${outcome}.`) };
  },
});
