/** A program on a terminal of its own, which util-linux `script` makes. */
import { execFileSync, spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect } from "vitest";
import { POLL } from "./live-session.ts";

/** Runs the program between two looks at the terminal's modes. */
const AROUND =
  'tty > tty; stty -a > before; sh -c \'echo $$ > pid; exec "$@"\' sh "$@"; code=$?; stty -a > after; exit $code';

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

export class OnTerminal {
  readonly #directory = mkdtempSync(path.join(tmpdir(), "on-terminal-"));
  readonly #script: ChildProcessWithoutNullStreams;
  readonly #exit: Promise<unknown[]>;
  /** What the terminal shows so far. */
  output = "";

  constructor(command: readonly string[], env: Readonly<Record<string, string>>) {
    const line = ["sh", "-c", AROUND, "sh", ...command].map(quoted).join(" ");
    this.#script = spawn("script", ["-qec", line, "/dev/null"], {
      cwd: this.#directory,
      env: { PATH: process.env["PATH"] ?? "", HOME: this.#directory, SHELL: "/bin/sh", ...env },
    });
    this.#exit = once(this.#script, "close");
    this.#script.stdin.on("error", () => undefined);
    this.#script.stdout.on("data", (chunk: Buffer) => (this.output += chunk.toString("utf8")));
  }

  /** The program's process. */
  get pid(): number {
    return Number(this.#read("pid"));
  }

  /** The terminal's modes now, as `stty -a` says them. */
  get modes(): string {
    return execFileSync("stty", ["-a", "-F", this.#read("tty").trim()], { encoding: "utf8" });
  }

  type(text: string): void {
    this.#script.stdin.write(text);
  }

  shows(text: string | RegExp): Promise<unknown> {
    return expect.poll(() => this.output, POLL).toMatch(text);
  }

  /** Waits for the end. @returns the program's exit code, and whether the terminal has the modes that it had before */
  async ended(): Promise<{ readonly code: unknown; readonly isRestored: boolean }> {
    const [code] = await this.#exit;
    return { code, isRestored: this.#read("before") === this.#read("after") };
  }

  /** Ends it if it still runs, and removes its files. */
  remove(): void {
    this.#script.kill("SIGKILL");
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #read(name: string): string {
    return readFileSync(path.join(this.#directory, name), "utf8");
  }
}
