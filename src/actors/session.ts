/**
 * Interprets the session machine's commands: creates the branch and the sandbox's record, and tears the sandbox down.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import { ADVICE, failure, STARTED_ELSEWHERE } from "../domain/session/failure.ts";
import { isOfOriginal, Pause } from "../ground/pause.ts";
import { tokenHash } from "../domain/ids.ts";
import { GitBackend, type GitError } from "../git/port.ts";
import { sandbox } from "../machines/sandbox.ts";
import { session, type SessionCommand, type SessionEvent } from "../machines/session.ts";
import { SandboxProvider } from "../sandbox/port.ts";
import type { StoreError } from "../store/ports/journal.ts";
import { type SavePlace, Saves } from "../saves/port.ts";
import { Sandboxes } from "../store/ports/sessions/sandboxes.ts";
import { Sessions, type Session } from "../store/ports/sessions/sessions.ts";
import { Measures } from "../telemetry/port.ts";
import { Actors } from "../services/actors.ts";
import { actorLayer, type EntityOptions } from "./cluster.ts";
import { BootPlaces } from "../services/sessions/boot-places.ts";
import { deliver } from "./delivery.ts";
import { newUuid } from "../services/entropy.ts";
import { startActor, type ActorLimits, type Handlers } from "./host.ts";
import { Keyring } from "../services/keyring.ts";
import { firstMessagePoster } from "./conversations/first-message.ts";
import { WarmPool } from "../services/sessions/warm-pool.ts";
import { givenUp } from "./supervisor.ts";
import { backoff } from "../ground/backoff.ts";

export const SESSION_LIMITS: ActorLimits = { mailbox: 64, restarts: { restarts: 5, withinMs: 30_000 } };

export interface SessionActorOptions extends EntityOptions {
  /** The node on which a `local` sandbox lives; written to the sandbox's record. */
  readonly nodeId: string;
}

/** The session entities. Admission creates their rows (services/triggers/admission.ts). */
export const sessionActors = (options: SessionActorOptions) =>
  actorLayer(
    "session",
    Effect.fnUntraced(function* (id: string) {
      const { memory } = yield* Sessions;
      const handlers = yield* makeHandlers(id, options.nodeId);
      return yield* startActor({
        id,
        machine: session,
        memory,
        handlers,
        slotRefused: { type: "slot.refused" },
        ...SESSION_LIMITS,
      });
    }),
    { ...options, again: null },
  );

const makeHandlers = Effect.fnUntraced(function* (id: string, nodeId: string) {
  const sessions = yield* Sessions;
  const actors = yield* Actors;
  const git = yield* GitBackend;
  const open = yield* sandboxOpener(nodeId);
  const places = yield* BootPlaces;
  const measures = yield* Measures;
  const pool = yield* WarmPool;
  const removeSaves = yield* savesRemover;
  const postFirst = yield* firstMessagePoster;
  const record = Effect.flatMap(sessions.get(id), (row) =>
    row === null ? Effect.die(new Error(`session ${id} has no row`)) : Effect.succeed(row),
  );
  const handlers: Handlers<SessionEvent, SessionCommand> = {
    createBranch: {
      // A stop may leave an earlier attempt behind. Its failure would count as this attempt's.
      supersedes: ["createBranch"],
      perform: () =>
        Effect.gen(function* () {
          const row = yield* record;
          if (yield* isOfOriginal(row.updatedAt))
            return { type: "branch.failed" as const, failure: STARTED_ELSEWHERE };
          const cutting = Effect.retry(places.branch(row.projectId, cutBranch(git, row)), whileUnavailable);
          const cut = yield* Effect.result(whileAway(row, cutting));
          if (cut._tag === "Failure") return branchFailed(cut.failure);
          yield* postFirst(row);
          const sandboxId = (yield* pool.claim(row)) ?? (yield* newUuid);
          return { type: "branch.created" as const, commit: cut.success, sandboxId };
        }),
      gaveUp: (_, reason) => ({ type: "branch.failed", failure: givenUp(reason) }),
    },
    provisionSandbox: {
      perform: ({ sandboxId }) =>
        Effect.gen(function* () {
          const row = yield* record;
          if (yield* isOfOriginal(row.updatedAt))
            return { type: "sandbox.failed" as const, sandboxId, failure: STARTED_ELSEWHERE };
          yield* open(row, sandboxId);
          yield* actors.wake("sandbox", sandboxId);
          return undefined;
        }),
      gaveUp: ({ sandboxId }, reason) => ({ type: "sandbox.failed", sandboxId, failure: givenUp(reason) }),
    },
    tearDownSandbox: {
      supersedes: ["provisionSandbox"],
      perform: ({ sandboxId, as, save = "try", end }) => {
        const type = as === "stopped" ? "stop.requested" : "archive.requested";
        return deliver(actors.sandbox(sandboxId, { type, save, ...(end !== undefined && { end }) }));
      },
    },
    recallEnd: {
      perform: ({ sandboxId }) => deliver(actors.sandbox(sandboxId, { type: "end.recalled" })),
    },
    removeSaves: {
      perform: () => Effect.flatMap(record, ({ projectId }) => removeSaves({ projectId, sessionId: id })),
    },
    restartAfterStop: { supersedes: ["restartAfterStop"], perform: (wish) => restartIn(actors, id, wish) },
    signalFreeSlot: {
      perform: () =>
        Effect.gen(function* () {
          const row = yield* record;
          yield* logFailure(row);
          if (row.status === "failed" && row.failure !== null)
            measures.count("session_failures_total", { code: row.failure.code });
          return yield* deliver(actors.account(row.accountId, { type: "slot.freed" }));
        }),
    },
  };
  return handlers;
});

type Wish = Extract<SessionCommand, { type: "restartAfterStop" }>;

/** Asks for a restart that waited for a stop, until the account has a slot. */
const restartIn = Effect.fnUntraced(function* (actors: Actors["Service"], id: string, wish: Wish) {
  // In a restored copy a person restarts it, because the original does so by itself.
  if ((yield* Pause).isOn) return undefined;
  return yield* deliver(
    actors
      .session(id, { ...wish, type: "restart.requested", afterStop: true })
      .pipe(
        Effect.retry({ while: ({ _tag }) => _tag === "CapReached", schedule: SLOT_AGAIN }),
        Effect.catchTag("CapReached", Effect.die),
      ),
  );
});

/** @returns a function that deletes the saves of a session. The node that has them may be away for long; they must not stay. */
const savesRemover = Effect.map(
  Saves,
  (saves) =>
    (place: SavePlace): Effect.Effect<undefined> =>
      saves.remove(place).pipe(
        Effect.tapError((error) =>
          Effect.logWarning("a session's saves could not be deleted; trying again", { error }),
        ),
        Effect.retry(REMOVE_AGAIN),
        Effect.orDie,
        Effect.as(undefined),
      ),
);

/** How often the saves of a deleted session are deleted, until they are. */
const REMOVE_AGAIN = backoff("1 second", "10 minutes");

/** How often a restart that waited for a stop asks for a slot, while the account has none. */
const SLOT_AGAIN = backoff("1 second", "15 seconds");

/** The operator's log has one line for each failed session: which one, why, and what to do. */
const logFailure = ({ id, projectId, sandboxId, runningAt, status, failure: reason }: Session) =>
  status !== "failed" || reason === null
    ? Effect.void
    : Effect.logError(runningAt === null ? "a boot failed" : "a running session failed", {
        project: projectId,
        session: id,
        sandbox: sandboxId,
        code: reason.code,
        message: reason.message,
        todo: ADVICE[reason.code],
      });

/**
 * A repository's server that is unavailable for a moment fails no session. One that stays unavailable does, well before
 * the boot deadline.
 */
const whileUnavailable = {
  while: ({ code }: GitError) => code === "unavailable",
  schedule: Schedule.exponential("1 second"),
  times: 3,
};

const branchFailed = (error: GitError): SessionEvent => ({
  type: "branch.failed",
  failure: failure("branch_failed", `the session branch could not be created: ${error.message}`),
});

/**
 * If a repository's node is away or its disk is full, retry until the boot would be late: a node's restart must not fail
 * a session.
 */
const whileAway = <A>({ bootDeadlineAt }: Session, cut: Effect.Effect<A, GitError>) =>
  Effect.retry(cut, {
    while: ({ code }) =>
      Effect.map(
        Clock.currentTimeMillis,
        (now) => (code === "away" || code === "disk_full") && now < bootDeadlineAt,
      ),
    schedule: backoff("100 millis", "2 seconds"),
  });

/**
 * Creates the session branch (spec, branch model 2). If the base was resolved with the create request, the branch
 * starts at exactly that commit. A fire resolves its base here, and reuses a branch that an earlier attempt created.
 */
const cutBranch = Effect.fnUntraced(function* (git: GitBackend["Service"], row: Session) {
  const repository = { projectId: row.projectId };
  const former = row.baseCommit === null ? yield* git.branchTip(repository, row.id) : null;
  const commit = former ?? row.baseCommit ?? (yield* git.resolveBase(repository, row.baseRef));
  yield* git.createBranch(repository, { branch: row.id, commit });
  return commit;
});

/** Opens a sandbox's record with the tokens of its boot. Idempotent. */
const sandboxOpener = Effect.fnUntraced(function* (nodeId: string) {
  const sandboxes = yield* Sandboxes;
  const keyring = yield* Keyring;
  const provider = yield* SandboxProvider;
  return Effect.fnUntraced(function* (row: Session, sandboxId: string): Effect.fn.Return<void, StoreError> {
    const first = sandbox.start({});
    yield* sandboxes.open({
      id: sandboxId,
      sessionId: row.id,
      provider: provider.name,
      nodeId,
      bootDeadlineAt: row.bootDeadlineAt,
      snapshot: first.snapshot,
      commands: first.commands,
      serviceKeyHash: tokenHash(keyring.serviceKey(sandboxId)),
      cliToken: { id: yield* newUuid, hash: tokenHash(keyring.cliToken(sandboxId)) },
      now: yield* Clock.currentTimeMillis,
    });
  });
});
