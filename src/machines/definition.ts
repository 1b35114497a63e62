/**
 * A machine as plain data: its states and transitions as the machine itself defines them. Diagrams, the API and the
 * dashboard draw this, so they always match the code.
 */
import type { AnyStateMachine, AnyTransitionDefinition } from "xstate";
import { accountMachine } from "./account.ts";
import { changeRequestMachine } from "./change-request.ts";
import { conversationMachine } from "./conversation.ts";
import { environmentBuildMachine } from "./environment-build.ts";
import { sandboxMachine } from "./sandbox.ts";
import { sessionMachine } from "./session.ts";
import { triggerMachine } from "./trigger.ts";

export interface Arrow {
  readonly from: string;
  readonly event: string;
  readonly to: string;
  /** A guard's name. Null means always. */
  readonly guard: string | null;
  /** What the transition orders, by name. */
  readonly commands: readonly string[];
}

export interface MachineState {
  readonly name: string;
  readonly isFinal: boolean;
}

export interface MachineDefinition {
  readonly name: string;
  readonly initial: string;
  readonly states: readonly MachineState[];
  /** For one event in one state, the first arrow whose guard holds is taken. */
  readonly arrows: readonly Arrow[];
}

/** The machines of the service's actors. */
export const ACTOR_MACHINES = {
  session: sessionMachine,
  sandbox: sandboxMachine,
  conversation: conversationMachine,
  trigger: triggerMachine,
  account: accountMachine,
  "change-request": changeRequestMachine,
  "environment-build": environmentBuildMachine,
} as const satisfies Readonly<Record<string, AnyStateMachine>>;
export type MachineName = keyof typeof ACTOR_MACHINES;
export const MACHINE_NAMES = Object.keys(ACTOR_MACHINES) as readonly MachineName[];

const partName = (part: unknown): string | null => {
  if (typeof part === "string") return part;
  return typeof part === "object" && part !== null && "type" in part ? String(part.type) : null;
};

const guardName = (guard: unknown): string | null =>
  guard === undefined ? null : (partName(guard) ?? "otherwise guarded");

/** An `assign` only remembers something. Every other action is a command. */
const isCommand = (machine: AnyStateMachine, name: string): boolean => {
  const action: unknown = machine.implementations.actions[name];
  return !(typeof action === "function" && "type" in action && action.type === "xstate.assign");
};

const commandNames = (machine: AnyStateMachine, actions: readonly unknown[]): readonly string[] =>
  actions.flatMap((action) => partName(action) ?? []).filter((name) => isCommand(machine, name));

const toArrow = (machine: AnyStateMachine, from: string, transition: AnyTransitionDefinition): Arrow => {
  const to = transition.target?.[0]?.key ?? from;
  const entry = to === from && !transition.reenter ? [] : (machine.states[to]?.entry ?? []);
  return {
    from,
    event: transition.eventType,
    to,
    guard: guardName(transition.guard),
    commands: commandNames(machine, [...transition.actions, ...entry]),
  };
};

export const machineDefinition = (machine: AnyStateMachine): MachineDefinition => ({
  name: machine.id,
  initial: String(machine.config.initial),
  states: Object.values(machine.states).map(({ key, type }) => ({ name: key, isFinal: type === "final" })),
  arrows: Object.values(machine.states).flatMap((state) =>
    [...state.transitions.values()].flat().map((transition) => toArrow(machine, state.key, transition)),
  ),
});

export const DEFINITIONS: readonly MachineDefinition[] = Object.values(ACTOR_MACHINES).map(machineDefinition);
