/** `platform` as in a sandbox: one bundled file, run in a process of its own. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { bundleCommandLine } from "../../../src/assembly/command-line-bundle.ts";
import type { Command } from "../../../src/cli/command.ts";
import { commands as all } from "../../../src/assembly/commands.ts";
import { runProgram } from "../../../src/cli/program.ts";

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  /** Its environment in addition to a home. It inherits no other variable. */
  readonly env?: Readonly<Record<string, string>>;
  /** Its standard input. Absent: empty. */
  readonly input?: string | Uint8Array;
  /** The commands that it has. Absent: all. */
  readonly commands?: readonly Command[];
  /** Its standard error is a terminal. */
  readonly isWatched?: true;
  /** Its standard input is a terminal. */
  readonly isTyped?: true;
  /** Its standard output is a terminal, without colours. */
  readonly isShown?: true;
}

/** Runs a command in this process, which takes a tenth of a program's time. Files are named by their whole path. */
export const runHere = async (
  line: readonly string[],
  { env = {}, input = "", commands = all, isWatched, isTyped, isShown }: Running = {},
): Promise<Ended> => {
  const streams = { stdin: new PassThrough(), stdout: "", stderr: "" };
  if (isTyped === true) Object.assign(streams.stdin, { isTTY: true, setRawMode: () => streams.stdin });
  streams.stdin.end(input);
  const code = await runProgram(commands, {
    line,
    environment: env,
    streams: {
      stdin: () => streams.stdin as unknown as NodeJS.ReadStream,
      stdout: { write: (more) => (streams.stdout += more), isTTY: isShown === true },
      stderr: { write: (more) => (streams.stderr += more), isTTY: isWatched === true },
    },
  });
  return { code, stdout: streams.stdout, stderr: streams.stderr };
};

/** The environment of commands for a server of the test's own. */
export const serverEnvironment = (server: Server, project: string) => ({
  PLATFORM_API_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
  PLATFORM_CLI_TOKEN: `platform_pat_${"a".repeat(43)}`,
  PLATFORM_PROJECT_ID: project,
});

export class CommandLine {
  readonly directory: string;
  readonly bundle: string;

  private constructor(directory: string) {
    this.directory = directory;
    this.bundle = path.join(directory, "platform");
  }

  static async make(): Promise<CommandLine> {
    const made = new CommandLine(mkdtempSync(path.join(tmpdir(), "platform-command-")));
    await bundleCommandLine(made.bundle);
    return made;
  }

  /** Runs it with these arguments and waits for its end. */
  async run(args: readonly string[], { env = {}, input = "" }: Running = {}): Promise<Ended> {
    const child = spawn(process.execPath, [this.bundle, ...args], {
      cwd: this.directory,
      env: { HOME: this.directory, ...env },
      stdio: ["pipe", "pipe", "pipe"],
    });
    // The program need not read its input.
    child.stdin.on("error", () => undefined).end(input);
    const [stdout, stderr, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, "close") as Promise<[number | null]>,
    ]);
    return { code, stdout, stderr };
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }
}
