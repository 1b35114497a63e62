/** One command of a person, over real processes with pipes: which output each of its connections gets. */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import * as Effect from "effect/Effect";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Terminal, type Peer } from "../../../daemon/terminals/terminal.ts";
import { TERMINAL_OUTPUT_KEPT } from "../../../src/domain/session/terminal.ts";
import { TEST_MS, WAIT_MS } from "../../support/patience.ts";

const POLL = { timeout: WAIT_MS };
/** Twice what is kept. */
const LINES = 100_000;
const SEQUENCE = Array.from({ length: LINES }, (_, index) => `${index + 1}\n`).join("");

/** A connection, and what came over it. */
class Client implements Peer {
  /** The number of the byte that the output begins with. */
  from = -1;
  text = "";
  exit: number | null = null;
  isReplaced = false;
  /** Callbacks of a connection that takes nothing. Null: it takes everything. */
  held: (() => void)[] | null = null;

  get next(): number {
    return this.from + this.text.length;
  }

  outputFrom(at: number): void {
    expect(this.from).toBe(-1);
    this.from = at;
  }

  output(bytes: Buffer, sent: () => void): void {
    this.text += bytes.toString("latin1");
    if (this.held === null) sent();
    else this.held.push(sent);
  }

  errorOutput(_: Buffer, sent: () => void): void {
    sent();
  }

  exited(code: number): void {
    this.exit = code;
  }

  replaced(): void {
    this.isReplaced = true;
  }

  holdInput(): void {
    expect(this.isReplaced).toBe(false);
  }
}

describe("the output of a terminal", { timeout: TEST_MS }, () => {
  let directory = "";
  let terminal: Terminal;
  beforeEach(() => {
    directory = mkdtempSync(path.join(tmpdir(), "terminal-"));
  });
  afterEach(async () => {
    await Effect.runPromise(terminal.end);
    rmSync(directory, { recursive: true });
  });

  const start = (script: string): void => {
    terminal = new Terminal({
      userId: "u",
      launch: {
        prefix: [],
        command: ["sh", "-c", script],
        env: { PATH: process.env["PATH"] ?? "" },
        cwd: directory,
      },
      size: null,
      onExit: () => undefined,
    });
  };

  const attached = (after: number): Client => {
    const client = new Client();
    terminal.attach(client, after);
    return client;
  };

  const written = () => existsSync(path.join(directory, "written"));

  it("comes once, also to clients whose last bytes are no longer kept", async () => {
    start(`seq 1 ${LINES}; touch written; read go; echo end; read go`);
    const first = attached(0);
    expect(first.from).toBe(0);
    await expect.poll(() => first.text.length, POLL).toBeGreaterThan(0);
    terminal.detach(first);
    const seen = first.next;
    expect(SEQUENCE.startsWith(first.text)).toBe(true);
    await expect.poll(written, POLL).toBe(true);

    const second = attached(0);
    expect(second.from).toBeGreaterThan(0);
    await expect.poll(() => second.next, POLL).toBe(SEQUENCE.length);
    expect(second.text).toBe(SEQUENCE.slice(second.from));
    expect(second.text.length).toBeGreaterThanOrEqual(TERMINAL_OUTPUT_KEPT);
    terminal.detach(second);

    const third = attached(second.next);
    terminal.input(Buffer.from("go\n"));
    await expect.poll(() => third.text, POLL).toBe("end\n");
    expect(third.from).toBe(SEQUENCE.length);
    terminal.detach(third);

    const fourth = attached(seen);
    expect(fourth.from).toBe(Math.max(seen, third.next - TERMINAL_OUTPUT_KEPT));
    expect(fourth.text).toBe(`${SEQUENCE}end\n`.slice(fourth.from));
  });

  it("goes on for a client that has all of it, or says that it has more", async () => {
    start("echo first; read go; echo second");
    const first = attached(0);
    await expect.poll(() => first.text, POLL).toBe("first\n");
    const second = attached(1000);
    expect([first.isReplaced, second.from, second.text]).toEqual([true, 6, ""]);
    terminal.input(Buffer.from("go\n"));
    await expect.poll(() => second.exit, POLL).toBe(0);
    expect(second.text).toBe("second\n");
  });

  it("goes on for a client that replaces one that read nothing", async () => {
    start(`seq 1 ${LINES}; touch written; echo end`);
    const first = new Client();
    first.held = [];
    terminal.attach(first, 0);
    // The command waits: the first client has not taken what it got.
    await expect.poll(() => first.text.length, POLL).toBeGreaterThan(TERMINAL_OUTPUT_KEPT);
    expect(written()).toBe(false);
    const second = attached(first.next);
    await expect.poll(() => second.exit, POLL).toBe(0);
    expect(first.text + second.text).toBe(`${SEQUENCE}end\n`);
  });
});
