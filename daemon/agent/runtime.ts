/**
 * The interpreter of the agent-runtime machine: starts, watches and ends the process on the runtime port (spec.md 4.5),
 * and writes its state to the health report.
 */
import type { TurnEnd } from "../report.ts";
import * as Clock from "effect/Clock";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Latch from "effect/Latch";
import * as Option from "effect/Option";
import * as Result from "effect/Result";
import * as Schedule from "effect/Schedule";
import type * as Scope from "effect/Scope";
import { startActor, type Actor, type Handlers } from "../../src/actors/host.ts";
import { Inspector } from "../../src/actors/inspector.ts";
import { volatileMemory } from "../../src/actors/volatile.ts";
import { cutText } from "../../src/domain/text.ts";
import {
  AGENT_RUNTIME_LIMITS,
  agentRuntime,
  type AgentRuntimeCommand,
  type AgentRuntimeEvent,
  type AgentRuntimeSnapshot,
} from "../../src/machines/agent-runtime.ts";
import type { RuntimeAdapter, TurnObserver } from "../adapters/adapter.ts";
import type { Allowance } from "../logs/allowance.ts";
import type { Log } from "../logs/log.ts";
import { RuntimeOutput } from "../logs/output.ts";
import { ProcessGroup, type Exit, type Launch, type LaunchFailure } from "./process.ts";
import type { Redactor } from "../../src/domain/secret/redactor.ts";
import type { Report } from "../report.ts";
import type { Settings } from "../settings.ts";
import type { StartedAhead } from "../boot/standby.ts";
import type { Steering } from "./steering.ts";

export interface RuntimeOptions {
  /** The process to start. Called for every start, because the config directory may have changed. */
  readonly launch: () => Launch;
  /** The first process, if it runs already. */
  readonly ahead: StartedAhead | null;
  readonly adapter: RuntimeAdapter;
  readonly settings: Pick<Settings, "sessionId">;
  readonly report: Report;
  /** Gets the runtime's conversation. */
  readonly steering: Pick<
    Steering,
    "observer" | "runtimeEnded" | "newestTurn" | "fallsBack" | "turnEnded" | "cutEnd" | "onUntold"
  >;
  readonly redactor: Redactor;
  readonly log: Log;
  readonly allowance: Allowance;
  /** Completes when the first process may start: it reads its own record of the conversation then. */
  readonly beforeFirst: Effect.Effect<void>;
  /** Runs before each start of a process. False: it may not start now. */
  readonly prepare: (isFirst: boolean) => Effect.Effect<boolean>;
  /** Completes when the repository is checked out: earlier queries about turns would open the project too soon. */
  readonly whenCheckedOut: Effect.Effect<void>;
  /** Runs once for each process, before it gets a message. */
  readonly beforeMessages: Effect.Effect<void>;
}

/** The supervised runtime. */
export interface Runtime {
  /** Returns when the machine has accepted the request. */
  readonly restart: Effect.Effect<void>;
  /** Restarts it. Returns when the new process answers, or after `RENEW_DEADLINE`. */
  readonly renew: Effect.Effect<Renewed>;
  /** Ends it for good. Returns when its process is gone. */
  readonly end: Effect.Effect<void>;
}

/** The result of a restart. */
export interface Renewed {
  readonly answers: boolean;
  /** Whether a turn of the former process was in progress. */
  readonly turnInterrupted: boolean;
}

/** Pause between two checks whether a starting runtime answers. It is shorter if the runtime prints something, because it says when it listens. */
const PROBE_PAUSE_MS = { shortest: 5, longest: 40 };
/** A line that says that the runtime listens, e.g. `opencode server listening on http://127.0.0.1:4096`. */
const LISTENS = /\blistening\b/i;
/** Pause between two attempts to prepare a process. */
const OPEN_AGAIN = "1 second";
/** Pause between two attempts to follow a running runtime's turns. */
const FOLLOW_AGAIN = "1 second";
/** How many of the last output lines the health report keeps, and how much of each. */
const KEPT_LINES = 20;
const MAX_LINE_LENGTH = 500;
/** How long a restarted runtime may take to answer. After that, its caller learns that it does not. */
const RENEW_DEADLINE = "60 seconds";
/** After this many crashes in a row it counts as not answering. The machine keeps trying. */
const RENEW_CRASHES = 3;
/** If a runtime does not say within this time whether it is busy, its last report counts. */
const BUSY_WITHIN = "1 second";
/** Whether a turn is in progress. */
export const isBusyNow = ({
  adapter,
  report,
}: Pick<RuntimeOptions, "adapter" | "report">): Effect.Effect<boolean> =>
  Effect.suspend(() =>
    report.serving
      ? Effect.map(Effect.timeoutOption(Effect.result(adapter.isBusy), BUSY_WITHIN), (result) =>
          Option.isSome(result) && Result.isSuccess(result.value)
            ? result.value.success
            : report.turn.active === true,
        )
      : Effect.succeed(false),
  );

/** Starts the runtime immediately and keeps it running until the scope closes. By then its process group is gone. */
export const superviseRuntime = Effect.fnUntraced(function* (
  options: RuntimeOptions,
): Effect.fn.Return<Runtime, never, Scope.Scope> {
  const interpreter = new Interpreter(options);
  options.steering.onUntold = (end) => interpreter.turnEnded(end);
  const actor = yield* startActor<AgentRuntimeSnapshot, AgentRuntimeEvent, AgentRuntimeCommand>({
    id: "agent-runtime",
    machine: agentRuntime,
    memory: volatileMemory(agentRuntime.start({})),
    handlers: interpreter.handlers,
    ...AGENT_RUNTIME_LIMITS,
  }).pipe(
    // Every step of the machine appears in the health report, whatever caused it.
    Effect.provideService(Inspector, ({ snapshot }) =>
      Effect.sync(() => interpreter.show(snapshot as AgentRuntimeSnapshot)),
    ),
    Effect.orDie,
  );
  yield* Deferred.succeed(interpreter.actor, actor);
  yield* Effect.addFinalizer(() => interpreter.tell({ type: "stop.requested" }));
  return {
    restart: interpreter.tell({ type: "restart.requested" }),
    renew: interpreter.renew,
    end: interpreter.end,
  };
});

class Interpreter {
  readonly actor = Deferred.makeUnsafe<Actor<AgentRuntimeSnapshot, AgentRuntimeEvent>>();
  readonly handlers: Handlers<AgentRuntimeEvent, AgentRuntimeCommand> = {
    startProcess: { perform: ({ run }) => this.#run(run) },
    stopProcess: { perform: ({ run }) => this.#end(run) },
    waitBackoff: {
      perform: ({ run, delayMs }) => Effect.as(Effect.sleep(delayMs), { type: "backoff.elapsed", run }),
    },
  };
  readonly #options: RuntimeOptions;
  /** The machine's last snapshot, and the listeners for the next one. */
  #shown = agentRuntime.start({}).snapshot;
  readonly #watching = new Set<(snapshot: AgentRuntimeSnapshot) => void>();
  /** The newest run that ended during a turn. */
  #cutRun = 0;
  /** The newest run's process. */
  #current: { readonly run: number; readonly group: ProcessGroup } | null = null;
  /** Open once the first process is no longer wanted, if it has not started. */
  readonly #unwanted = Latch.makeUnsafe(false);

  constructor(options: RuntimeOptions) {
    this.#options = options;
  }

  tell(event: AgentRuntimeEvent): Effect.Effect<void> {
    return Deferred.await(this.actor).pipe(
      Effect.flatMap((actor) => actor.tell(event)),
      // The mailbox is far larger than this program ever needs, and the memory cannot fail.
      Effect.orDie,
      Effect.asVoid,
    );
  }

  /** The running process ends. The one that runs afterwards was started with the present result of `launch`. */
  get renew(): Effect.Effect<Renewed> {
    return Effect.gen({ self: this }, function* () {
      const busy = yield* isBusyNow(this.#options);
      const { run } = this.#shown.context;
      yield* this.tell({ type: "restart.requested" });
      const snapshot = yield* Effect.timeoutOption(
        this.#seen(({ state, context }) => {
          if (state === "restarting") return context.run >= run + RENEW_CRASHES;
          return state === "stopped" || (context.run > run && state !== "starting");
        }),
        RENEW_DEADLINE,
      );
      return {
        answers: Option.isSome(snapshot) && snapshot.value.state === "ready",
        turnInterrupted: this.#cutRun === run || busy,
      };
    });
  }

  get end(): Effect.Effect<void> {
    return Effect.andThen(
      this.tell({ type: "stop.requested" }),
      Effect.asVoid(this.#seen(({ state, context }) => state === "stopped" && !context.alive)),
    );
  }

  /** The first snapshot that matches, starting with the current one. */
  #seen(holds: (snapshot: AgentRuntimeSnapshot) => boolean): Effect.Effect<AgentRuntimeSnapshot> {
    return Effect.callback((resume) => {
      const look = (snapshot: AgentRuntimeSnapshot): void => {
        if (holds(snapshot)) resume(Effect.succeed(snapshot));
      };
      this.#watching.add(look);
      look(this.#shown);
      return Effect.sync(() => this.#watching.delete(look));
    });
  }

  show(snapshot: AgentRuntimeSnapshot): void {
    const { state, context } = snapshot;
    const { report, log } = this.#options;
    if (state !== "ready" && report.turn.active === true) this.#cutRun = this.#shown.context.run;
    if (state !== report.runtime.state) log("agent runtime", { state, run: context.run });
    if (state === "ready") {
      report.reached("runtime_ready");
      report.setError("runtime", null);
    } else {
      if (report.turn.active === true) this.turnEnded(this.#options.steering.cutEnd());
      const active = report.turn.active === null ? null : false;
      report.turn = { ...report.turn, active, active_since: null };
    }
    report.setRuntime({ state, restarts: context.run - 1 });
    this.#shown = snapshot;
    for (const look of this.#watching) look(snapshot);
  }

  /** The runtime tells the end of a turn, which may go on with another model. */
  #runtimeTurnEnded(end: TurnEnd): void {
    const { steering, log } = this.#options;
    if (!steering.fallsBack(end, (last) => this.turnEnded(last))) return this.turnEnded(end);
    log("turn goes on with another agent", { message: end.error?.message ?? "" });
  }

  turnEnded(end: TurnEnd): void {
    const { report, steering, log } = this.#options;
    steering.turnEnded(end);
    const { state, error } = report.endTurn(end, instantNow(), steering.newestTurn);
    if (error === null) log("turn ended", { state });
    else log(`turn ${state}`, { code: error.code, message: error.message });
  }

  /** One process from its start to its end. Afterwards its whole group is gone. */
  #run(run: number): Effect.Effect<AgentRuntimeEvent> {
    const { adapter, report, steering, redactor, log, allowance } = this.#options;
    return Effect.gen({ self: this }, function* () {
      const tail: string[] = [];
      const signals: Said = { anything: Latch.makeUnsafe(false), listens: Latch.makeUnsafe(false) };
      let listens = false;
      const keep = (line: string): void => {
        // Once: a runtime that says it with every line must not end every check.
        if (!listens && LISTENS.test(line)) {
          listens = true;
          signals.listens.openUnsafe();
        }
        tail.push(cutText(line, MAX_LINE_LENGTH));
        if (tail.length > KEPT_LINES) tail.shift();
      };
      const isWanted = run > 1 || (yield* this.#mayBegin);
      if (!isWanted || !(yield* this.#options.prepare(run === 1)))
        return { type: "process.exited", run, atMs: yield* Clock.currentTimeMillis };
      const output = new RuntimeOutput({ source: "runtime", redactor, log, allowance, onLine: keep });
      const exit = yield* Effect.acquireUseRelease(
        this.#process(run, (stream, chunk) => {
          signals.anything.openUnsafe();
          output.add(stream, chunk);
        }),
        (group) => {
          this.#current = { run, group };
          report.setRuntime({ pid: group.pid });
          report.reached("runtime_started");
          const end = Effect.result(group.exit);
          const loss = Effect.andThen(adapter.lost, Effect.andThen(group.end, end));
          return Effect.raceAllFirst([end, loss, this.#watch(run, signals)]);
        },
        (group) => group.end,
      );
      output.flush();
      steering.runtimeEnded();
      const at = yield* Clock.currentTimeMillis;
      const exitStatus = Result.isSuccess(exit) ? exit.success : { code: null, signal: null };
      const last = { ...exitStatus, at: new Date(at).toISOString(), output: tail };
      report.setRuntime({ pid: null, last_exit: last });
      report.setError("runtime", describe(exit, tail));
      return { type: "process.exited", run, atMs: at };
    });
  }

  #process(run: number, onOutput: Parameters<StartedAhead["readBy"]>[0]): Effect.Effect<ProcessGroup> {
    const { launch, ahead } = this.#options;
    if (run > 1 || ahead === null) return Effect.suspend(() => ProcessGroup.start(launch(), onOutput));
    return Effect.sync(() => {
      ahead.readBy(onOutput);
      return ahead.group;
    });
  }

  /** Waits until the first process may start. False: its end came first. */
  get #mayBegin(): Effect.Effect<boolean> {
    return Effect.raceFirst(
      Effect.as(this.#options.beforeFirst, true),
      Effect.as(this.#unwanted.await, false),
    );
  }

  #end(run: number): Effect.Effect<undefined> {
    return Effect.suspend(() => {
      this.#unwanted.openUnsafe();
      return Effect.as(this.#current?.run === run ? this.#current.group.end : Effect.void, undefined);
    });
  }

  /** Prepares the process, if its adapter needs that. */
  get #opened(): Effect.Effect<void> {
    const { adapter, report, whenCheckedOut } = this.#options;
    if (adapter.open === null) return Effect.void;
    const attempt = Effect.tapError(adapter.open, ({ message }) =>
      Effect.sync(() => report.setError("runtime", message)),
    );
    return Effect.andThen(
      whenCheckedOut,
      // The schedule is endless, so the retry never fails.
      Effect.orDie(Effect.retry(attempt, Schedule.spaced(OPEN_AGAIN))),
    );
  }

  /** Probes until the runtime answers, then follows its turns and its conversation while it lives. */
  #watch(run: number, statement: Said): Effect.Effect<never> {
    const { adapter, settings, report, steering, log } = this.#options;
    const turns: TurnObserver = {
      turn: (active) => {
        if (active !== (report.turn.active ?? false)) log("turn", { active });
        const since = active ? (report.turn.active_since ?? instantNow()) : null;
        report.turn = { ...report.turn, active, active_since: since };
      },
      activity: () => {
        report.turn = { ...report.turn, last_activity_at: instantNow() };
      },
      followed: () => log("turns are followed"),
      ended: (end) => this.#runtimeTurnEnded(end),
      isActive: () => report.turn.active === true,
    };
    const noteAnswer = Effect.flatMap(Clock.currentTimeMillis, (atMs) =>
      this.tell({ type: "runtime.answered", run, atMs }),
    );
    const probe = Effect.tapError(askOnce(adapter.probe, statement.listens), () =>
      probePause(statement.anything),
    );
    return Effect.retry(probe, Schedule.forever).pipe(
      Effect.andThen(this.#opened),
      Effect.andThen(noteAnswer),
      Effect.andThen(this.#options.whenCheckedOut),
      // No message reaches a runtime that is not followed.
      Effect.andThen(this.#options.beforeMessages),
      Effect.andThen(
        Effect.retry(
          adapter.follow(settings.sessionId, { turns, conversation: steering.observer }),
          Schedule.spaced(FOLLOW_AGAIN),
        ),
      ),
      // Both schedules are endless, so neither retry fails.
      Effect.orDie,
    );
  }
}

/** The output of a starting runtime. */
interface Said {
  /** Open after any output since the last pause. */
  readonly anything: Latch.Latch;
  readonly listens: Latch.Latch;
}

/**
 * Asks whether the runtime answers. If it says meanwhile that it listens, it is asked anew: a request that reached it
 * before may never be answered.
 */
const askOnce = <E>(probe: Effect.Effect<void, E>, listens: Latch.Latch): Effect.Effect<void, E> =>
  Effect.suspend(() => {
    // It listened before this request.
    listens.closeUnsafe();
    const firstAnswer = Effect.as(probe, true);
    return Effect.flatMap(Effect.raceFirst(firstAnswer, Effect.as(listens.await, false)), (isAnswered) =>
      isAnswered ? Effect.void : probe,
    );
  });

/** Ends at the next output, or after the longest pause. */
const probePause = (output: Latch.Latch): Effect.Effect<void> => {
  const { shortest, longest } = PROBE_PAUSE_MS;
  const next = Effect.raceFirst(output.await, Effect.sleep(longest - shortest));
  return Effect.andThen(
    Effect.sleep(shortest),
    Effect.andThen(
      next,
      Effect.sync(() => output.closeUnsafe()),
    ),
  );
};

// oxlint-disable-next-line no-restricted-properties -- for what is called back by a socket, outside any fiber
const instantNow = (): string => new Date(Date.now()).toISOString();

const describe = (exit: Result.Result<Exit, LaunchFailure>, output: readonly string[]): string => {
  if (Result.isFailure(exit)) return `the agent runtime cannot be started: ${exit.failure.message}`;
  const { code, signal } = exit.success;
  const how = signal === null ? `with code ${code ?? "none"}` : `by ${signal}`;
  return `the agent runtime ended ${how}; its last output: ${output.join("\n") || "(none)"}`;
};
