/** Why the sample project's actors are in their states. */
import { DEFINITIONS } from "../../../src/machines/definition.ts";

type Json = Readonly<Record<string, unknown>>;

/** The machines themselves, as the service serves them. */
export const MACHINES: readonly Json[] = DEFINITIONS.map(({ name, initial, states, arrows }) => ({
  name,
  initial,
  states: states.map((state) => ({ name: state.name, final: state.isFinal, text: `It is ${state.name}.` })),
  arrows,
}));

const MINUTE = 60_000;

/** Sentences and ids of each kind of actor, by the last part of its address. */
export const makeMachines = (now: number): Record<string, Json> => {
  const at = (minutesAgo: number) => new Date(now - minutesAgo * MINUTE).toISOString();
  const step = (
    number: number,
    event: string,
    [from, to]: readonly [string | null, string],
    rest: Json = {},
  ) => ({
    number,
    at: at(30 - number),
    event,
    text: `What ${event} says.`,
    from,
    to,
    detail: null,
    commands: [],
    duration_ms: from === null ? null : MINUTE,
    ...rest,
  });
  const machine = (name: string, state: string, rest: Json) => ({
    machine: name,
    id: name,
    state,
    since: at(4),
    why: [],
    next: [],
    pending: [],
    transitions: [],
    next_cursor: null,
    ...rest,
  });
  return {
    session: machine("session", "running", {
      why: ["The session runs in its sandbox.", "The sandbox reported that it is ready."],
      next: [
        {
          event: "idle.elapsed",
          to: "running",
          text: "If the session is unused and its agent does no work until then, the sandbox saves its work and ends.",
          at: at(-25),
          commands: ["tearDownSandbox"],
        },
        {
          event: "sandbox.lost",
          to: "failed",
          text: "If the sandbox ends by itself, the session fails.",
          at: null,
          commands: ["signalFreeSlot"],
        },
      ],
      pending: [
        {
          command: "tearDownSandbox",
          text: "end the sandbox",
          since: at(1),
          attempts: 2,
          last_error: "connect ECONNREFUSED 10.0.0.7:4096",
        },
      ],
      transitions: [
        step(9, "sandbox.live", ["provisioning", "running"]),
        step(8, "branch.created", ["provisioning", "provisioning"], {
          detail: "commit 9b1d4e7f2a5c8063d1e6f8b9c0a2d3e4f5061728",
          commands: ["provisionSandbox"],
        }),
        step(7, "restart.requested", ["failed", "provisioning"], { commands: ["createBranch"] }),
        step(5, "sandbox.failed", ["provisioning", "failed"], {
          detail: "boot_timeout: The sandbox did not answer within 120 seconds.",
          commands: ["signalFreeSlot"],
        }),
        step(1, "created", [null, "provisioning"], {
          detail: "by the trigger on-push",
          commands: ["createBranch"],
        }),
      ],
      next_cursor: "1",
    }),
    sandbox: machine("sandbox", "active", {
      why: ["The sandbox runs."],
      transitions: [
        step(2, "daemon.ready", ["provisioning", "active"], { commands: ["reportLive", "watchSandbox"] }),
        step(1, "created", [null, "provisioning"], { commands: ["bootSandbox"] }),
      ],
    }),
    conversation: machine("conversation", "requires_action", {
      why: ["The agent has asked something and waits for the answer."],
      transitions: [step(4, "runtime.reported", ["running", "requires_action"])],
    }),
    trigger: machine("trigger", "armed", { why: ["The trigger waits for its next instant."] }),
    account: machine("account", "idle", { why: ["3 of 3 slots in use. 2 fires in the queue."] }),
    "change-request": machine("change-request", "merging", { why: ["A merge is under way."] }),
  };
};
