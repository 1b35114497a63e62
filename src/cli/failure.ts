/** A failed call of `platform`: a sentence for people, a code and an exit code for scripts. */

/** Scripts rely on these. `platform --help` lists them. */
export const EXIT = {
  ok: 0,
  /** The service refused, or failed. */
  refused: 1,
  /** The command line itself is wrong. Nothing was sent. */
  usage: 2,
  /** The token is missing, unknown, or lacks the permission. */
  unauthorised: 3,
  notFound: 4,
  conflict: 5,
  /** The service is unreachable or busy: the same call may succeed later. */
  tryAgain: 6,
  /** The agent that a command waits for failed, was interrupted, or ended before it finished. */
  agentFailed: 7,
  /** The agent that a command waits for asks a person. */
  agentAsks: 8,
  /** A session was not stopped, because its work could not be saved. */
  notSaved: 9,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export type Details = Readonly<Record<string, unknown>>;

/** Ends the program. `message` is one sentence that a person can act on. */
export class Failure extends Error {
  readonly exit: ExitCode;
  /** Stable, snake_case: the API's own code, or one of ours if there was no answer. */
  readonly code: string;
  readonly details: Details | undefined;
  /** Further lines for a person. */
  readonly lines: readonly string[];

  constructor(
    exit: ExitCode,
    code: string,
    more: {
      readonly message: string;
      readonly details?: Details | undefined;
      readonly lines?: readonly string[];
    },
  ) {
    super(more.message);
    this.exit = exit;
    this.code = code;
    this.details = more.details;
    this.lines = more.lines ?? [];
  }

  /** The API's common error shape. */
  get document(): string {
    const { message, code, details } = this;
    return JSON.stringify({ error: message, code, ...(details && { details }) });
  }
}

export const usageFailure = (message: string): Failure => new Failure(EXIT.usage, "usage", { message });

/** Statuses that may change soon: busy, over a limit, or no answer from a gateway. */
const TRANSIENT: ReadonlySet<number> = new Set([408, 429, 502, 503, 504]);

const EXITS: Readonly<Record<number, ExitCode>> = {
  401: EXIT.unauthorised,
  403: EXIT.unauthorised,
  404: EXIT.notFound,
  409: EXIT.conflict,
};

/** Refusals with an exit code of their own. */
const EXITS_BY_CODE: Readonly<Record<string, ExitCode>> = { not_saved: EXIT.notSaved };

/** The exit code for an API status, and for the refusal's code. */
export const exitCode = (status: number, code: string): ExitCode =>
  EXITS_BY_CODE[code] ?? EXITS[status] ?? (TRANSIENT.has(status) ? EXIT.tryAgain : EXIT.refused);
