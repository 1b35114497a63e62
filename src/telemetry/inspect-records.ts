/**
 * The records of `@statelyai/inspect` that show an actor to people: its announcement, and an event and a snapshot for
 * each step, live or from the history.
 *
 * An allow-list decides what leaves here: ids, states, codes and numbers. Everything else (prompts, messages, metadata,
 * and any field that is added later) is replaced by `REDACTED`.
 */
import type { StatelyInspectionEvent } from "@statelyai/inspect";
import type { InspectedStep } from "../actors/inspector.ts";
import { ACTOR_MACHINES, type MachineName } from "../machines/definition.ts";
import type { Named, Snapshot } from "../machines/step.ts";
import type { ActorTransition } from "../store/ports/transitions.ts";

export const REDACTED = "(redacted)";

/** The largest frame, bytes. A larger record is sent without its context and its commands. */
export const FRAME_MAX_BYTES = 64 * 1024;

/** Fields of machines' contexts, events and commands that only describe an actor's state. */
const SHOWN: ReadonlySet<string> = new Set([
  "type",
  "sandboxId",
  "commit",
  "branched",
  "deleted",
  "as",
  "failure",
  "code",
  "again",
  "more",
  "enabled",
  "schedule",
  "due",
  "next",
]);

/** The same value, with every field replaced that is not named in `SHOWN`. */
export const redact = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(redact);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, SHOWN.has(key) ? redact(inner) : REDACTED]),
  );
};

const definitions = new Map<string, string>(
  Object.entries(ACTOR_MACHINES).map(([id, machine]) => [id, JSON.stringify(machine.config)] as const),
);

/** The format's version: the one of the installed `@statelyai/inspect`. */
const VERSION = "0.7.2";

interface Shown {
  readonly status: "active" | "done" | "stopped";
  readonly value: string;
  readonly context?: unknown;
}

/** An event for people: how the machine took it, and what it ordered. */
interface ShownEvent extends Named {
  readonly accepted?: boolean;
  readonly commands?: unknown;
}

const isFinal = (machine: string, state: string): boolean => {
  const states: Readonly<Record<string, { readonly type: string } | undefined>> =
    ACTOR_MACHINES[machine as MachineName]?.states ?? {};
  return states[state]?.type === "final";
};

const baseOf = (sessionId: string, at: number) => ({
  rootId: sessionId,
  sessionId,
  createdAt: String(at),
  id: `${sessionId}@${at}`,
  _version: VERSION,
});

/** The id of an actor in the records. */
export const sessionIdOf = ({ machine, actorId }: Pick<InspectedStep, "machine" | "actorId">): string =>
  `${machine}:${actorId}`;

/** The name of the machine of a row in the history. */
const machineOf = ({ actor }: ActorTransition): string => actor.kind.replace("_", "-");

export const pastIdOf = (row: ActorTransition): string =>
  sessionIdOf({ machine: machineOf(row), actorId: row.actor.id });

const shownIn = (machine: string, { state, context }: Snapshot<string, object>): Shown => ({
  status: isFinal(machine, state) ? "done" : "active",
  value: state,
  context: redact(context),
});

interface Of {
  readonly sessionId: string;
  readonly at: number;
}

const announced = ({ sessionId, at }: Of, machine: string, snapshot: Shown): StatelyInspectionEvent => ({
  ...baseOf(sessionId, at),
  type: "@xstate.actor",
  name: sessionId,
  parentId: undefined,
  definition: definitions.get(machine),
  snapshot,
});

const moved = ({ sessionId, at }: Of, event: ShownEvent): StatelyInspectionEvent => ({
  ...baseOf(sessionId, at),
  type: "@xstate.event",
  sourceId: undefined,
  event,
});

const stands = ({ sessionId, at }: Of, event: ShownEvent, snapshot: Shown): StatelyInspectionEvent => ({
  ...baseOf(sessionId, at),
  type: "@xstate.snapshot",
  event,
  snapshot: snapshot as never,
});

const eventOf = ({ event, accepted, commands }: InspectedStep): ShownEvent =>
  event === null
    ? { type: "memory.entered" }
    : { ...(redact(event) as Named), accepted, commands: redact(commands) };

/** Says that there is an actor in memory, with its machine and its present state. */
export const announcementOf = (step: InspectedStep, at: number): StatelyInspectionEvent =>
  announced({ sessionId: sessionIdOf(step), at }, step.machine, shownIn(step.machine, step.snapshot));

/** The present state of an actor in memory, after the last event that it took. */
export const presentOf = (step: InspectedStep, at: number): StatelyInspectionEvent =>
  stands({ sessionId: sessionIdOf(step), at }, eventOf(step), shownIn(step.machine, step.snapshot));

/**
 * The records of one step. An actor that was loaded announces itself, one that leaves memory is `stopped`, and any
 * other step is an event and a snapshot.
 */
export const recordsOf = (step: InspectedStep, at: number): readonly StatelyInspectionEvent[] => {
  const of = { sessionId: sessionIdOf(step), at };
  const snapshot = shownIn(step.machine, step.snapshot);
  if (step.left) return [stands(of, { type: "memory.left" }, { ...snapshot, status: "stopped" })];
  if (step.event === null) return [announcementOf(step, at)];
  return [moved(of, eventOf(step)), stands(of, eventOf(step), snapshot)];
};

/** Says that there was an actor, in the state before the oldest row of it. */
export const pastAnnouncementOf = (oldest: ActorTransition): StatelyInspectionEvent =>
  announced({ sessionId: pastIdOf(oldest), at: oldest.at }, machineOf(oldest), {
    status: "active",
    value: oldest.from ?? oldest.to,
  });

const pastStateOf = (row: ActorTransition): Shown => ({
  status: isFinal(machineOf(row), row.to) ? "done" : "active",
  value: row.to,
});

/** The event and the snapshot of a row of the history. Its detail stays: it may have a message. */
export const pastRecordsOf = (row: ActorTransition): readonly StatelyInspectionEvent[] => {
  const of = { sessionId: pastIdOf(row), at: row.at };
  const event = {
    type: row.event,
    accepted: true,
    commands: row.commands.map((type) => ({ type })),
  };
  return [moved(of, event), stands(of, event, pastStateOf(row))];
};

/** The end of the history of an actor that is not in this process's memory. */
export const pastEndOf = (newest: ActorTransition, at: number): StatelyInspectionEvent =>
  stands(
    { sessionId: pastIdOf(newest), at },
    { type: "memory.left" },
    { ...pastStateOf(newest), status: "stopped" },
  );

/** A record as it is sent. */
export const frameOf = (record: StatelyInspectionEvent): string => {
  const frame = JSON.stringify(record);
  if (Buffer.byteLength(frame) <= FRAME_MAX_BYTES) return frame;
  const short: Record<string, unknown> = { ...record };
  if ("event" in record) short["event"] = { type: (record.event as Named).type };
  if ("snapshot" in record)
    short["snapshot"] = { ...(record.snapshot as unknown as Shown), context: REDACTED };
  return JSON.stringify(short);
};
