/**
 * Reads the workspace for people, while the agent works: what has changed, the diff, directories and files.
 *
 *  W1 Programs run as the agent, never as the daemon. Their output is untrusted, bounded, and loses its secrets.
 *  W2 Nothing is written to the workspace or to the agent's repository.
 *  W3 One git runs at a time. Callers with the same question share the next answer, and never one that began
 *     before the question.
 *  W4 Every question is answered: at the latest with a refusal after the deadline.
 */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Option from "effect/Option";
import type * as Scope from "effect/Scope";
import * as Semaphore from "effect/Semaphore";
import type { Redactor } from "../../src/domain/secret/redactor.ts";
import { storableText } from "../../src/domain/text.ts";
import { ENDING, NO_CHECKOUT, refusal, type ControlRefusal } from "../http/answer.ts";
import type { ControlAnswer } from "../http/answer.ts";
import { agentScript, type AgentScript } from "../git/agent-git.ts";
import { runForBytes, type FinishedBytes, type LaunchFailure } from "../agent/process.ts";
import type { Report } from "../report.ts";
import type { Settings } from "../settings.ts";
import {
  changesScript,
  diffScript,
  DIFF_MAX_BYTES,
  LIST_MAX_BYTES,
  readChanges,
  type Place,
} from "./changes.ts";
import { entriesScript, ENTRIES_MAX_BYTES, FILE_MAX_BYTES, readEntries, type Unread } from "./entries.ts";
import type { WorkspaceRead } from "./reading.ts";

/** Never rejects. */
export type WorkspaceSurface = (read: WorkspaceRead) => Promise<ControlAnswer>;

export interface WorkspaceOptions {
  readonly settings: Settings;
  readonly report: Pick<Report, "checkout">;
  readonly redactor: Redactor;
}

const GIT_DEADLINE = "15 seconds";
const FILES_DEADLINE = "5 seconds";
/** Directories and files that are read at once. */
const FILES_AT_ONCE = 2;
/** How many different questions wait. */
const WAITING_MAX = 16;

const BUSY = refusal(503, "workspace_busy", "Too many questions about the workspace wait. Try again.");
const SLOW = refusal(504, "workspace_slow", "Reading the workspace took too long, and was stopped.");
const TOO_LARGE = refusal(409, "workspace_too_large", "Too many files have changed to list them.");
const UNREADABLE = refusal(409, "workspace_unreadable", "Git could not read the workspace's repository.");
const UNREAD: Readonly<Record<Unread, ControlRefusal>> = {
  missing: refusal(404, "not_found", "Nothing is at this path."),
  link: refusal(409, "path_unreadable", "The path is a link, or leads through one. Links are not followed."),
  special: refusal(409, "path_unreadable", "The path is neither a file nor a directory."),
  denied: refusal(409, "path_unreadable", "The agent may not read this path."),
};

/** The surface, while the scope lives. */
export const makeWorkspace = Effect.fnUntraced(function* (
  options: WorkspaceOptions,
): Effect.fn.Return<WorkspaceSurface, never, Scope.Scope> {
  const scope = yield* Effect.scope;
  const reader = new WorkspaceReader(options);
  const [git, files] = [Semaphore.makeUnsafe(1), Semaphore.makeUnsafe(FILES_AT_ONCE)];
  const waiting = new Map<string, Promise<ControlAnswer>>();
  return (read) => {
    const key = JSON.stringify(read);
    const pending = waiting.get(key);
    if (pending !== undefined) return pending;
    if (waiting.size >= WAITING_MAX) return Promise.resolve(BUSY);
    // W3: from its start on, a reading is no longer shared.
    const start = Effect.suspend(() => {
      waiting.delete(key);
      return reader.answer(read);
    });
    const turn = (read.of === "files" ? files : git).withPermit(start);
    const answer = Promise.resolve().then(() =>
      Effect.runPromise(
        Effect.flatMap(Effect.forkIn(turn, scope), Fiber.join).pipe(
          Effect.catchCause(() => Effect.sync(() => void waiting.delete(key)).pipe(Effect.as(ENDING))),
        ),
      ),
    );
    waiting.set(key, answer);
    return answer;
  };
});

class WorkspaceReader {
  readonly #options: WorkspaceOptions;
  readonly #place: Place;

  constructor(options: WorkspaceOptions) {
    this.#options = options;
    const { launch, defaultBranch } = options.settings;
    const temporary = launch.commonEnv["TMPDIR"] ?? "/tmp";
    this.#place = { directory: `${temporary}/platform-workspace-${randomUUID()}`, defaultBranch };
  }

  answer(read: WorkspaceRead): Effect.Effect<ControlAnswer> {
    if (this.#options.report.checkout !== "done") return Effect.succeed(NO_CHECKOUT);
    if (read.of === "files") return this.#files(read.path);
    return read.of === "changes" ? this.#changes(read) : this.#diff(read);
  }

  #changes(read: Extract<WorkspaceRead, { of: "changes" }>): Effect.Effect<ControlAnswer> {
    const run = this.#run(changesScript(read, this.#place), LIST_MAX_BYTES, GIT_DEADLINE);
    return this.#told(run, ({ stdout, isWhole, code }) => {
      if (!isWhole) return TOO_LARGE;
      return code === 0 ? { done: readChanges(stdout, (path) => this.#clean(path)) } : UNREADABLE;
    });
  }

  #diff(read: Extract<WorkspaceRead, { of: "diff" }>): Effect.Effect<ControlAnswer> {
    const maxBytes = DIFF_MAX_BYTES + this.#reserve;
    const run = this.#run(
      diffScript(read, { maxBytes, path: read.path }, this.#place),
      maxBytes,
      GIT_DEADLINE,
    );
    return this.#told(run, ({ stdout, code }) => {
      if (code !== 0) return UNREADABLE;
      if (stdout.length <= DIFF_MAX_BYTES) return { done: { diff: this.#clean(stdout.toString("utf8")) } };
      const diff = this.#beginning(stdout.toString("utf8"), DIFF_MAX_BYTES);
      const whole = diff.slice(0, diff.lastIndexOf("\n") + 1);
      return {
        done: { diff: `${whole}[The diff is longer than ${DIFF_MAX_BYTES} bytes and was cut here.]\n` },
      };
    });
  }

  #files(path: string): Effect.Effect<ControlAnswer> {
    const script = entriesScript(path, FILE_MAX_BYTES + this.#reserve);
    return this.#told(this.#run(script, ENTRIES_MAX_BYTES, FILES_DEADLINE), ({ stdout }) => {
      const listing = readEntries(stdout, {
        name: (name) => this.#clean(name),
        cut: (text) => this.#beginning(text, FILE_MAX_BYTES),
      });
      return typeof listing === "string" ? UNREAD[listing] : { done: listing };
    });
  }

  #run(script: AgentScript, maxBytes: number, deadline: typeof GIT_DEADLINE | typeof FILES_DEADLINE) {
    return Effect.timeoutOption(runForBytes(agentScript(this.#options.settings, script), maxBytes), deadline);
  }

  #told(
    run: Effect.Effect<Option.Option<FinishedBytes>, LaunchFailure>,
    read: (output: FinishedBytes) => ControlAnswer,
  ): Effect.Effect<ControlAnswer> {
    return run.pipe(
      Effect.map((output) => Option.match(output, { onNone: () => SLOW, onSome: read })),
      Effect.catch(() => Effect.succeed(UNREADABLE)),
    );
  }

  /** The reserve beyond a limit, so that a secret across it is recognised. In bytes: a character has up to four. */
  get #reserve(): number {
    return 4 * this.#options.redactor.longest + 4;
  }

  #clean(text: string): string {
    return this.#options.redactor.redact(storableText(text));
  }

  /** The first `maxBytes` of a text that may be longer, cut between characters. */
  #beginning(text: string, maxBytes: number): string {
    const storable = storableText(text);
    const bytes = Buffer.from(storable);
    if (bytes.length <= maxBytes) return this.#clean(storable);
    const { length } = bytes
      .subarray(0, maxBytes)
      .toString("utf8")
      .replace(/\ufffd$/, "");
    return this.#options.redactor.redactBeginning(storable, length);
  }
}
