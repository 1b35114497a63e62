/** How a call of `platform` ends when it does not succeed: a sentence for a person, a code and an exit code for scripts. */

/** Scripts rely on these; `platform --help` lists them. */
export const EXIT = {
  ok: 0,
  /** The service refused, or failed. */
  refused: 1,
  /** The command line itself is wrong; nothing was sent. */
  usage: 2,
  /** No token, one that is not known, or one that may not do this. */
  unauthorised: 3,
  notFound: 4,
  conflict: 5,
  /** Not reached, or busy: the same call may succeed later. */
  tryAgain: 6,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export type Details = Readonly<Record<string, unknown>>;

/** Ends the program; `message` is one sentence that a person can act on. */
export class Failure extends Error {
  readonly exit: ExitCode;
  /** Stable, snake_case: the API's own, or one of ours where no answer came. */
  readonly code: string;
  readonly details: Details | undefined;

  constructor(exit: ExitCode, code: string, more: { readonly message: string; readonly details?: Details }) {
    super(more.message);
    this.exit = exit;
    this.code = code;
    this.details = more.details;
  }

  /** The API's one shape of errors. */
  get document(): string {
    const { message, code, details } = this;
    return JSON.stringify({ error: message, code, ...(details && { details }) });
  }
}

export const usage = (message: string): Failure => new Failure(EXIT.usage, "usage", { message });

/** Answers that another moment may change: busy, over a limit, or somebody between us and the service had no answer. */
const TRANSIENT: ReadonlySet<number> = new Set([408, 429, 502, 503, 504]);

const EXITS: Readonly<Record<number, ExitCode>> = {
  401: EXIT.unauthorised,
  403: EXIT.unauthorised,
  404: EXIT.notFound,
  409: EXIT.conflict,
};

/** The exit code for a status of the API's. */
export const exitOf = (status: number): ExitCode =>
  EXITS[status] ?? (TRANSIENT.has(status) ? EXIT.tryAgain : EXIT.refused);
