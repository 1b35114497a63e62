/**
 * Boots a sandbox: creates it at its provider, then polls its daemon until it reports readiness or a permanent failure.
 */
import * as Clock from "effect/Clock";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import { failure, type Failure } from "../../domain/session/failure.ts";
import { GitBackend } from "../../git/port.ts";
import type { SandboxEvent } from "../../machines/sandbox.ts";
import {
  DaemonClient,
  type DaemonHealth,
  type DaemonOutdated,
  DaemonUnreachable,
} from "../../sandbox/daemon.ts";
import { SandboxProvider, type SandboxError, type SandboxExit } from "../../sandbox/port.ts";
import { mintCredential } from "../../services/sessions/clone-credential.ts";
import { reportBoot, traceBoot } from "../../services/sessions/boot-times.ts";
import { serviceContext } from "../../services/sessions/service-context.ts";
import type { BootEnvironment } from "../../services/environments/environments.ts";
import type { CloneCredentials } from "../../store/ports/sessions/clone-credentials.ts";
import { Sandboxes, type Sandbox } from "../../store/ports/sessions/sandboxes.ts";
import type { StoreError } from "../../store/ports/journal.ts";
import { Measures, seconds, Traces } from "../../telemetry/port.ts";
import { Sessions } from "../../store/ports/sessions/sessions.ts";
import { restorer } from "./restoring.ts";
import { makeClaim, specRecipe, sandboxSpec, type SpecOptions } from "./spec.ts";

/** Pause between two attempts to give a waiting sandbox its session. */
const CLAIM_AGAIN = Duration.millis(50);
/** A daemon that does not listen yet is asked often. One that boots answers when it is ready. */
const BOOT_POLL = Duration.millis(20);
/** One that waited for its session is ready in a few of these. */
const CLAIMED_POLL = Duration.millis(5);

export const bootFailed = (reason: Failure): SandboxEvent => ({ type: "boot.failed", failure: reason });

/**
 * @returns a function that records, once, on a session's row that the agent runtime accepted the initial prompt (api.md
 * 7, exactly once).
 */
export const bootstrapNoter = Effect.map(
  Sessions,
  (sessions) => (sessionId: string, state: DaemonHealth["bootstrap"]["state"]) =>
    state === "done"
      ? Effect.flatMap(Clock.currentTimeMillis, (now) => sessions.acceptBootstrap(sessionId, now))
      : Effect.void,
);

/**
 * @returns a function that boots the sandbox of a record on an environment and ends with the outcome, at the latest after a whole
 * boot's time. That time begins here, however long the sandbox waited for its place. A boot that is no longer wanted has no
 * outcome.
 */
export const sandboxBooter = Effect.fnUntraced(function* (options: SpecOptions) {
  const provider = yield* SandboxProvider;
  const daemon = yield* DaemonClient;
  const sandboxes = yield* Sandboxes;
  const makeSpec = yield* sandboxSpec(options);
  const noteBootstrap = yield* bootstrapNoter;
  const measures = yield* Measures;
  const traces = yield* Traces;
  const start = yield* starter(options);
  const { restoring: restoringOf, note: noteRestored } = yield* restorer;
  return Effect.fnUntraced(function* (sandbox: Sandbox, environment: BootEnvironment) {
    const { id, sessionId, createdAt } = sandbox;
    const now = yield* Clock.currentTimeMillis;
    const bootDeadlineAt = now + options.bootTimeoutMs;
    // A boot that is done again begins again. Only a sandbox that must end is not booted.
    if (!(yield* sandboxes.beginBoot(id, { now, deadlineAt: bootDeadlineAt }))) return undefined;
    const since = seconds();
    let createSeconds: number | null = null;
    const health = Effect.flatMap(provider.link(id), (link) => daemon.health(link, "booted"));
    const preparation = yield* makeSpec({ id, sessionId, bootDeadlineAt }, environment);
    const last: LastWord = { health: null };
    const restoring = new RestoreTime();
    const restore = restoring.measure(restoringOf({ sandboxId: id, sessionId }));
    const earlyEnd = Effect.map(provider.awaitExit(id), (exit) => bootFailed(endedWhileBooting(exit, last)));
    const poll = (pause: Duration.Duration) =>
      Effect.raceFirst(pollUntilReady(health, { pause, last, restore }), earlyEnd);
    const booting = start(sandbox, preparation).pipe(
      Effect.tap(() => Effect.sync(() => (createSeconds = seconds() - since))),
      Effect.flatMap((how) => poll(how === "claimed" ? CLAIMED_POLL : BOOT_POLL)),
      // It began to boot before an upgrade of the service. Its agent has done nothing yet, so it is replaced.
      Effect.catchTag("DaemonOutdated", () =>
        provider
          .destroy(id)
          .pipe(Effect.andThen(provider.create(preparation.spec)), Effect.andThen(poll(BOOT_POLL))),
      ),
      Effect.catchTag("DaemonOutdated", ({ message }) =>
        Effect.succeed(bootFailed(failure("runtime_failed", message))),
      ),
      Effect.catchTag("SandboxError", (error) => Effect.succeed(bootFailed(notCreated(error)))),
    );
    const late = Effect.map(restoring.deadline(options.bootTimeoutMs), () => bootFailed(timedOut(last)));
    const outcome = yield* Effect.raceFirst(booting, late);
    const times = {
      isReady: outcome.type === "daemon.ready",
      waitedMs: now - createdAt,
      took: seconds() - since,
      created: createSeconds,
      steps: last.health?.boot ?? [],
    };
    reportBoot(measures, times);
    traceBoot(traces, { sessionId, sandboxId: id, from: now }, times);
    if (last.health !== null) yield* noteBootstrap(sessionId, last.health.bootstrap.state);
    // Before the session is live, so that a client that sees it live sees this too.
    yield* noteRestored({ sandboxId: id, sessionId }, last.health?.restored ?? null);
    return outcome;
  });
});

/** The time that a restoration takes, which does not count as the boot's. */
class RestoreTime {
  #isRunning = false;
  #spentMs = 0;

  measure<A, E, R>(restoration: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    const begin = Effect.map(Clock.currentTimeMillis, (since) => {
      this.#isRunning = true;
      return since;
    });
    const end = (since: number) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        this.#isRunning = false;
        this.#spentMs += now - since;
      });
    return Effect.acquireUseRelease(begin, () => restoration, end);
  }

  /** Ends when the boot has taken this long beside it. */
  deadline(timeoutMs: number): Effect.Effect<void> {
    const wait = (ms: number, countedMs: number): Effect.Effect<void> =>
      Effect.andThen(
        Effect.sleep(ms),
        Effect.suspend(() => {
          if (this.#isRunning) return wait(RESTORE_POLL_MS, countedMs);
          const more = this.#spentMs - countedMs;
          return more <= 0 ? Effect.void : wait(more, this.#spentMs);
        }),
      );
    return wait(timeoutMs, 0);
  }
}

/** How often a boot whose time is over looks whether the restoration has ended. */
const RESTORE_POLL_MS = 1_000;

/** What a sandbox boots by. */
type Made = Effect.Success<ReturnType<Effect.Success<ReturnType<typeof sandboxSpec>>>>;

/**
 * @returns a function that makes a session's sandbox run. One that waited for a session gets it, unless it has ended, or the
 * project has changed since it was started. Then it is replaced.
 */
const starter = Effect.fnUntraced(function* (options: SpecOptions) {
  const provider = yield* SandboxProvider;
  const daemon = yield* DaemonClient;
  const sandboxes = yield* Sandboxes;
  const measures = yield* Measures;
  const sign = yield* serviceContext;
  const git = yield* GitBackend;
  const credentials = yield* Effect.context<CloneCredentials>();

  /** Where the session branch is. Null if Git does not say: then the sandbox fetches. */
  const branchCommit = ({ id, projectId }: Made["session"]) =>
    Effect.catchTag(git.branchTip({ projectId }, id), "GitError", () => Effect.succeed(null));

  /** The claim is repeated until the boot's deadline, because one whose answer was lost may have begun. */
  const claim = Effect.fnUntraced(function* (id: string, { spec, session }: Made) {
    const sessionId = session.id;
    const minting = Effect.provideContext(mintCredential(options, session, id), credentials);
    const [credential, commit] = yield* Effect.all([minting, branchCommit(session)], {
      concurrency: "unbounded",
    });
    const body = makeClaim(spec, { sessionId, branchCommit: commit, credential });
    const attempt = Effect.gen(function* () {
      const link = yield* provider.link(id);
      yield* daemon.claim(link, yield* sign(id, sessionId), body);
    });
    yield* Effect.orDie(Effect.retry(attempt, Schedule.spaced(CLAIM_AGAIN)));
    return "claimed" as const;
  });

  return Effect.fnUntraced(function* ({ id, warmRecipe }: Sandbox, prepared: Made) {
    const { spec } = prepared;
    if (warmRecipe !== null) {
      const outcome =
        warmRecipe === specRecipe(spec)
          ? yield* Effect.raceFirst(Effect.as(provider.awaitExit(id), "ended" as const), claim(id, prepared))
          : "outdated";
      measures.count("warm_claims_total", { outcome });
      if (outcome === "claimed") return outcome;
      yield* provider.destroy(id);
      yield* sandboxes.forgetWarmth(id);
    }
    yield* provider.create(spec);
    return "started" as const;
  });
});

/** The daemon's last answer, for the message that explains a failed boot. */
interface LastWord {
  health: DaemonHealth | null;
}

interface Polling {
  readonly pause: Duration.Duration;
  readonly last: LastWord;
  /** Gives the sandbox the saved work that it waits for. */
  readonly restore: Effect.Effect<void, StoreError>;
}

/** Ends with the boot's outcome: `running` is written only on the daemon's own word (api.md 3). */
const pollUntilReady = (
  health: Effect.Effect<DaemonHealth, SandboxError | DaemonUnreachable | DaemonOutdated>,
  { pause, last, restore }: Polling,
) =>
  Effect.gen(function* () {
    last.health = yield* health;
    if (last.health.restore === "wanted") yield* restore;
    if (last.health.runtime.state === "failed" || last.health.status === "error")
      return bootFailed(saidFailed(last.health));
    if (!last.health.repo.ready || last.health.runtime.state !== "ready") return yield* BOOTING;
    return { type: "daemon.ready" as const };
  }).pipe(
    Effect.retry({ while: ({ _tag }) => _tag !== "DaemonOutdated", schedule: Schedule.spaced(pause) }),
    // The schedule is endless, so these two never end the retry.
    Effect.catchTags({ SandboxError: Effect.die, DaemonUnreachable: Effect.die, StoreError: Effect.die }),
  );

const BOOTING = new DaemonUnreachable({ message: "the daemon boots" });

const notCreated = ({ node, code, message }: SandboxError): Failure =>
  failure(node === "dead" ? "sandbox_lost" : (code ?? "sandbox_create_failed"), message);

export const lostFailure = ({ code, message }: SandboxExit): Failure =>
  failure(code === "memory_exceeded" || code === "disk_exceeded" ? code : "sandbox_lost", message);

function saidFailed(health: DaemonHealth): Failure {
  const code = health.repo.ready ? "runtime_failed" : "clone_failed";
  return failure(code, health.error ?? "the agent runtime failed and gave no reason");
}

function endedWhileBooting(exit: SandboxExit, { health }: LastWord): Failure {
  const reason = health?.error ?? null;
  const { code, message } = lostFailure(exit);
  return failure(code, reason === null ? message : `${message}; the daemon last said: ${reason}`);
}

function timedOut({ health }: LastWord): Failure {
  if (health === null) {
    return failure("boot_timeout", "the boot deadline passed before the daemon answered");
  }
  const missing = health.repo.ready ? "the agent runtime was not ready" : "the repository was not cloned";
  const reason = health.error === null ? "" : `: ${health.error}`;
  return failure(overdue(health), `${missing} before the boot deadline${reason}`);
}

/** Which part held up the boot: a daemon that reports an error names the part. */
function overdue(health: DaemonHealth): Failure["code"] {
  if (health.error === null) return "boot_timeout";
  return health.repo.ready ? "runtime_failed" : "clone_failed";
}
