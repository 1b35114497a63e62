/** Why an actor is in its state, from its snapshot, its history and its pending commands. */
import * as Effect from "effect/Effect";
import type { MachineName } from "../../machines/definition.ts";
import { possibleSteps } from "../../machines/possible.ts";
import type { Snapshot } from "../../machines/step.ts";
import { commandWords, eventWords, nextWords, stateWords } from "../../machines/words.ts";
import type { PageRequest } from "../../store/ports/page.ts";
import { Transitions, type ActorKey, type Transition } from "../../store/ports/transitions.ts";
import type { NewTransition } from "../../machines/transition.ts";
import { PendingWire, TransitionWire } from "../api/sessions/machines.ts";
import { instantOrNull, wireForm } from "./wire.ts";

export interface ViewedMachine {
  readonly machine: MachineName;
  readonly actor: ActorKey;
  readonly snapshot: Snapshot<string, object>;
  /** Sentences beyond those of the machine. */
  readonly facts: readonly string[];
  /** When events are due, ms since the epoch, by the event. */
  readonly due: Readonly<Record<string, number | null | undefined>>;
}

const transitionForm = wireForm(TransitionWire);
const showTransition = (machine: MachineName) => (row: Transition) =>
  transitionForm({
    ...row,
    text: eventWords(machine, row.event) ?? row.event,
    durationMs: row.enteredAt === null ? null : Math.max(0, row.at - row.enteredAt),
  });
const pendingForm = wireForm(PendingWire);

/** The state, and what led to it. */
const reasons = (
  { machine, snapshot, facts }: ViewedMachine,
  last: NewTransition | null,
): readonly string[] => {
  const event = last === null || last.to !== snapshot.state ? null : eventWords(machine, last.event);
  const detail = last?.detail ?? null;
  const history = event === null ? [] : [detail === null ? event : `${event} (${detail})`];
  return [stateWords(machine, snapshot.state) ?? snapshot.state, ...history, ...facts];
};

const nextWire = ({ machine, snapshot, due }: ViewedMachine) =>
  possibleSteps(machine, snapshot).map((step) => ({
    event: step.event,
    to: step.to,
    text: nextWords(machine, step) ?? eventWords(machine, step.event) ?? step.event,
    at: instantOrNull(due[step.event] ?? null),
    commands: step.commands,
  }));

/** Commands that only a stored outbox knows as under way: an actor without one performs those of its last step. */
const LASTING: ReadonlySet<string> = new Set(["accountForDue", "drainQueue", "pause"]);

const performing = ({ snapshot }: ViewedMachine, last: NewTransition | null) =>
  last === null || last.to !== snapshot.state
    ? []
    : last.commands
        .filter((command) => LASTING.has(command))
        .map((command) => ({ command, since: last.at, attempts: 0, lastError: null }));

export const machineView = Effect.fnUntraced(function* (view: ViewedMachine, request: PageRequest) {
  const transitions = yield* Transitions;
  const { actor, machine, snapshot } = view;
  const newest = yield* transitions.newest(actor);
  const page = yield* transitions.list(actor, request);
  const last = newest?.last ?? null;
  const waiting = [...(yield* transitions.waiting(actor)), ...performing(view, last)];
  return {
    machine,
    id: actor.id,
    state: snapshot.state,
    since: last?.to === snapshot.state ? instantOrNull(newest?.since ?? null) : null,
    why: reasons(view, last),
    next: nextWire(view),
    pending: waiting.map((one) =>
      pendingForm({ ...one, text: commandWords(machine, one.command) ?? one.command }),
    ),
    transitions: page.items.map(showTransition(machine)),
    next_cursor: page.nextCursor,
  };
});
