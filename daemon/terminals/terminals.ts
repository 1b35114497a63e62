/**
 * The commands that people run in this sandbox (decision 0084).
 *
 *  R1 At most `TERMINALS_MAX` terminals and `PIPES_MAX` commands with pipes run at a time. One that waits for its person counts.
 *  R2 A terminal belongs to the person who opened it: other people do not get it by its id.
 *  R3 If its connection is lost, a terminal waits `TERMINAL_KEPT_MS` for its person, then it ends. It ends without a wait if
 *     she closes it, if the service says so (her access ended), and with the daemon.
 *  R4 Keys count as activity of the session. Output and an open terminal do not.
 */
import { existsSync } from "node:fs";
import * as Effect from "effect/Effect";
import {
  PIPES_MAX,
  TERMINAL_KEPT_MS,
  TERMINAL_PROGRAM,
  TERMINALS_MAX,
  type TerminalWish,
} from "../../src/domain/session/terminal.ts";
import type { After } from "../conversation/feed.ts";
import type { Log } from "../logs/log.ts";
import type { Launch } from "../agent/process.ts";
import { Terminal, type Peer } from "./terminal.ts";

export interface TerminalsOptions {
  /** A command as the agent, in the workspace. Completes when the daemon can start one. */
  readonly launch: (command: readonly string[]) => Promise<Launch>;
  readonly after: After;
  /** A person typed something. */
  readonly typed: () => void;
  readonly log: Log;
  /** The terminal program, if it is elsewhere. */
  readonly program?: string;
  /** How long a terminal waits for its person, ms, if it differs. */
  readonly keptMs?: number;
  /** How often a connection is asked whether it is alive, ms, if it differs. */
  readonly askEveryMs?: number;
}

/** A connection that does not answer from one question to the next is lost. */
const ASK_EVERY_MS = 30_000;

/** A wish that cannot be fulfilled. */
export type NotOpened = "gone" | "full" | "no_program";

/** A connection's use of its terminal. */
export interface Use {
  readonly terminal: Terminal;
  readonly typed: () => void;
  /** The connection has ended. @param isClosed the person closed it; otherwise it was lost */
  readonly left: (isClosed: boolean) => void;
}

/** Replaces itself by the command, which the PATH of the agent's side finds. */
const RUN = 'exec "$@"';
/** The shell of a person: the image's own choice, or the first of the usual ones. */
const SHELL =
  'for shell in "${SHELL:-bash}" bash sh; do if command -v "$shell" >/dev/null 2>&1; then exec "$shell"; fi; done';
/** The terminal program takes the path of a program. */
const IN_TERMINAL = 'terminal=$1; shift; exec "$terminal" "$(command -v sh)" "$@"';

const terminalCommand = ({ command, size }: TerminalWish, program: string): readonly string[] => {
  const script = ["-c", command.length === 0 ? SHELL : RUN, "sh", ...command];
  return size === null ? ["sh", ...script] : ["sh", "-c", IN_TERMINAL, "sh", program, ...script];
};

interface Entry {
  readonly terminal: Terminal;
  /** Stops the wait for its person. */
  stopWaiting: () => void;
}

export class Terminals {
  readonly #options: TerminalsOptions;
  readonly #entries = new Map<string, Entry>();
  /** Those that are about to start: terminals, and commands with pipes. */
  readonly #starting = { terminal: 0, pipes: 0 };
  #isOver = false;

  constructor(options: TerminalsOptions) {
    this.#options = options;
  }

  /** How often a connection is asked whether it is alive, ms. */
  get askEveryMs(): number {
    return this.#options.askEveryMs ?? ASK_EVERY_MS;
  }

  /** Opens a terminal, or gives an open one to another connection of the same person. */
  async open(wish: TerminalWish, userId: string, peer: Peer): Promise<Use | NotOpened> {
    const entry = this.#entries.get(wish.id);
    if (entry !== undefined) {
      if (entry.terminal.userId !== userId) return "gone";
      entry.stopWaiting();
      return this.#use(wish.id, entry, { peer, after: wish.after ?? 0 });
    }
    if (wish.after !== null || this.#isOver) return "gone";
    const program = this.#options.program ?? TERMINAL_PROGRAM;
    if (wish.size !== null && !existsSync(program)) return "no_program";
    const [kind, max] =
      wish.size === null ? (["pipes", PIPES_MAX] as const) : (["terminal", TERMINALS_MAX] as const);
    const running = [...this.#entries.values()].filter(
      ({ terminal }) => terminal.hasSize === (wish.size !== null),
    );
    if (running.length + this.#starting[kind] >= max) return "full";
    this.#starting[kind] += 1;
    try {
      const launch = await this.#options.launch(terminalCommand(wish, program));
      return this.#use(wish.id, this.#start(wish, userId, launch), { peer, after: 0 });
    } finally {
      this.#starting[kind] -= 1;
    }
  }

  /** Ends the terminal of a person. Nothing happens if it is not hers. */
  close(id: string, userId: string): void {
    const entry = this.#entries.get(id);
    if (entry?.terminal.userId === userId) this.#end(id, entry);
  }

  /** Ends all of them. No other one opens. */
  get endAll(): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#isOver = true;
      const entries = [...this.#entries.values()];
      this.#entries.clear();
      for (const { stopWaiting } of entries) stopWaiting();
      return Effect.forEach(entries, ({ terminal }) => terminal.end, {
        concurrency: "unbounded",
        discard: true,
      });
    });
  }

  #start(wish: TerminalWish, userId: string, launch: Launch): Entry {
    const { log } = this.#options;
    const env =
      wish.size === null ? launch.env : { ...launch.env, TERM: "xterm-256color", COLORTERM: "truecolor" };
    const terminal = new Terminal({
      userId,
      launch: { ...launch, env },
      size: wish.size,
      onExit: () => {
        log("terminal ended", { terminal: wish.id });
        // Otherwise its person may still come for the exit code (R3).
        if (terminal.isAttended) this.#entries.delete(wish.id);
      },
    });
    log("terminal opened", { terminal: wish.id });
    const entry = { terminal, stopWaiting: () => undefined };
    this.#entries.set(wish.id, entry);
    return entry;
  }

  #use(id: string, entry: Entry, { peer, after }: { readonly peer: Peer; readonly after: number }): Use {
    const { terminal } = entry;
    terminal.attach(peer, after);
    if (terminal.hasEnded) this.#entries.delete(id);
    return {
      terminal,
      typed: this.#options.typed,
      left: (isClosed) => this.#left(id, entry, { peer, isClosed }),
    };
  }

  #left(
    id: string,
    entry: Entry,
    { peer, isClosed }: { readonly peer: Peer; readonly isClosed: boolean },
  ): void {
    const { terminal } = entry;
    terminal.detach(peer);
    // Another connection has it.
    if (terminal.isAttended || this.#entries.get(id) !== entry) return;
    if (isClosed || !terminal.hasSize) return this.#end(id, entry);
    const { after, keptMs = TERMINAL_KEPT_MS } = this.#options;
    entry.stopWaiting = after(keptMs, () => this.#end(id, entry));
  }

  #end(id: string, entry: Entry): void {
    entry.stopWaiting();
    this.#entries.delete(id);
    void Effect.runPromise(entry.terminal.end);
  }
}
