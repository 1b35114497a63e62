/**
 * The agent runtime's life inside a sandbox: spec.md 4.5 and api.md 7 (`runtime.state` of the health report).
 *
 *  A1 At most one process: `startProcess` is commanded only when the former run's process is known to be gone.
 *  A2 A run's number names its process. Events of an earlier run change nothing.
 *  A3 After a crash the next start waits 0.5 s, doubling to at most 30 s. A minute of health resets the wait.
 *  A4 The tenth crash within five minutes ends in `failed`. Only a request leads out of it (threats.md R12).
 *  A5 A stopped runtime stays stopped.
 */
import { assign, setup } from "xstate";
import { pureMachine, type Snapshot } from "./step.ts";

export type AgentRuntimeState = "starting" | "ready" | "restarting" | "failed" | "stopped";

export interface AgentRuntimeContext {
  /** Number of the current process, from 1. */
  readonly run: number;
  /** Whether the current run's process may still exist. */
  readonly alive: boolean;
  /** When the current run first answered, in milliseconds since 1970; null before that. */
  readonly readyAtMs: number | null;
  /** Crashes since the last minute of health. They decide the next wait. */
  readonly failures: number;
  /** Instants of the crashes that still count against the budget. */
  readonly crashesMs: readonly number[];
}
export type AgentRuntimeSnapshot = Snapshot<AgentRuntimeState, AgentRuntimeContext>;

export type AgentRuntimeEvent =
  | { readonly type: "runtime.answered"; readonly run: number; readonly atMs: number }
  | { readonly type: "process.exited"; readonly run: number; readonly atMs: number }
  | { readonly type: "backoff.elapsed"; readonly run: number }
  | { readonly type: "restart.requested" }
  | { readonly type: "stop.requested" };

export type AgentRuntimeCommand =
  | { readonly type: "startProcess"; readonly run: number }
  /** Ends the process and its whole process group. `process.exited` reports its end. */
  | { readonly type: "stopProcess"; readonly run: number }
  | { readonly type: "waitBackoff"; readonly run: number; readonly delayMs: number };

export const BACKOFF_MIN_MS = 500;
export const BACKOFF_MAX_MS = 30_000;
/** After a run has answered for this long, the next wait starts again at its minimum. */
export const HEALTHY_AFTER_MS = 60_000;
export const CRASH_BUDGET = 10;
export const CRASH_WINDOW_MS = 300_000;
/** What its actor in the daemon runs under. Crashes of a handler, not of the runtime: the machine counts those. */
export const AGENT_RUNTIME_LIMITS = { mailbox: 64, restarts: { restarts: 5, withinMs: 30_000 } } as const;

const backoffMs = (failures: number): number =>
  Math.min(BACKOFF_MIN_MS * 2 ** Math.max(0, failures - 1), BACKOFF_MAX_MS);

const crashesWithin = (context: AgentRuntimeContext, nowMs: number): readonly number[] =>
  context.crashesMs.filter((atMs) => atMs > nowMs - CRASH_WINDOW_MS);

const wasHealthy = (context: AgentRuntimeContext, nowMs: number): boolean =>
  context.readyAtMs !== null && nowMs - context.readyAtMs >= HEALTHY_AFTER_MS;

type OfRun = { readonly run: number };
interface Scope {
  readonly context: AgentRuntimeContext;
}

const startProcess = {
  type: "startProcess" as const,
  params: ({ context }: Scope) => ({ run: context.run }),
};
const stopProcess = { type: "stopProcess" as const, params: ({ context }: Scope) => ({ run: context.run }) };
const waitBackoff = {
  type: "waitBackoff" as const,
  params: ({ context }: Scope) => ({ run: context.run, delayMs: backoffMs(context.failures) }),
};

const crashBranches = [
  { guard: "isOverBudget" as const, target: "failed" as const, actions: "countCrash" as const },
  {
    guard: "isCurrentProcess" as const,
    target: "restarting" as const,
    actions: ["countCrash" as const, waitBackoff],
  },
];
const restartRunning = { target: "restarting" as const, actions: stopProcess };
const stopRunning = { target: "stopped" as const, actions: stopProcess };
const startAgain = { target: "starting" as const, actions: ["beginRun" as const, startProcess] };

export const agentRuntimeMachine = setup({
  types: { context: {} as AgentRuntimeContext, events: {} as AgentRuntimeEvent },
  guards: {
    isCurrentProcess: ({ context, event }) => context.alive && "run" in event && event.run === context.run,
    isCurrentWait: ({ context, event }) => !context.alive && "run" in event && event.run === context.run,
    isGone: ({ context }) => !context.alive,
    isOverBudget: ({ context, event }) =>
      event.type === "process.exited" &&
      context.alive &&
      event.run === context.run &&
      crashesWithin(context, event.atMs).length + 1 >= CRASH_BUDGET,
  },
  actions: {
    startProcess: (_, _params: OfRun) => undefined,
    stopProcess: (_, _params: OfRun) => undefined,
    waitBackoff: (_, _params: OfRun & { readonly delayMs: number }) => undefined,
    beginRun: assign({ run: ({ context }) => context.run + 1, alive: true, readyAtMs: null }),
    noteReady: assign({
      readyAtMs: ({ context, event }) => (event.type === "runtime.answered" ? event.atMs : context.readyAtMs),
    }),
    noteGone: assign({ alive: false, readyAtMs: null }),
    forgive: assign({ failures: 0, crashesMs: [] }),
    countCrash: assign(({ context, event }) => {
      if (event.type !== "process.exited") return {};
      return {
        alive: false,
        readyAtMs: null,
        failures: wasHealthy(context, event.atMs) ? 1 : context.failures + 1,
        crashesMs: [...crashesWithin(context, event.atMs), event.atMs],
      };
    }),
  },
}).createMachine({
  id: "agent-runtime",
  context: { run: 1, alive: true, readyAtMs: null, failures: 0, crashesMs: [] },
  initial: "starting",
  entry: startProcess,
  states: {
    starting: {
      on: {
        "runtime.answered": { guard: "isCurrentProcess", target: "ready", actions: "noteReady" },
        "process.exited": crashBranches,
        "restart.requested": restartRunning,
        "stop.requested": stopRunning,
      },
    },
    ready: {
      on: {
        "process.exited": crashBranches,
        "restart.requested": restartRunning,
        "stop.requested": stopRunning,
      },
    },
    // Either the old process is being ended (alive), or the wait after a crash is running (gone).
    restarting: {
      on: {
        "process.exited": { ...startAgain, guard: "isCurrentProcess" },
        "backoff.elapsed": { ...startAgain, guard: "isCurrentWait" },
        "restart.requested": [{ ...startAgain, guard: "isGone" }, {}],
        "stop.requested": { target: "stopped" },
      },
    },
    failed: {
      on: {
        "restart.requested": { target: "starting", actions: ["forgive", "beginRun", startProcess] },
        "stop.requested": { target: "stopped" },
      },
    },
    stopped: {
      on: {
        "process.exited": { guard: "isCurrentProcess", actions: "noteGone" },
        "stop.requested": {},
      },
    },
  },
});

/** `start({})` commands the first run. After that, only `step` changes the state. */
export const agentRuntime = pureMachine<
  AgentRuntimeSnapshot,
  AgentRuntimeEvent,
  AgentRuntimeCommand,
  Record<string, never>
>(agentRuntimeMachine);
