/**
 * Steps a machine by two pure functions over plain JSON snapshots. This file hides which of xstate's interpreters does
 * the work (docs/decisions/0003).
 */
import { initialTransition, transition, type AnyStateMachine } from "xstate";

/** A machine's memory as it is stored: the state's name and the values that decide the next transition. */
export interface Snapshot<State extends string, Context> {
  readonly state: State;
  readonly context: Context;
}

/** The result of one event. `accepted` is false if the machine refuses the event in that state. */
export interface Step<S, Command> {
  readonly snapshot: S;
  readonly commands: readonly Command[];
  readonly accepted: boolean;
}

/** A machine as the host sees it: a name and two pure functions, without xstate types. */
export interface PureMachine<S, Event, Command, Input> {
  readonly name: string;
  readonly start: (input: Input) => Step<S, Command>;
  readonly step: (snapshot: S, event: Event) => Step<S, Command>;
}

/** Every event and every command has a type. Each adds its own fields. */
export interface Named {
  readonly type: string;
}

interface XStateAction {
  readonly type: string;
  readonly params?: unknown;
}

/** Commands are xstate's custom actions: their name and params form one plain object. */
function toCommands(actions: readonly XStateAction[]): readonly Named[] {
  return actions.map(({ type, params }) => Object.assign({ type }, params));
}

/**
 * Wraps a flat xstate machine (no nested or parallel states) whose actions are either `assign` or commands.
 *
 * The type parameters are the file's own declared types: xstate's derived types stay inside the machine's file.
 */
export function pureMachine<
  S extends Snapshot<string, object>,
  Event extends Named,
  Command extends Named,
  Input,
>(machine: AnyStateMachine): PureMachine<S, Event, Command, Input> {
  const plain = (snapshot: { value: unknown; context: unknown }): S =>
    ({ state: snapshot.value, context: snapshot.context }) as S;
  return {
    name: machine.id,
    start: (input) => {
      const [snapshot, actions] = initialTransition(machine, input);
      return { snapshot: plain(snapshot), commands: toCommands(actions) as Command[], accepted: true };
    },
    step: (before, event) => {
      const xstateSnapshot = machine.resolveState({ value: before.state, context: before.context });
      if (!xstateSnapshot.can(event)) return { snapshot: before, commands: [], accepted: false };
      const [snapshot, actions] = transition(machine, xstateSnapshot, event);
      return { snapshot: plain(snapshot), commands: toCommands(actions) as Command[], accepted: true };
    },
  };
}
