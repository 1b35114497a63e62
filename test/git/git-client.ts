/** The real git client, as a person or a sandbox runs it: in an environment of its own, without asking anybody. */
import { execFile } from "node:child_process";

export interface ClientResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs git in `cwd`; an exit code other than 0 is a result, not an error. */
export const git = (cwd: string, ...args: readonly string[]): Promise<ClientResult> =>
  new Promise((resolve) => {
    const env = {
      PATH: process.env["PATH"],
      HOME: "/nonexistent",
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_CONFIG_GLOBAL: "/dev/null",
      GIT_TERMINAL_PROMPT: "0",
      LC_ALL: "C",
      GIT_AUTHOR_NAME: "Tester",
      GIT_AUTHOR_EMAIL: "tester@example.org",
      GIT_COMMITTER_NAME: "Tester",
      GIT_COMMITTER_EMAIL: "tester@example.org",
    };
    execFile("git", args, { cwd, env, maxBuffer: 64 * 1024 ** 2 }, (error, stdout, stderr) => {
      const code = error === null ? 0 : Number(error.code ?? 1);
      resolve({ code, stdout: String(stdout), stderr: String(stderr) });
    });
  });

/** As `git`, where a failure is the test's failure. @returns standard output without its last line end. */
export const gitOk = async (cwd: string, ...args: readonly string[]): Promise<string> => {
  const { code, stdout, stderr } = await git(cwd, ...args);
  if (code !== 0) throw new Error(`git ${args.join(" ")} ended with ${code}: ${stderr}`);
  return stdout.trimEnd();
};
