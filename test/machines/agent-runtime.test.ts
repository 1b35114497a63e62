import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { getShortestPaths } from "xstate/graph";
import { startActor, type Handlers } from "../../src/actors/host.ts";
import { volatileMemory } from "../../src/actors/volatile.ts";
import {
  agentRuntime,
  agentRuntimeMachine,
  BACKOFF_MAX_MS,
  BACKOFF_MIN_MS,
  CRASH_BUDGET,
  CRASH_WINDOW_MS,
  HEALTHY_AFTER_MS,
  type AgentRuntimeCommand,
  type AgentRuntimeEvent,
  type AgentRuntimeSnapshot,
} from "../../src/machines/agent-runtime.ts";

interface Seen {
  readonly snapshot: AgentRuntimeSnapshot;
  readonly commands: readonly AgentRuntimeCommand[];
}

/** Steps through events, keeping the commands of the last one. */
const after = (events: readonly AgentRuntimeEvent[], from: Seen = agentRuntime.start({})): Seen =>
  events.reduce<Seen>(({ snapshot }, event) => agentRuntime.step(snapshot, event), from);

const answered = (run: number, atMs = 0): AgentRuntimeEvent => ({ type: "runtime.answered", run, atMs });
const exited = (run: number, atMs = 0): AgentRuntimeEvent => ({ type: "process.exited", run, atMs });
const waited = (run: number): AgentRuntimeEvent => ({ type: "backoff.elapsed", run });
const restart: AgentRuntimeEvent = { type: "restart.requested" };
const stop: AgentRuntimeEvent = { type: "stop.requested" };

/** So many crashes, one after another's wait, each at its instant. */
const crashes = (instants: readonly number[]): AgentRuntimeEvent[] =>
  instants.flatMap((atMs, index) => [exited(index + 1, atMs), waited(index + 1)]);

describe("the agent runtime", () => {
  test("starts its process at once and is ready when it answers", () => {
    expect(agentRuntime.start({}).commands).toEqual([{ type: "startProcess", run: 1 }]);
    expect(after([answered(1)]).snapshot.state).toBe("ready");
  });

  test("waits half a second after the first crash, twice as long after each further one, at most 30 s", () => {
    const delays = Array.from({ length: CRASH_BUDGET - 1 }, (_, count) => {
      const { commands } = after(crashes(Array.from({ length: count }, () => 0)).concat(exited(count + 1)));
      return commands.map((command) => (command.type === "waitBackoff" ? command.delayMs : null));
    });
    expect(delays.flat()).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
  });

  test("waits half a second again after a run that answered for a minute", () => {
    const third = crashes([0, 0]).concat(answered(3, 1000), exited(3, 1000 + HEALTHY_AFTER_MS));
    expect(after(third).commands).toEqual([{ type: "waitBackoff", run: 3, delayMs: BACKOFF_MIN_MS }]);
    const sooner = crashes([0, 0]).concat(answered(3, 1000), exited(3, 999 + HEALTHY_AFTER_MS));
    expect(after(sooner).commands).toEqual([{ type: "waitBackoff", run: 3, delayMs: 2000 }]);
  });

  test("fails at the tenth crash within five minutes and starts again only on request [R12]", () => {
    const tenth = crashes(Array.from({ length: 9 }, (_, index) => index)).concat(
      exited(10, CRASH_WINDOW_MS - 1),
    );
    const failed = after(tenth);
    expect(failed).toMatchObject({ snapshot: { state: "failed" }, commands: [] });
    expect(agentRuntime.step(failed.snapshot, waited(10)).accepted).toBe(false);
    expect(after([restart], failed).commands).toEqual([{ type: "startProcess", run: 11 }]);
  });

  test("does not count crashes older than five minutes [R12]", () => {
    const tenth = crashes(Array.from({ length: 9 }, () => 0)).concat(exited(10, CRASH_WINDOW_MS));
    expect(after(tenth).snapshot.state).toBe("restarting");
  });

  test("restarts on request only after the old process is gone, without a wait and without a crash", () => {
    const asked = after([answered(1), restart]);
    expect(asked).toMatchObject({
      snapshot: { state: "restarting" },
      commands: [{ type: "stopProcess", run: 1 }],
    });
    const gone = after([exited(1)], asked);
    expect(gone).toMatchObject({
      snapshot: { state: "starting", context: { failures: 0, crashesMs: [] } },
      commands: [{ type: "startProcess", run: 2 }],
    });
  });

  test("cuts a wait short when a restart is requested, and ignores the wait's end", () => {
    const asked = after([exited(1), restart]);
    expect(asked.commands).toEqual([{ type: "startProcess", run: 2 }]);
    expect(agentRuntime.step(asked.snapshot, waited(1)).accepted).toBe(false);
  });

  test("stays stopped", () => {
    const stopped = after([answered(1), stop]);
    expect(stopped.commands).toEqual([{ type: "stopProcess", run: 1 }]);
    expect(after([exited(1), restart, waited(1), answered(1)], stopped)).toMatchObject({
      snapshot: { state: "stopped" },
      commands: [],
    });
  });
});

const RUNS = 4;
const anyEvent: fc.Arbitrary<AgentRuntimeEvent> = fc.oneof(
  fc.record({
    type: fc.constantFrom("runtime.answered" as const, "process.exited" as const),
    run: fc.integer({ min: 1, max: RUNS }),
    atMs: fc.integer({ min: 0, max: 2 * CRASH_WINDOW_MS }),
  }),
  fc.record({ type: fc.constant("backoff.elapsed" as const), run: fc.integer({ min: 1, max: RUNS }) }),
  fc.constant(restart),
  fc.constant(stop),
);

test("keeps its invariants A1 to A5 for every event", () => {
  fc.assert(
    fc.property(fc.array(anyEvent, { maxLength: 40 }), (events) => {
      let now: Seen = agentRuntime.start({});
      let living = 1;
      for (const event of events) {
        const { snapshot: before } = now;
        const next = agentRuntime.step(before, event);
        if ("run" in event && event.run !== before.context.run) expect(next.accepted).toBe(false); // agent-runtime.ts A2
        if (next.accepted && event.type === "process.exited") living -= 1;
        for (const command of next.commands) {
          if (command.type === "startProcess") living += 1;
          if (command.type === "waitBackoff") {
            expect(command.delayMs).toBeGreaterThanOrEqual(BACKOFF_MIN_MS); // agent-runtime.ts A3
            expect(command.delayMs).toBeLessThanOrEqual(BACKOFF_MAX_MS);
          }
        }
        expect(living).toBeLessThanOrEqual(1); // agent-runtime.ts A1
        expect(next.snapshot.context.alive).toBe(living === 1);
        if (before.state === "failed" && event.type !== "restart.requested")
          expect(next.commands).toEqual([]); // agent-runtime.ts A4
        if (before.state === "stopped") expect(next.snapshot.state).toBe("stopped"); // agent-runtime.ts A5
        now = next;
      }
    }),
    { seed: 20_261_120, numRuns: 2000 },
  );
});

/** Over the first three runs; instants do not tell states apart. */
const paths = getShortestPaths(agentRuntimeMachine, {
  events: [1, 2, 3].flatMap((run) => [answered(run), exited(run), waited(run)]).concat(restart, stop),
  serializeState: ({ value, context }) =>
    `${JSON.stringify(value)} ${context.run} ${context.alive} ${context.failures}`,
  stopWhen: ({ context }) => context.run > 3,
});

/** Without xstate's own first step. */
const eventsOf = (steps: readonly { readonly event: AgentRuntimeEvent }[]): AgentRuntimeEvent[] =>
  steps.map(({ event }) => event).filter(({ type }) => !type.startsWith("xstate."));

describe("each generated path, replayed through the actor host", () => {
  const handlers: Handlers<AgentRuntimeEvent, AgentRuntimeCommand> = {
    startProcess: { perform: () => Effect.never },
    stopProcess: { perform: () => Effect.succeed(undefined) },
    waitBackoff: { perform: () => Effect.never },
  };
  test("is one of many", () => expect(paths.length).toBeGreaterThan(15));

  it.effect.each(
    paths.map((path) => ({
      path,
      name: eventsOf(path.steps)
        .map(({ type }) => type)
        .join(" → "),
    })),
  )("$name", ({ path }) =>
    Effect.gen(function* () {
      const actor = yield* startActor<AgentRuntimeSnapshot, AgentRuntimeEvent, AgentRuntimeCommand>({
        id: "agent-runtime",
        machine: agentRuntime,
        memory: volatileMemory(agentRuntime.start({})),
        handlers,
        mailbox: 1,
        restarts: { restarts: 0, withinMs: 1000 },
      });
      for (const event of eventsOf(path.steps)) yield* actor.tell(event);
      const { state, context } = yield* actor.snapshot;
      expect(state).toBe(path.state.value);
      expect(context).toEqual(path.state.context);
    }).pipe(Effect.scoped),
  );
});
