/**
 * The control surface for changes: refresh, env and withdraw (api.md 7).
 *
 *  C1 Refresh and env take turns with each other and with saves: each completes its work on the repository and the runtime before the
 *     next begins. A subscription is withdrawn without a wait.
 *  C2 A refresh is refused while another one, or the first checkout, is under way. env and save wait.
 *  C3 The daemon restarts the runtime only for these calls, and reports if that interrupted a turn.
 *  C4 A call that has begun ends with the daemon, even if its caller has left.
 */
import * as Clock from "effect/Clock";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import type * as Scope from "effect/Scope";
import type * as Semaphore from "effect/Semaphore";
import { isRecord } from "../../src/ground/record.ts";
import { cutFront, cutText, storableText } from "../../src/domain/text.ts";
import type { RuntimeAdapter } from "../adapters/adapter.ts";
import { readEnvChange, type AgentEnv } from "../agent/env.ts";
import { type ControlAnswer, ENDING, invalid, refusal } from "./answer.ts";
import type { ConfigDir } from "../boot/config-dir.ts";
import type { HttpFailure } from "./client.ts";
import type { Log } from "../logs/log.ts";
import type { Launch } from "../agent/process.ts";
import type { OwnSubscription } from "../agent/subscription.ts";
import type { ConversationFeed } from "../conversation/feed.ts";
import { noteItem } from "../conversation/note.ts";
import type { Redactor } from "../../src/domain/secret/redactor.ts";
import { pull, type Pulled } from "../git/refresh.ts";
import type { Report } from "../report.ts";
import type { ControlName } from "./route.ts";
import { isBusyNow, type Renewed, type Runtime } from "../agent/runtime.ts";
import type { Settings } from "../settings.ts";
import type { Steering } from "../agent/steering.ts";

/** Never rejects. */
export type ControlSurface = (name: ControlName, body: unknown) => Promise<ControlAnswer>;

/** The daemon's parts that the control surface uses, once they exist. */
export interface Controlled {
  readonly runtime: Runtime;
  /** Sets the config directory for the runtime's next start. */
  readonly setConfigDir: (configDir: ConfigDir) => void;
  /** A command on the agent's side. */
  readonly launch: (command: readonly string[]) => Launch;
}

export interface ControlOptions {
  readonly settings: Settings;
  readonly adapter: RuntimeAdapter;
  readonly report: Report;
  readonly redactor: Redactor;
  readonly log: Log;
  readonly agentEnv: AgentEnv;
  readonly steering: Pick<Steering, "isTurnOpen">;
  readonly controlled: Deferred.Deferred<Controlled>;
  /** Only one thing at a time changes the workspace or restarts the runtime. */
  readonly quiet: Semaphore.Semaphore;
  readonly subscription: Pick<OwnSubscription, "held" | "withdraw">;
  readonly feed: Pick<ConversationFeed, "item">;
  /** Writes a new clone credential for git. */
  readonly renewCredential: Effect.Effect<unknown, HttpFailure>;
}

/** The longest note on a withdrawal. */
const MAX_REASON_LENGTH = 1000;
/** The longest error text in an answer. */
const MAX_ERROR_LENGTH = 4096;
/** Git's messages for an expired credential. They only decide whether to try a second time. */
const REFUSED_CREDENTIAL = /Authentication failed|could not read Username|HTTP 401|error: 401/;

/** The control surface, while the scope lives. */
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

const IN_PROGRESS = refusal(409, "refresh_in_progress", "A fetch of the session branch is already running.");
const TURN_IN_PROGRESS = refusal(409, "turn_in_progress", "The agent is working. Nothing was changed.");
const STILL_HELD = refusal(503, "runtime_not_ready", "The agent runtime does not end.");
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
  #refreshing = false;

  constructor(options: ControlOptions) {
    this.#options = options;
  }

  handle(name: ControlName, body: unknown): Effect.Effect<ControlAnswer> {
    if (name === "env") return this.#env(body);
    if (name === "withdraw") return this.#withdraw(body);
    if (!isEmpty(body)) return Effect.succeed(invalid("", "must be an empty object"));
    return this.#refresh;
  }

  /** C2: the flag is checked and set in one synchronous step. */
  get #refresh(): Effect.Effect<ControlAnswer> {
    const { report } = this.#options;
    return Effect.suspend(() => {
      if (report.checkout === "failed") return Effect.succeed(NO_CHECKOUT);
      if (this.#refreshing || report.checkout === "running") return Effect.succeed(IN_PROGRESS);
      this.#refreshing = true;
      return Effect.ensuring(
        this.#options.quiet.withPermit(this.#pullAndRenew),
        Effect.sync(() => {
          this.#refreshing = false;
        }),
      );
    });
  }

  get #pullAndRenew(): Effect.Effect<ControlAnswer> {
    const { settings, adapter, report, log, controlled } = this.#options;
    return Effect.gen({ self: this }, function* () {
      const pullResult = yield* this.#withCredential(
        pull(settings, adapter.ownEdit?.pattern ?? null),
        pullFailure,
      );
      if (pullResult.outcome === "failed")
        return refusal(
          502,
          "refresh_failed",
          `The session branch was not fetched: ${this.#told(pullResult.message)}`,
        );
      if (pullResult.outcome !== "pulled") return NOT_PULLED[pullResult.outcome];
      const { before, after, configDir } = pullResult;
      report.setRepo({ commit: after });
      report.setError("checkout", configDir.problem);
      const { runtime, setConfigDir } = yield* Deferred.await(controlled);
      setConfigDir(configDir);
      log("refreshed", { before, after });
      return this.#renewed(yield* runtime.renew, { repo: { before, after } });
    });
  }

  #env(body: unknown): Effect.Effect<ControlAnswer> {
    const { adapter, report, agentEnv, steering, controlled, log } = this.#options;
    const read = readEnvChange(body);
    if ("status" in read) return Effect.succeed(read);
    const change = Effect.gen({ self: this }, function* () {
      // Checked as late as possible: a turn may begin after the caller has looked.
      if (read.afterTurn && (steering.isTurnOpen || (yield* isBusyNow({ adapter, report }))))
        return TURN_IN_PROGRESS;
      const outcome = agentEnv.change(read);
      if ("status" in outcome) return outcome;
      const { changed, revision } = outcome;
      if (changed.length === 0) {
        return { done: { changed, revision, restarted: false, turn_interrupted: false } };
      }
      log("environment changed", { names: changed.join(","), revision });
      const { runtime } = yield* Deferred.await(controlled);
      return this.#renewed(yield* runtime.renew, { changed, revision, restarted: true });
    });
    return this.#options.quiet.withPermit(change);
  }

  /** Takes the own subscription of the session's person from the runtime. The conversation says why. */
  #withdraw(body: unknown): Effect.Effect<ControlAnswer> {
    const { controlled, subscription, feed, ...parts } = this.#options;
    if (!isRecord(body) || typeof body["reason"] !== "string")
      return Effect.succeed(invalid("reason", "must be a sentence for the conversation"));
    const reason = storableText(cutText(body["reason"], MAX_REASON_LENGTH));
    return Effect.gen(function* () {
      const { runtime, launch } = yield* Deferred.await(controlled);
      const had = subscription.held !== null;
      const isGone = yield* subscription.withdraw({ ...parts, launch }, runtime.restart);
      if (had) feed.item(noteItem("subscription", reason, yield* Clock.currentTimeMillis));
      return isGone ? { done: { withdrawn: had } } : STILL_HELD;
    });
  }

  /** Retries git once if its credential had expired: the daemon renews it, and only git knows that it was refused. */
  #withCredential<A>(work: Effect.Effect<A>, failure: (outcome: A) => string | null): Effect.Effect<A> {
    return Effect.flatMap(work, (outcome) =>
      REFUSED_CREDENTIAL.test(failure(outcome) ?? "")
        ? Effect.andThen(Effect.ignore(this.#options.renewCredential), work)
        : Effect.succeed(outcome),
    );
  }

  /** Reports the completed work even if the runtime does not come back: the work is not undone. */
  #renewed({ answers, turnInterrupted }: Renewed, work: Readonly<Record<string, unknown>>): ControlAnswer {
    const { runtime } = this.#options.report;
    const body = { ...work, turn_interrupted: turnInterrupted };
    if (answers) return { done: "repo" in work ? { ...body, runtime } : body };
    return {
      status: 502,
      body: {
        error: "The agent runtime was restarted but does not respond. The service restarts it again.",
        code: "runtime_failed",
        details: { ...body, runtime },
      },
    };
  }

  #told(text: string): string {
    // Redacted before it is cut: half a secret would not be recognised. The end is kept, because it contains the error.
    return cutFront(this.#options.redactor.redact(storableText(text)), MAX_ERROR_LENGTH);
  }
}

const pullFailure = (result: Pulled): string | null => (result.outcome === "failed" ? result.message : null);

const isEmpty = (body: unknown): boolean => isRecord(body) && Object.keys(body).length === 0;
