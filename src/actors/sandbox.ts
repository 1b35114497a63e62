/**
 * Interprets the sandbox machine's commands: boots it at the provider, watches it, saves its work, keeps its log,
 * destroys it, and tells the session.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { failure, STARTED_ELSEWHERE, type Failure } from "../domain/session/failure.ts";
import { isOfOriginal } from "../ground/pause.ts";
import { notSaved, savedWords, unfinishedSave, type Saved } from "../domain/save/saved.ts";
import { SKIPPED } from "../domain/save/shown.ts";
import { stillUnsaved } from "../domain/save/order.ts";
import { sandbox, type SandboxCommand, type SandboxEvent } from "../machines/sandbox.ts";
import { SandboxProvider, type SandboxError } from "../sandbox/port.ts";
import type { StoreError } from "../store/ports/journal.ts";
import { storableText } from "../domain/text.ts";
import { Conversations } from "../store/ports/sessions/conversations.ts";
import { Projects } from "../store/ports/projects/projects.ts";
import { type Sandbox, Sandboxes } from "../store/ports/sessions/sandboxes.ts";
import { Sessions, type Session } from "../store/ports/sessions/sessions.ts";
import { SessionLogs } from "../store/ports/sessions/session-logs.ts";
import { Actors } from "../services/actors.ts";
import { answeredInTime } from "../services/answered.ts";
import { actorLayer, type EntityOptions } from "./cluster.ts";
import { Environments } from "../services/environments/environments.ts";
import { BootPlaces } from "../services/sessions/boot-places.ts";
import { deliver } from "./delivery.ts";
import { startActor, type ActorLimits, type Handlers } from "./host.ts";
import { SaveOccasions } from "./sandboxes/continuous-saves.ts";
import { workSaver, type SavingOptions } from "./sandboxes/work-saver.ts";
import { bootFailed, sandboxBooter } from "./sandboxes/boot.ts";
import type { SpecOptions } from "./sandboxes/spec.ts";
import { startAwaited } from "./sandboxes/outdated-daemon.ts";
import type { RequestOptions } from "./conversations/runtime-reports.ts";
import { noteLost } from "./sandboxes/lost.ts";
import { sandboxWatcher } from "./sandboxes/watch.ts";
import { givenUp } from "./supervisor.ts";
import { backoff } from "../ground/backoff.ts";

export const SANDBOX_LIMITS: ActorLimits = { mailbox: 64, restarts: { restarts: 5, withinMs: 30_000 } };

export interface SandboxActorOptions extends EntityOptions, SpecOptions, SavingOptions, RequestOptions {}

/** The sandbox entities. The session actor creates their rows. */
export const sandboxActors = (options: SandboxActorOptions) =>
  actorLayer(
    "sandbox",
    Effect.fnUntraced(function* (id: string) {
      const { memory } = yield* Sandboxes;
      const handlers = yield* makeHandlers(id, options);
      return yield* startActor({
        id,
        machine: sandbox,
        memory,
        handlers,
        ...SANDBOX_LIMITS,
      });
    }),
    { ...options, again: null },
  );

/**
 * Boots a sandbox of a record on the environment of its project. It waits for a first build without a place to boot, so
 * others boot meanwhile.
 */
const bootInTurn = Effect.fnUntraced(function* (
  record: Effect.Effect<Sandbox, StoreError>,
  options: SandboxActorOptions,
) {
  const projects = yield* Projects;
  const sessions = yield* Sessions;
  const environments = yield* Environments;
  const places = yield* BootPlaces;
  const boot = yield* sandboxBooter(options);
  return Effect.gen(function* () {
    const row = yield* record;
    const projectId = (yield* sessions.get(row.sessionId))?.projectId ?? row.sessionId;
    const [state = null] = yield* projects.states([projectId]);
    const environment = yield* environments.forBoot(row, { projectId, manifest: state?.manifest ?? null });
    // A sandbox that waited has started already, and needs no place.
    if (row.warmRecipe !== null) return yield* boot(row, environment);
    const booting = Effect.flatMap(record, (newest) => boot(newest, environment));
    return yield* places.boot(projectId, booting);
  }).pipe(
    Effect.catchTags({
      EnvironmentFailed: ({ message }) => Effect.succeed(bootFailed(failure("environment_failed", message))),
      BrokenAgent: ({ message }) => Effect.succeed(bootFailed(failure("runtime_failed", message))),
    }),
  );
});

const makeHandlers = Effect.fnUntraced(function* (id: string, options: SandboxActorOptions) {
  const sandboxes = yield* Sandboxes;
  const destroy = yield* sandboxDestroyer(id);
  const { save, release } = yield* workSaver(options);
  const watchSandbox = yield* sandboxWatcher(options);
  const record = Effect.flatMap(sandboxes.get(id), (row) =>
    row === null ? Effect.die(new Error(`sandbox ${id} has no row`)) : Effect.succeed(row),
  );
  const boot = yield* bootInTurn(record, options);
  const occasions = new SaveOccasions();
  const watch = Effect.flatMap(record, ({ sessionId }) => watchSandbox({ id, sessionId, occasions }));

  return {
    bootSandbox: {
      perform: () =>
        Effect.flatMap(record, ({ createdAt }) => isOfOriginal(createdAt)).pipe(
          Effect.flatMap((isElsewhere) =>
            isElsewhere ? Effect.succeed(bootFailed(STARTED_ELSEWHERE)) : boot,
          ),
        ),
      gaveUp: (_, reason) => bootFailed(givenUp(reason)),
    },
    watchSandbox: {
      perform: () => watch,
      // An unwatched sandbox could end unnoticed, and its session would seem to run on.
      gaveUp: (_, reason) => ({ type: "sandbox.lost", failure: givenUp(reason) }),
    },
    saveWork: {
      // A more urgent order replaces an earlier one.
      supersedes: ["saveWork", "putOffSave"],
      perform: ({ order = "try" }) =>
        Effect.gen(function* () {
          const { sessionId } = yield* record;
          const outcome = yield* occasions.before(save({ sandboxId: id, sessionId, order }));
          return { type: "work.saved", saved: outcome };
        }),
      gaveUp: (_, reason) => ({ type: "work.saved", saved: notSaved(givenUp(reason).message) }),
    },
    putOffSave: { supersedes: ["saveWork"], perform: () => Effect.undefined },
    destroySandbox: {
      supersedes: ["bootSandbox", "watchSandbox", "saveWork", "putOffSave"],
      perform: () => Effect.as(destroy, undefined),
    },
    ...(yield* reportHandlers(id, record, release)),
  } satisfies Handlers<SandboxEvent, SandboxCommand>;
});

type Reports = Pick<
  Handlers<SandboxEvent, SandboxCommand>,
  "reportLive" | "reportFailed" | "reportLost" | "reportEnded" | "reportKept"
>;

/** What the session hears of its sandbox. */
const reportHandlers = Effect.fnUntraced(function* (
  id: string,
  record: Effect.Effect<Sandbox, StoreError>,
  release: Effect.Success<ReturnType<typeof workSaver>>["release"],
) {
  const actors = yield* Actors;
  const { close, gone } = yield* sandboxConversation(id, record);
  const lostWork = yield* noteLost;
  const services = yield* Effect.context<Effect.Services<ReturnType<typeof startAwaited>>>();
  const restart = ({ sessionId }: Sandbox) => Effect.provideContext(startAwaited(sessionId), services);
  const sessions = yield* Sessions;
  const report = (
    event: (sandboxId: string, session: Session | null) => Parameters<typeof actors.session>[1],
  ): Effect.Effect<undefined, StoreError> =>
    Effect.gen(function* () {
      const { sessionId } = yield* record;
      return yield* deliver(actors.session(sessionId, event(id, yield* sessions.get(sessionId))));
    });

  return {
    reportLive: { perform: () => report((sandboxId) => ({ type: "sandbox.live", sandboxId })) },
    reportFailed: {
      perform: (command) =>
        report((sandboxId) => ({ type: "sandbox.failed", sandboxId, failure: command.failure })),
    },
    reportLost: {
      perform: (command) =>
        lostWork(record, id).pipe(
          Effect.andThen(close("lost")),
          Effect.andThen(
            report((sandboxId, session) => ({
              type: "sandbox.lost",
              sandboxId,
              failure: withSave(command.failure, session),
            })),
          ),
          Effect.andThen(gone),
        ),
    },
    reportEnded: {
      perform: ({ saved, error = null }) =>
        close("interrupted").pipe(
          Effect.andThen(
            report((sandboxId, session) => ({
              type: "sandbox.ended",
              sandboxId,
              saved: endMessage(session, { saved, error }),
            })),
          ),
          Effect.andThen(gone),
          Effect.andThen(deliver(Effect.flatMap(record, restart))),
        ),
    },
    reportKept: {
      perform: ({ saved, order }) =>
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis;
          const { sessionId } = yield* record;
          yield* release({ sandboxId: id, sessionId });
          return yield* report((sandboxId, session) => ({
            type: "sandbox.kept",
            sandboxId,
            order,
            saved: endMessage(session, { saved, error: null }),
            unsaved: order === "pause" && saved !== null ? stillUnsaved(session?.unsaved ?? null, now) : null,
          }));
        }),
    },
  } satisfies Reports;
});

/** What the session says of its saved work at the end of a save. A save that was not made leaves what the last one has. */
const endMessage = (
  session: Session | null,
  { saved, error }: { readonly saved: Saved | null; readonly error: string | null },
): Saved | null => {
  // Without any save, there is nothing to say.
  if (error === SKIPPED && session?.saved == null) return null;
  const reason = saved?.state === "failed" && saved.wip === null ? saved.error : error;
  return reason === null ? saved : unfinishedSave(session?.saved ?? null, reason);
};

/** The failure of a lost sandbox: first what people lose with it, then what ended it. */
const withSave = ({ code, message }: Failure, session: Session | null): Failure =>
  failure(code, `${savedWords(session?.saved ?? null)} Reason: ${message}.`);

/** What the end of a sandbox means for its session's conversation. */
const sandboxConversation = Effect.fnUntraced(function* (
  id: string,
  record: Effect.Effect<{ readonly sessionId: string }, StoreError>,
) {
  const conversations = yield* Conversations;
  const actors = yield* Actors;
  return {
    /** Closes what the sandbox left open. */
    close: (as: "interrupted" | "lost") =>
      Effect.gen(function* () {
        const { sessionId } = yield* record;
        const now = yield* Clock.currentTimeMillis;
        yield* conversations.close(sessionId, { sandboxId: id, as, now });
      }),
    /** From now on, messages wait for another sandbox. */
    gone: Effect.flatMap(record, ({ sessionId }) =>
      deliver(actors.conversation(sessionId, { type: "runtime.gone", sandboxId: id })),
    ),
  };
});

/**
 * Ends a sandbox, keeps its log, and destroys it. The provider's own record of the log is deleted with the sandbox, so
 * after a crash before that point the whole log is still there.
 */
const sandboxDestroyer = Effect.fnUntraced(function* (id: string) {
  const logs = yield* SessionLogs;
  const provider = yield* SandboxProvider;
  return Effect.gen(function* () {
    yield* forSure("ended", provider.end(id));
    const text = storableText(yield* readLog(provider.logs(id)));
    yield* logs.keep({ sandboxId: id, text, now: yield* Clock.currentTimeMillis });
    yield* forSure("destroyed", provider.destroy(id));
  });
});

/** An undestroyed sandbox keeps running (I9), so its end is retried for ever, 100 ms doubling to 30 s. */
const forSure = (what: "ended" | "destroyed", end: Effect.Effect<void, SandboxError>): Effect.Effect<void> =>
  answeredInTime(what === "ended" ? "end" : "destroy", end).pipe(
    Effect.tapError((error) => Effect.logError(`a sandbox could not be ${what}; trying again`, { error })),
    Effect.retry(backoff("100 millis", "30 seconds")),
    Effect.orDie,
  );

/** How often an ended sandbox's log is requested. An unreadable log must not keep the sandbox for ever. */
const LOG_ATTEMPTS = 5;

const readLog = (logs: Effect.Effect<string, SandboxError>): Effect.Effect<string> =>
  answeredInTime("logs", logs).pipe(
    Effect.retry({ schedule: backoff("100 millis", "2 seconds"), times: LOG_ATTEMPTS - 1 }),
    Effect.catch((error) =>
      Effect.as(Effect.logError("the log of a sandbox could not be read and is lost", { error }), ""),
    ),
  );
