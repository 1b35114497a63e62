/** Examples of the operations that show state machines (operations.ts). */
import type { Operations } from "./example.ts";
import { ACCOUNT, BASE_COMMIT, exampleId, PROJECT, SESSION } from "./records.ts";

/** An actor that has just begun. Its states and events are those of a session. */
const machineExample = (machine: string, id: string) => ({
  machine,
  id,
  state: "provisioning",
  why: [
    "The session starts: its branch is created, then its sandbox boots.",
    "The session's branch was created.",
  ],
  next: [
    {
      event: "sandbox.live",
      to: "running",
      text: "When the sandbox answers, the session runs.",
      at: null,
      commands: [],
    },
  ],
  pending: [{ command: "provisionSandbox", text: "order the sandbox", attempts: 0 }],
  transitions: [
    {
      number: 2,
      event: "branch.created",
      text: "The session's branch was created.",
      from: "provisioning",
      to: "provisioning",
      detail: `commit ${BASE_COMMIT}`,
      commands: ["provisionSandbox"],
      duration_ms: 90_000,
    },
  ],
});

export const MACHINE_EXAMPLES: Operations = {
  "machines.list": {
    summary: "List the state machines: their states, and the transitions between them.",
    response: {
      machines: [
        {
          name: "trigger",
          initial: "waiting",
          states: [{ name: "waiting", text: "The trigger has no timer." }],
          arrows: [
            {
              from: "waiting",
              event: "timer.elapsed",
              to: "firing",
              commands: ["accountForDue"],
            },
          ],
        },
      ],
    },
  },
  "machines.session": {
    summary: "Show why a session is in its state, and what would move it.",
    response: machineExample("session", SESSION),
  },
  "machines.sandbox": {
    summary: "Show why the newest sandbox of a session is in its state, and what would move it.",
    response: machineExample("sandbox", exampleId("sandbox")),
  },
  "machines.conversation": {
    summary: "Show why a conversation is in its state, and what would move it.",
    response: machineExample("conversation", SESSION),
  },
  "machines.trigger": {
    summary: "Show why a trigger is in its state, and what would move it.",
    response: machineExample("trigger", `${PROJECT}/nightly`),
  },
  "machines.changeRequest": {
    summary: "Show why a change request is in its state, and what would move it.",
    response: machineExample("change-request", exampleId("changerequest")),
  },
  "machines.account": {
    summary: "Show whether the account's queue is at work, and what would start the next fire.",
    response: machineExample("account", ACCOUNT),
  },
};
