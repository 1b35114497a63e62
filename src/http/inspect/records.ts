/**
 * The records of `@statelyai/inspect` that show an actor to people: its announcement, and an event and a snapshot for
 * each step, live or from the history.
 *
 * An allow-list decides what leaves here: ids, states, codes and numbers. Everything else (prompts, messages, metadata,
 * and any field that is added later) is replaced by `REDACTED`.
 */
import type { StatelyInspectionEvent } from "@statelyai/inspect";
import type { InspectedStep } from "../../actors/inspector.ts";
import { ACTOR_MACHINES, type MachineName } from "../../machines/definition.ts";
import type { Named, Snapshot } from "../../machines/step.ts";
import type { ActorTransition } from "../../store/ports/transitions.ts";

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

const baseRecord = (sessionId: string, at: number) => ({
  rootId: sessionId,
  sessionId,
  createdAt: String(at),
  id: `${sessionId}@${at}`,
  _version: VERSION,
});

/** The id of an actor in the records. */
export const inspectionId = ({ machine, actorId }: Pick<InspectedStep, "machine" | "actorId">): string =>
  `${machine}:${actorId}`;

/** The name of the machine of a row in the history. */
const machineName = ({ actor }: ActorTransition): string => actor.kind.replace("_", "-");

export const pastInspectionId = (row: ActorTransition): string =>
  inspectionId({ machine: machineName(row), actorId: row.actor.id });

const shownIn = (machine: string, { state, context }: Snapshot<string, object>): Shown => ({
  status: isFinal(machine, state) ? "done" : "active",
  value: state,
  context: redact(context),
});

interface Of {
  readonly sessionId: string;
  readonly at: number;
}

const announce = ({ sessionId, at }: Of, machine: string, snapshot: Shown): StatelyInspectionEvent => ({
  ...baseRecord(sessionId, at),
  type: "@xstate.actor",
  name: sessionId,
  parentId: undefined,
  definition: definitions.get(machine),
  snapshot,
});

const recordEvent = ({ sessionId, at }: Of, event: ShownEvent): StatelyInspectionEvent => ({
  ...baseRecord(sessionId, at),
  type: "@xstate.event",
  sourceId: undefined,
  event,
});

const stands = ({ sessionId, at }: Of, event: ShownEvent, snapshot: Shown): StatelyInspectionEvent => ({
  ...baseRecord(sessionId, at),
  type: "@xstate.snapshot",
  event,
  snapshot: snapshot as never,
});

const stepEvent = ({ event, accepted, commands }: InspectedStep): ShownEvent =>
  event === null
    ? { type: "memory.entered" }
    : { ...(redact(event) as Named), accepted, commands: redact(commands) };

/** Says that there is an actor in memory, with its machine and its present state. */
export const firstAnnouncement = (step: InspectedStep, at: number): StatelyInspectionEvent =>
  announce({ sessionId: inspectionId(step), at }, step.machine, shownIn(step.machine, step.snapshot));

/** The present state of an actor in memory, after the last event that it took. */
export const presentAnnouncement = (step: InspectedStep, at: number): StatelyInspectionEvent =>
  stands({ sessionId: inspectionId(step), at }, stepEvent(step), shownIn(step.machine, step.snapshot));

/**
 * The records of one step. An actor that was loaded announces itself, one that leaves memory is `stopped`, and any
 * other step is an event and a snapshot.
 */
export const stepRecords = (step: InspectedStep, at: number): readonly StatelyInspectionEvent[] => {
  const place = { sessionId: inspectionId(step), at };
  const snapshot = shownIn(step.machine, step.snapshot);
  if (step.left) return [stands(place, { type: "memory.left" }, { ...snapshot, status: "stopped" })];
  if (step.event === null) return [firstAnnouncement(step, at)];
  return [recordEvent(place, stepEvent(step)), stands(place, stepEvent(step), snapshot)];
};

/** Says that there was an actor, in the state before the oldest row of it. */
export const pastAnnouncement = (oldest: ActorTransition): StatelyInspectionEvent =>
  announce({ sessionId: pastInspectionId(oldest), at: oldest.at }, machineName(oldest), {
    status: "active",
    value: oldest.from ?? oldest.to,
  });

const pastState = (row: ActorTransition): Shown => ({
  status: isFinal(machineName(row), row.to) ? "done" : "active",
  value: row.to,
});

/** The event and the snapshot of a row of the history. Its detail stays: it may have a message. */
export const pastRecords = (row: ActorTransition): readonly StatelyInspectionEvent[] => {
  const place = { sessionId: pastInspectionId(row), at: row.at };
  const event = {
    type: row.event,
    accepted: true,
    commands: row.commands.map((type) => ({ type })),
  };
  return [recordEvent(place, event), stands(place, event, pastState(row))];
};

/** The end of the history of an actor that is not in this process's memory. */
export const pastEnd = (newest: ActorTransition, at: number): StatelyInspectionEvent =>
  stands(
    { sessionId: pastInspectionId(newest), at },
    { type: "memory.left" },
    { ...pastState(newest), status: "stopped" },
  );

/** A record as it is sent. */
export const encodeFrame = (record: StatelyInspectionEvent): string => {
  const frame = JSON.stringify(record);
  if (Buffer.byteLength(frame) <= FRAME_MAX_BYTES) return frame;
  const short: Record<string, unknown> = { ...record };
  if ("event" in record) short["event"] = { type: (record.event as Named).type };
  if ("snapshot" in record)
    short["snapshot"] = { ...(record.snapshot as unknown as Shown), context: REDACTED };
  return JSON.stringify(short);
};
