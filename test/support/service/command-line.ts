/** `platform` as in a sandbox: one bundled file, run in a process of its own. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { bundleCommandLine } from "../../../src/cli/bundle.ts";

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
}

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
