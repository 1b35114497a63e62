/** Keeps a service busy while it is backed up, and can wait for more activity in the middle of the backup. */
import { execFileSync } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout } from "node:timers/promises";
import { gitOk } from "../../git/git-client.ts";
import { commitFiles } from "./requests.ts";
import { eventually, sessionsOf, stopSession } from "./account-view.ts";
import { type Life, TOKEN } from "./process-service.ts";

/** So many more sessions than change requests begin at most. */
const AHEAD = 3;

/** The service's activity during a backup, with its progress. */
export class BackupLoad {
  readonly done: Promise<unknown>;
  #started = 0;
  #proposed = 0;
  #isOver = false;

  readonly #life: Life;
  readonly #projectId: string;
  readonly #directory: string;

  /** @param directory its working directory, which does not exist yet. Fires of the project must wait for a slot. */
  constructor(life: Life, projectId: string, directory: string) {
    this.#life = life;
    this.#projectId = projectId;
    this.#directory = directory;
    this.done = Promise.all([this.#stopOneAfterAnother(), this.#pushOneAfterAnother()]);
    this.done.catch(() => undefined);
  }

  /** Completes when some more sessions and change requests have begun after the call. */
  async goesOn(): Promise<void> {
    const [started, proposed] = [this.#started + 3, this.#proposed + 3];
    const further = eventually(() =>
      this.#started >= started && this.#proposed >= proposed
        ? Promise.resolve()
        : Promise.reject(new Error("nothing goes on")),
    );
    await Promise.race([further, this.done]);
  }

  end(): Promise<unknown> {
    this.#isOver = true;
    return this.done;
  }

  /**
   * Frees slots for waiting fires, again and again. Each start creates a branch. It keeps pace with the pushes, so that
   * fires still wait when the backup ends, and leaves one session running.
   */
  async #stopOneAfterAnother(): Promise<void> {
    while (!this.#isOver) {
      const sessions = await sessionsOf(this.#life, this.#projectId);
      const [newest, other] = sessions.filter(({ status }) => status === "running");
      if (newest === undefined || other === undefined || this.#started > this.#proposed + AHEAD) {
        await setTimeout(20);
        continue;
      }
      await stopSession(this.#life, this.#projectId, newest.id);
      this.#started += 1;
    }
  }

  /** Pushes branch after branch, and opens a change request for each. */
  async #pushOneAfterAnother(): Promise<void> {
    const directory = this.#directory;
    const remote = `${this.#life.url.replace("//", `//x:${TOKEN}@`)}/v1/git/${this.#projectId}.git`;
    await mkdir(directory);
    await gitOk(directory, "clone", "--quiet", remote, ".");
    for (; !this.#isOver; this.#proposed += 1) {
      const branch = `proposed-${this.#proposed}`;
      await commitFiles(directory, { [`notes/${branch}.md`]: branch });
      await gitOk(directory, "push", "--quiet", "origin", `HEAD:refs/heads/${branch}`);
      const body = { head_ref: branch, title: branch };
      await this.#life.call("POST", `/v1/projects/${this.#projectId}/change-requests`, body);
    }
  }
}

/**
 * A git that pauses after it has made a bundle.
 *
 * @param programs the directory for it, which does not exist yet.
 * @returns functions that wait for the pause, and that continue it.
 */
export const pausingGit = async (programs: string) => {
  const [bundled, onward] = [path.join(programs, "bundled"), path.join(programs, "onward")];
  await mkdir(programs);
  const real = execFileSync("sh", ["-c", "command -v git"], { encoding: "utf8" }).trim();
  const script = `#!/bin/sh
"${real}" "$@" || exit
[ "$1" = bundle ] || exit 0
touch "${bundled}"
until [ -e "${onward}" ]; do sleep 0.02; done
`;
  await writeFile(path.join(programs, "git"), script, { mode: 0o755 });
  return {
    stands: () => eventually(() => readFile(bundled)),
    goOn: () => writeFile(onward, ""),
  };
};
