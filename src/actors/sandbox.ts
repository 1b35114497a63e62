/** Makes happen what the sandbox machine decides: boot at the provider, watch, keep its log, destroy, tell the session. */
import * as Clock from "effect/Clock";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import { failure, type Failure } from "../domain/failure.ts";
import { sandbox, type SandboxCommand, type SandboxEvent } from "../machines/sandbox.ts";
import type { DaemonHealth } from "../sandbox/daemon.ts";
import { DaemonClient } from "../sandbox/daemon.ts";
import { SandboxProvider, type SandboxError, type SandboxExit } from "../sandbox/port.ts";
import type { StoreError } from "../store/journal.ts";
import { storableText } from "../domain/text.ts";
import { Sandboxes, Sessions } from "../store/port.ts";
import { SessionLogs } from "../store/session-logs.ts";
import { Actors } from "./actors.ts";
import { actorLayer, type EntityOptions } from "./cluster.ts";
import { told } from "./delivery.ts";
import { startActor, type Handlers } from "./host.ts";
import { bootTimeLeft, sandboxSpec, type SpecOptions } from "./sandbox-spec.ts";
import { backoff, givenUp } from "./supervisor.ts";

export interface SandboxActorOptions extends EntityOptions, SpecOptions {}

/** A booting daemon is asked often, so that `running` follows readiness at once; a running one now and then. */
const BOOT_POLL = Duration.millis(20);
const WATCH_POLL = Duration.seconds(2);

/** The sandbox entities. Their rows are opened by the session actor. */
export const sandboxActors = (options: SandboxActorOptions) =>
  actorLayer(
    "sandbox",
    Effect.fnUntraced(function* (id: string) {
      const { memory } = yield* Sandboxes;
      const handlers = yield* handlersOf(id, options);
      return yield* startActor({
        id,
        machine: sandbox,
        memory,
        handlers,
        mailbox: 64,
        restarts: { restarts: 5, withinMs: 30_000 },
      });
    }),
    options,
  );

const bootFailed = (reason: Failure): SandboxEvent => ({ type: "boot.failed", failure: reason });

const handlersOf = Effect.fnUntraced(function* (id: string, options: SandboxActorOptions) {
  const sandboxes = yield* Sandboxes;
  const sessions = yield* Sessions;
  const actors = yield* Actors;
  const destroyed = yield* sandboxDestroyer(id);
  const provider = yield* SandboxProvider;
  const makeSpec = yield* sandboxSpec(options);
  const daemon = yield* DaemonClient;
  const record = Effect.flatMap(sandboxes.get(id), (row) =>
    row === null ? Effect.die(new Error(`sandbox ${id} has no row`)) : Effect.succeed(row),
  );
  const health = Effect.flatMap(provider.link(id), daemon.health);
  /** The agent runtime took the initial prompt: said once to the session's row (api.md 7, exactly once). */
  const noteBootstrap = (sessionId: string, state: string) =>
    state === "done"
      ? Effect.flatMap(Clock.currentTimeMillis, (now) => sessions.acceptBootstrap(sessionId, now))
      : Effect.void;

  const boot = Effect.gen(function* () {
    const { sessionId, bootDeadlineAt } = yield* record;
    const spec = yield* makeSpec(id);
    const last: LastWord = { health: null };
    const ready = pollUntilReady(health, last);
    const ended = Effect.map(provider.awaitExit(id), (exit) => bootFailed(endedWhileBooting(exit, last)));
    const booting = Effect.andThen(provider.create(spec), Effect.raceFirst(ready, ended)).pipe(
      Effect.catchTag("SandboxError", (error) => Effect.succeed(bootFailed(notCreated(error)))),
    );
    const left = bootTimeLeft(bootDeadlineAt, yield* Clock.currentTimeMillis, options.bootTimeoutMs);
    const outcome = yield* Effect.timeoutOrElse(booting, {
      duration: left,
      orElse: () => Effect.succeed(bootFailed(timedOut(last))),
    });
    if (last.health !== null) yield* noteBootstrap(sessionId, last.health.bootstrap.state);
    return outcome;
  });

  const watch = Effect.gen(function* () {
    const { sessionId } = yield* record;
    const listen = Effect.gen(function* () {
      const { bootstrap } = yield* health;
      yield* noteBootstrap(sessionId, bootstrap.state);
    }).pipe(Effect.ignore, Effect.repeat(Schedule.spaced(WATCH_POLL)), Effect.andThen(Effect.never));
    const exit = yield* Effect.raceFirst(provider.awaitExit(id), listen);
    return { type: "sandbox.lost" as const, failure: lost(exit) };
  });

  const report = (
    event: (sandboxId: string) => Parameters<typeof actors.session>[1],
  ): Effect.Effect<undefined, StoreError> =>
    Effect.flatMap(record, ({ sessionId }) => told(actors.session(sessionId, event(id))));

  return {
    bootSandbox: {
      perform: () => boot,
      gaveUp: (_, reason) => bootFailed(givenUp(reason)),
    },
    watchSandbox: {
      perform: () => watch,
      // Unwatched it could end and nobody would know: its session must not run on as if it lived.
      gaveUp: (_, reason) => ({ type: "sandbox.lost", failure: givenUp(reason) }),
    },
    destroySandbox: {
      supersedes: ["bootSandbox", "watchSandbox"],
      perform: () => Effect.as(destroyed, undefined),
    },
    reportLive: { perform: () => report((sandboxId) => ({ type: "sandbox.live", sandboxId })) },
    reportFailed: {
      perform: (command) =>
        report((sandboxId) => ({ type: "sandbox.failed", sandboxId, failure: command.failure })),
    },
    reportLost: {
      perform: (command) =>
        report((sandboxId) => ({ type: "sandbox.lost", sandboxId, failure: command.failure })),
    },
  } satisfies Handlers<SandboxEvent, SandboxCommand>;
});

/** What the daemon said last, for the sentence that explains a boot that failed. */
interface LastWord {
  health: DaemonHealth | null;
}

/** Ends with the boot's outcome: `running` is written only on the daemon's own word (api.md 3). */
const pollUntilReady = <E, R>(health: Effect.Effect<DaemonHealth, E, R>, last: LastWord) =>
  Effect.gen(function* () {
    last.health = yield* health;
    if (last.health.runtime.state === "failed" || last.health.status === "error")
      return bootFailed(saidFailed(last.health));
    if (!last.health.repo.ready || last.health.runtime.state !== "ready")
      return yield* Effect.fail("booting" as const);
    return { type: "daemon.ready" as const };
  }).pipe(Effect.retry(Schedule.spaced(BOOT_POLL)), Effect.orDie);

/**
 * Ends a sandbox, keeps its log, and destroys it. The provider's own record of the log goes with the sandbox: a crash
 * before that finds all of it again.
 */
const sandboxDestroyer = Effect.fnUntraced(function* (id: string) {
  const logs = yield* SessionLogs;
  const provider = yield* SandboxProvider;
  return Effect.gen(function* () {
    yield* forSure("ended", provider.end(id));
    const text = storableText(yield* logOf(provider.logs(id)));
    yield* logs.keep({ sandboxId: id, text, now: yield* Clock.currentTimeMillis });
    yield* forSure("destroyed", provider.destroy(id));
  });
});

/** What is left of a sandbox runs (I9): its end is tried again for ever, 100 ms doubling to 30 s. */
const forSure = (what: "ended" | "destroyed", end: Effect.Effect<void, SandboxError>): Effect.Effect<void> =>
  end.pipe(
    Effect.tapError((error) => Effect.logError(`a sandbox could not be ${what}; trying again`, { error })),
    Effect.retry(backoff("100 millis", "30 seconds")),
    Effect.orDie,
  );

/** How often an ended sandbox's log is asked for. One that cannot be read must not keep the sandbox for ever. */
const LOG_ATTEMPTS = 5;

const logOf = (logs: Effect.Effect<string, SandboxError>): Effect.Effect<string> =>
  logs.pipe(
    Effect.retry({ schedule: backoff("100 millis", "2 seconds"), times: LOG_ATTEMPTS - 1 }),
    Effect.catch((error) =>
      Effect.as(Effect.logError("the log of a sandbox could not be read and is lost", { error }), ""),
    ),
  );

const notCreated = (error: SandboxError): Failure => failure("sandbox_create_failed", error.message);

const lost = ({ code, message }: SandboxExit): Failure =>
  failure(code === "memory_exceeded" || code === "disk_exceeded" ? code : "sandbox_lost", message);

function saidFailed(health: DaemonHealth): Failure {
  const code = health.repo.ready ? "runtime_failed" : "clone_failed";
  return failure(code, health.error ?? "the agent runtime failed and gave no reason");
}

function endedWhileBooting(exit: SandboxExit, { health }: LastWord): Failure {
  const reason = health?.error ?? null;
  const { code, message } = lost(exit);
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

/** What held a boot up: a daemon that has something to complain of says which part it is. */
function overdue(health: DaemonHealth): Failure["code"] {
  if (health.error === null) return "boot_timeout";
  return health.repo.ready ? "runtime_failed" : "clone_failed";
}
