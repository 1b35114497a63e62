/** What a row of rows.ts is, and what it needs. */
import type { Fields } from "../support/service/requests.ts";
import type { TestService } from "../support/service/service.ts";

/** The id of nothing. */
export const NOWHERE = "0190f3b2-0000-7000-8000-00000000dead";

/** What the rows need of the service: projects, and things to use up. */
export interface World {
  readonly service: TestService;
  readonly pid: string;
  /** A project whose repository is at a git server, which lets `ci` in. */
  readonly externalPid: string;
  /** The same project, with a credential that its server does not want. */
  readonly openedPid: () => Promise<string>;
  /** A project to lose, and one that is deleted. */
  readonly sparePid: () => Promise<string>;
  readonly deletedPid: () => Promise<string>;
  /** A branch with a commit of its own. */
  readonly freshBranch: () => string;
  /** The number of an open change request. */
  readonly openRequest: () => Promise<string>;
  /** The number of an open change request, and the id of a comment on it. */
  readonly comment: () => Promise<readonly [string, string]>;
  /** The id of the person whose token is used. */
  readonly reader: () => Promise<string>;
  /** The id of a session that holds no slot. */
  readonly stoppedSession: () => Promise<string>;
  /** The id of a fire. */
  readonly firedOnce: () => Promise<string>;
  /** The id of a project whose Dockerfile is built, and that of its newest build. */
  readonly builtProject: () => Promise<readonly [pid: string, build: string]>;
  /** The pin of the connector's tools, with a credential stored. */
  readonly connectedPin: () => Promise<string>;
  /** The name of a provider of models. No other one exists then. */
  readonly modelProvider: () => Promise<string>;
  /** The reader has a verified address: ada@example.org. */
  readonly mailbox: () => Promise<void>;
  readonly outboundWebhook: () => Promise<string>;
  /** An outbound webhook, and a delivery that waits for its next try. */
  readonly outboundDelivery: () => Promise<readonly [webhook: string, delivery: string]>;
  /** A webhook was turned away, and is on record. */
  readonly refusedOnce: () => Promise<void>;
}

export interface Row {
  /** The arguments; made for each call, so that a call may use up the objects that it names. */
  readonly args: () => readonly string[] | Promise<readonly string[]>;
  readonly input?: string;
  /** What a person sees, in part. */
  readonly human: RegExp;
  /** What a program gets: the API's answer to this path, or something of the document. */
  readonly json: string | Fields | ((args: readonly string[]) => string);
  /** Refused: other arguments, how it ends, and the sentence. */
  readonly refused: readonly [args: readonly string[], code: number, sentence: RegExp];
}

export const ID = "[0-9a-f-]{36}";
export const notFound = (what: string): RegExp => new RegExp(`^${what} not found\\.\n$`);

/**
 * Commands with a separate test: one needs a queue, one a save of an earlier sandbox (saved-work.test.ts), others have no end (watch.test.ts), an agent that asks (chat.test.ts) or
 * works (wait.test.ts), a provider (secrets-try.test.ts), a sandbox (terminal.deep.test.ts), or OpenSSH, too (editors.real.test.ts).
 */
export const APART = [
  "triggers cancel",
  "sessions watch",
  "sessions wait",
  "sessions chat",
  "sessions answer",
  "sessions approve-plan",
  "sessions shell",
  "sessions ssh",
  "sessions port",
  "ssh-config",
  "ssh-proxy",
  "sessions checkout",
  "sessions take",
  "git-credential",
  "sessions forget-save",
  "secrets try",
  "logout",
  "init",
  "open",
  "completion",
];
