/**
 * The control surface that changes something: refresh, env and save (api.md 7).
 *
 *  C1 They take turns: what one of them does to the repository and the runtime is done before the next begins.
 *  C2 A second refresh is refused while one is under way, the first checkout among them; env and save wait.
 *  C3 The daemon restarts the runtime only for these, and says in the answer when that cut a turn.
 *  C4 What was begun is ended with the daemon, whoever asked has left or not.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import type * as Scope from "effect/Scope";
import * as Semaphore from "effect/Semaphore";
import { cutFront, storableText } from "../src/domain/text.ts";
import type { RuntimeAdapter } from "./adapters/adapter.ts";
import { readEnvChange, type AgentEnv } from "./agent-env.ts";
import { invalid, type Refused } from "./answer.ts";
import type { ConfigDir } from "./config-dir.ts";
import type { HttpFailure } from "./http-client.ts";
import type { Log } from "./logs/log.ts";
import type { Redactor } from "./logs/redact.ts";
import { pull, type Pulled } from "./git/refresh.ts";
import type { Report } from "./report.ts";
import type { ControlName } from "./route.ts";
import { isBusyNow, type Renewed, type Runtime } from "./runtime.ts";
import { save } from "./saving/save.ts";
import type { Settings } from "./settings.ts";

/** Answered with 200 and what was done, or refused. */
export type ControlAnswer = { readonly done: object } | Refused;

/** Never rejects. */
export type ControlSurface = (name: ControlName, body: unknown) => Promise<ControlAnswer>;

/** What there is to control once the daemon's parts stand. */
export interface Controlled {
  readonly runtime: Runtime;
  /** The config directory that the runtime's next start takes. */
  readonly setConfigDir: (configDir: ConfigDir) => void;
}

export interface ControlOptions {
  readonly settings: Settings;
  readonly adapter: RuntimeAdapter;
  readonly report: Report;
  readonly redactor: Redactor;
  readonly log: Log;
  readonly agentEnv: AgentEnv;
  readonly controlled: Deferred.Deferred<Controlled>;
  /** Puts a new clone credential where git finds it. */
  readonly renewCredential: Effect.Effect<unknown, HttpFailure>;
}

/** Longest error text in an answer. */
const MAX_ERROR_LENGTH = 4096;
/** What git says when its credential has ended; the words are git's, and only a second attempt hangs on them. */
const REFUSED_CREDENTIAL = /Authentication failed|could not read Username|HTTP 401|error: 401/;

/** The surface for as long as the scope lives. */
export const makeControl = Effect.fnUntraced(function* (
  options: ControlOptions,
): Effect.fn.Return<ControlSurface, never, Scope.Scope> {
  const scope = yield* Effect.scope;
  const control = new Control(options);
  return (name, body) =>
    Effect.runPromise(
      Effect.flatMap(Effect.forkIn(control.handle(name, body), scope), Fiber.join).pipe(
        Effect.catchCause(() => Effect.succeed(ENDING)),
      ),
    );
});

const refusal = (status: number, code: string, error: string): Refused => ({
  status,
  body: { error, code },
});

const ENDING = refusal(503, "ending", "The sandbox is stopping.");
const IN_PROGRESS = refusal(409, "refresh_in_progress", "A fetch of the session branch is already running.");
const TURN_IN_PROGRESS = refusal(409, "turn_in_progress", "The agent is working. Nothing was changed.");
const NO_CHECKOUT = refusal(503, "runtime_not_ready", "The repository could not be checked out.");
const NOT_PULLED = {
  diverged: refusal(
    409,
    "diverged",
    "The workspace has commits that are not pushed. Push or drop them first. Nothing was changed.",
  ),
  uncommitted_changes: refusal(
    409,
    "uncommitted_changes",
    "The workspace has uncommitted changes. Commit or drop them first. Nothing was changed.",
  ),
};

class Control {
  readonly #options: ControlOptions;
  readonly #turns = Semaphore.makeUnsafe(1);
  #refreshing = false;

  constructor(options: ControlOptions) {
    this.#options = options;
  }

  handle(name: ControlName, body: unknown): Effect.Effect<ControlAnswer> {
    if (name === "env") return this.#env(body);
    if (!isEmpty(body)) return Effect.succeed(invalid("", "must be an empty object"));
    return name === "refresh" ? this.#refresh : this.#save;
  }

  /** C2: the flag is taken and seen within one step of the program. */
  get #refresh(): Effect.Effect<ControlAnswer> {
    const { report } = this.#options;
    return Effect.suspend(() => {
      if (report.checkout === "failed") return Effect.succeed(NO_CHECKOUT);
      if (this.#refreshing || report.checkout === "running") return Effect.succeed(IN_PROGRESS);
      this.#refreshing = true;
      return Effect.ensuring(
        this.#turns.withPermit(this.#pullAndRenew),
        Effect.sync(() => {
          this.#refreshing = false;
        }),
      );
    });
  }

  get #pullAndRenew(): Effect.Effect<ControlAnswer> {
    const { settings, adapter, report, log, controlled } = this.#options;
    return Effect.gen({ self: this }, function* () {
      const pulled = yield* this.#withCredential(pull(settings, adapter.ownEdit), failureOf);
      if (pulled.outcome === "failed")
        return refusal(
          502,
          "refresh_failed",
          `The session branch was not fetched: ${this.#told(pulled.message)}`,
        );
      if (pulled.outcome !== "pulled") return NOT_PULLED[pulled.outcome];
      const { before, after, configDir } = pulled;
      report.setRepo({ commit: after });
      report.setError("checkout", configDir.problem);
      const { runtime, setConfigDir } = yield* Deferred.await(controlled);
      setConfigDir(configDir);
      log("refreshed", { before, after });
      return this.#renewed(yield* runtime.renew, { repo: { before, after } });
    });
  }

  #env(body: unknown): Effect.Effect<ControlAnswer> {
    const { adapter, report, agentEnv, controlled, log } = this.#options;
    const read = readEnvChange(body);
    if ("status" in read) return Effect.succeed(read);
    const change = Effect.gen({ self: this }, function* () {
      // As late as can be: a turn may begin after whoever asks for the change has looked.
      if (read.afterTurn && (yield* isBusyNow({ adapter, report }))) return TURN_IN_PROGRESS;
      const taken = agentEnv.change(read);
      if ("status" in taken) return taken;
      const { changed, revision } = taken;
      if (changed.length === 0) {
        return { done: { changed, revision, restarted: false, turn_interrupted: false } };
      }
      log("environment changed", { names: changed.join(","), revision });
      const { runtime } = yield* Deferred.await(controlled);
      return this.#renewed(yield* runtime.renew, { changed, revision, restarted: true });
    });
    return this.#turns.withPermit(change);
  }

  get #save(): Effect.Effect<ControlAnswer> {
    const { settings, report, log } = this.#options;
    return this.#turns.withPermit(
      Effect.gen({ self: this }, function* () {
        // Before the checkout the agent has done nothing yet.
        const nothing = { wip: null, skipped: [], error: null };
        if (report.checkout !== "done") return { done: nothing };
        const saved = yield* this.#withCredential(save(settings), ({ error }) => error);
        const error = saved.error === null ? null : this.#told(saved.error);
        // A name of a file or a branch may hold a secret too.
        const { redactor } = this.#options;
        const skipped = saved.skipped.map(({ path, reason }) => ({ path: redactor.redact(path), reason }));
        log("saved", { wip: saved.wip, skipped: skipped.length, error });
        return { done: { wip: saved.wip, skipped, error } };
      }),
    );
  }

  /** Asks git once more where its credential had ended: the daemon renews it, and only git knows that it was refused. */
  #withCredential<A>(work: Effect.Effect<A>, failure: (outcome: A) => string | null): Effect.Effect<A> {
    return Effect.flatMap(work, (outcome) =>
      REFUSED_CREDENTIAL.test(failure(outcome) ?? "")
        ? Effect.andThen(Effect.ignore(this.#options.renewCredential), work)
        : Effect.succeed(outcome),
    );
  }

  /** What is done is said also where the runtime does not come back: it is not undone by that. */
  #renewed({ answers, turnInterrupted }: Renewed, done: Readonly<Record<string, unknown>>): ControlAnswer {
    const { runtime } = this.#options.report;
    const told = { ...done, turn_interrupted: turnInterrupted };
    if (answers) return { done: "repo" in done ? { ...told, runtime } : told };
    return {
      status: 502,
      body: {
        error: "The agent runtime was restarted but does not respond. The service restarts it again.",
        code: "runtime_failed",
        details: { ...told, runtime },
      },
    };
  }

  #told(text: string): string {
    // Redacted whole, then cut: half a secret would not be known as one. What went wrong stands at the end.
    return cutFront(this.#options.redactor.redact(storableText(text)), MAX_ERROR_LENGTH);
  }
}

const failureOf = (pulled: Pulled): string | null => (pulled.outcome === "failed" ? pulled.message : null);

const isEmpty = (body: unknown): boolean =>
  typeof body === "object" && body !== null && !Array.isArray(body) && Object.keys(body).length === 0;
