/** What a save kept beside the files, brought back in a fresh clone. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect } from "vitest";
import type { Running } from "./running.ts";
import { headOf, parentsOf, restOf, write } from "./saving.ts";

/** A clone of the remote that has the saved commit, and what its README tells people to run. */
export class Restored {
  readonly #directory: string;
  /** The commit that keeps what is not in the work tree. */
  readonly rest: string;

  constructor(daemon: Running, wip: string) {
    this.#directory = join(daemon.directory, `restored-${wip}`);
    execFileSync("git", ["clone", "-q", daemon.bare, this.#directory], { stdio: "pipe" });
    this.git("fetch", "-q", "origin", `refs/wip/${daemon.sessionId}`);
    this.rest = restOf(daemon, wip);
    expect(parentsOf(daemon, wip)).toContain(this.rest);
  }

  git(...args: readonly string[]): string {
    return execFileSync("git", ["-C", this.#directory, ...args], { encoding: "utf8", stdio: "pipe" }).trim();
  }

  /** Runs the commands of one section of the README. */
  run(section: string): string {
    const readme = this.git("show", `${this.rest}:README`);
    const [, text = ""] = readme.split(`\n${section}\n`);
    const commands = /(?:^ {4}.*\n?)+/m.exec(text)?.[0] ?? "";
    expect(commands, `${section} in ${readme}`).not.toBe("");
    return execFileSync("sh", ["-e", "-c", commands], {
      cwd: this.#directory,
      env: { ...process.env, rest: this.rest },
      encoding: "utf8",
      stdio: "pipe",
    });
  }

  path(name: string): string {
    return join(this.#directory, name);
  }
}

/** Commits one file as the agent. @returns the commit. */
export const commit = async (daemon: Running, name: string, text = `${name}\n`): Promise<string> => {
  write(daemon, name, text);
  await daemon.git("add", "-A");
  await daemon.git("commit", "-q", "-m", name);
  return await headOf(daemon);
};

/** Git in another directory than the workspace, as a user with a name. */
export const gitIn = (directory: string, ...args: readonly string[]): string =>
  execFileSync("git", ["-C", directory, "-c", "user.name=a", "-c", "user.email=a@b", ...args], {
    encoding: "utf8",
    stdio: "pipe",
  }).trim();
