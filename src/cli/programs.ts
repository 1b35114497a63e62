/** The programs of this computer that a command starts: git, and what opens an address. */
import { execFile, spawn } from "node:child_process";
import * as path from "node:path";
import type { Environment } from "./configuration.ts";

/** How another program calls this one, whatever its PATH is. */
export const thisProgram = (): readonly string[] => [process.execPath, path.resolve(process.argv[1] ?? "")];

/** One word of a line that a shell reads. */
export const shellWord = (text: string): string =>
  /^[\w./:@+-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;

const GIT_TIMEOUT_MS = 5000;

/** What git prints in this directory. Null: it refuses, or there is no git. */
export const gitOutput = async (...args: readonly string[]): Promise<string | null> =>
  await new Promise((resolve) => {
    execFile("git", args, { timeout: GIT_TIMEOUT_MS }, (error, stdout) =>
      resolve(error === null ? stdout : null),
    );
  });

/** Null: there is no screen. */
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
