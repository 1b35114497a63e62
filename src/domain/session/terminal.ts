/** Terminals in a sandbox (decision 0084): their limits, and what a person asks for when she opens one. */
import { parseUuid } from "../ids.ts";

/** Who may open terminals (PLATFORM_TERMINALS): members of the project, its owners, or no one. */
export const TERMINAL_USERS = ["members", "owners", "off"] as const;
export type TerminalUsers = (typeof TERMINAL_USERS)[number];

/** How many terminals of people run in a sandbox at the same time. */
export const TERMINALS_MAX = 8;
/** The same of commands with pipes. An editor opens several, and each connection of OpenSSH is one (docs/use/editors.md). */
export const PIPES_MAX = 64;
/** How long a terminal waits for a person whose connection was lost. */
export const TERMINAL_KEPT_MS = 10 * 60 * 1000;
/** How much of its last output it has for her then. */
export const TERMINAL_OUTPUT_KEPT = 256 * 1024;
/** Longest message of a client. */
export const TERMINAL_MESSAGE_MAX = 64 * 1024;
/** The program that makes a terminal, where each provider places it. */
export const TERMINAL_PROGRAM = "/opt/platform/lib/terminal";

/** A terminal's size has two bytes for each number. More than any screen has. */
const SIZE_MAX = 1000;
/** Longest command, in arguments. The request's head bounds their length. */
const ARGUMENTS_MAX = 256;

export interface TerminalSize {
  readonly rows: number;
  readonly cols: number;
}

export interface TerminalWish {
  /** The client chooses it (a UUID), so that it can come back even if it never got an answer. */
  readonly id: string;
  /** If null, the command gets pipes, and no terminal. */
  readonly size: TerminalSize | null;
  /** The program and its arguments. Empty: a shell. */
  readonly command: readonly string[];
  /** The client comes back, and has this many bytes of the output. Null if it wants a new terminal. */
  readonly after: number | null;
}

/** A wrong field of a wish. */
export interface TerminalFault {
  readonly path: string;
  readonly message: string;
}

const NUMBER = /^\d{1,15}$/;

/** A size that a terminal can have. Null if it is not one. */
export const terminalSize = (rows: number, cols: number): TerminalSize | null =>
  [rows, cols].every((value) => Number.isInteger(value) && value >= 1 && value <= SIZE_MAX)
    ? { rows, cols }
    : null;

const parseNumber = (text: string | null): number =>
  text !== null && NUMBER.test(text) ? Number(text) : Number.NaN;

/** Reads the query of a request for a terminal: `id`, `rows` and `cols`, `command` (once for each argument), `after`. */
export const terminalWish = (query: URLSearchParams): TerminalWish | TerminalFault => {
  const id = parseUuid(query.get("id") ?? "");
  if (id === null) return { path: "id", message: "must be a lower-case UUID" };
  const after = query.get("after");
  if (after !== null && Number.isNaN(parseNumber(after)))
    return { path: "after", message: "must be a number of bytes" };
  const command = query.getAll("command");
  if (command.length > ARGUMENTS_MAX)
    return { path: "command", message: `must have at most ${ARGUMENTS_MAX} arguments` };
  if (command.some((argument) => argument.includes("\0")) || command[0] === "")
    return { path: "command", message: "must be a program and its arguments, without NUL" };
  const hasSize = query.has("rows") || query.has("cols");
  const size = terminalSize(parseNumber(query.get("rows")), parseNumber(query.get("cols")));
  if (hasSize && size === null)
    return { path: "rows", message: `must come with cols, both numbers from 1 to ${SIZE_MAX}` };
  return { id, size, command, after: after === null ? null : Number(after) };
};

/**
 * How a connection ends, as a WebSocket's close code. 1000: the command ended. A client that closes with 1000 or 1001 ends the
 * command.
 */
export const TERMINAL_CLOSE = {
  /** The terminal of `id` has ended, or it never existed. */
  gone: 4404,
  /** The same terminal was opened on another connection. */
  replaced: 4409,
  /** The sandbox has `TERMINALS_MAX`, or `PIPES_MAX` of commands with pipes. */
  full: 4429,
} as const;
