import * as Effect from "effect/Effect";
import { expect } from "vitest";
import { volatileMemory } from "../../src/actors/volatile.ts";
import {
  agentRuntime,
  agentRuntimeMachine,
  type AgentRuntimeCommand,
  type AgentRuntimeEvent,
  type AgentRuntimeSnapshot,
} from "../../src/machines/agent-runtime.ts";
import { describeModel, everyStep } from "./model.ts";

/** Two runs, and at one instant: what more runs and later instants change stands in agent-runtime.test.ts. */
const ofRun = (run: number): AgentRuntimeEvent[] => [
  { type: "runtime.answered", run, atMs: 0 },
  { type: "process.exited", run, atMs: 0 },
  { type: "backoff.elapsed", run },
];

describeModel<AgentRuntimeSnapshot, AgentRuntimeEvent, AgentRuntimeCommand>(
  {
    machine: agentRuntime,
    definition: agentRuntimeMachine,
    events: [...ofRun(1), ...ofRun(2), { type: "restart.requested" }, { type: "stop.requested" }],
    beyond: ["failed"],
    stopWhen: ({ context }) => context.run > 2,
    memory: Effect.sync(() => ({ id: "agent-runtime", memory: volatileMemory(agentRuntime.start({})) })),
  },
  {
    "A1: a process is started only when the former one is gone": (path) => {
      let living = 1;
      for (const { event, commands, accepted } of path) {
        if (accepted && event.type === "process.exited") living -= 1;
        living += commands.filter(({ type }) => type === "startProcess").length;
        expect(living).toBeLessThanOrEqual(1);
      }
    },
    "A2: what another run says moves nothing": everyStep(({ event, before, accepted }) => {
      if ("run" in event && event.run !== before.context.run) expect(accepted).toBe(false);
    }),
    "A5: a stopped runtime stays stopped": everyStep(({ before, snapshot, commands }) => {
      if (before.state === "stopped") expect([snapshot.state, commands]).toEqual(["stopped", []]);
    }),
  },
);
