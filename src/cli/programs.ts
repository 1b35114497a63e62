/** The programs of this computer that a command starts: git, OpenSSH, and what opens an address. */
import { execFile, spawn } from "node:child_process";
import { constants } from "node:os";
import * as path from "node:path";
import type { Environment } from "./configuration.ts";
import { EXIT, Failure } from "./failure.ts";
import { safeLine } from "./terminal.ts";

/** How another program calls this one, whatever its PATH is. */
export const thisProgram = (): readonly string[] => [process.execPath, path.resolve(process.argv[1] ?? "")];

/** One word of a line that a shell reads. */
export const shellWord = (text: string): string =>
  /^[\w./:@+-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;

const GIT_TIMEOUT_MS = 5000;

/** What git prints in this directory. Null if it refuses, or if git is not installed. */
export const gitOutput = async (...args: readonly string[]): Promise<string | null> =>
  await new Promise((resolve) => {
    execFile("git", args, { timeout: GIT_TIMEOUT_MS }, (error, stdout) =>
      resolve(error === null ? stdout : null),
    );
  });

/** Long enough for git in a large repository. */
const RUN_TIMEOUT_MS = 600_000;
const OUTPUT_MAX = 16 * 1024 * 1024;

interface Run {
  readonly cwd?: string;
  /** Its whole environment. Absent: that of this program. */
  readonly env?: Environment;
}

const notInstalled = (program: string): Failure =>
  new Failure(EXIT.refused, "not_installed", { message: `The program ${program} is not installed.` });

/** Runs a program to its end. @returns what it prints @throws Failure with the last line of its own words */
export const run = async (
  program: string,
  words: readonly string[],
  { cwd, env }: Run = {},
): Promise<string> =>
  await new Promise((resolve, reject) => {
    const options = { cwd, env, timeout: RUN_TIMEOUT_MS, maxBuffer: OUTPUT_MAX };
    execFile(program, words, options, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout.trimEnd());
      if (error.code === "ENOENT") return reject(notInstalled(program));
      const lastLine = safeLine(stderr.trim().split("\n").at(-1) ?? "");
      reject(
        new Failure(EXIT.refused, "program_failed", {
          message: `${program} ${words[0] ?? ""} failed: ${lastLine}`,
        }),
      );
    });
  });

const SIGNALLED = 128;

/** Runs a program in the place of this one, with its terminal. @returns its exit code @throws Failure if it is not installed */
export const become = async (program: string, words: readonly string[]): Promise<number> => {
  const child = spawn(program, words, { stdio: "inherit" });
  // The terminal gives these to both, and the program decides.
  for (const signal of ["SIGINT", "SIGQUIT"] as const) process.on(signal, () => undefined);
  for (const signal of ["SIGTERM", "SIGHUP"] as const) process.on(signal, () => void child.kill(signal));
  return await new Promise<number>((resolve, reject) => {
    child.once("error", () => reject(notInstalled(program)));
    child.once("exit", (code, signal) =>
      resolve(code ?? SIGNALLED + (signal === null ? 0 : constants.signals[signal])),
    );
  });
};

/** Null if there is no screen. */
const opener = ({ DISPLAY = "", WAYLAND_DISPLAY = "" }: Environment): string | null => {
  if (process.platform === "darwin") return "open";
  return DISPLAY === "" && WAYLAND_DISPLAY === "" ? null : "xdg-open";
};

/** Opens an address in the person's browser. Without a program for it nothing happens. */
export const openAddress = (address: string, environment: Environment): void => {
  const program = opener(environment);
  if (program === null) return;
  spawn(program, [address], { stdio: "ignore", detached: true })
    .on("error", () => undefined)
    .unref();
};
