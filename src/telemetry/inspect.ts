/**
 * Live actors in the XState inspector (`npm run inspect`): every step of the host becomes records of the
 * `@statelyai/inspect` format, and goes to every open page (telemetry/inspect-page.ts).
 *
 * An allow-list decides what leaves here: ids, states, codes and numbers. Everything else (prompts, messages, metadata,
 * and any field that is added later) is replaced by `REDACTED`.
 */
import type { StatelyInspectionEvent } from "@statelyai/inspect";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type { AnyStateMachine } from "xstate";
import { Inspector, type Inspect, type InspectedStep } from "../actors/inspector.ts";
import { accountMachine } from "../machines/account.ts";
import { sandboxMachine } from "../machines/sandbox.ts";
import { sessionMachine } from "../machines/session.ts";
import { triggerMachine } from "../machines/trigger.ts";
import { openInspectPage } from "./inspect-page.ts";

export const REDACTED = "(redacted)";

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

const MACHINES: Readonly<Record<string, AnyStateMachine>> = {
  [sessionMachine.id]: sessionMachine,
  [sandboxMachine.id]: sandboxMachine,
  [triggerMachine.id]: triggerMachine,
  [accountMachine.id]: accountMachine,
};

const definitions = new Map(
  Object.entries(MACHINES).map(([id, machine]) => [id, JSON.stringify(machine.config)] as const),
);

/** The format's version: the one of the installed `@statelyai/inspect`. */
const VERSION = "0.7.2";

/**
 * The records of one step. An actor that was loaded announces itself, one that leaves memory is `stopped`, and any
 * other step is an event and a snapshot.
 */
export const recordsOf = (step: InspectedStep, now: number): readonly StatelyInspectionEvent[] => {
  const { machine, actorId, event, accepted, commands, left } = step;
  const sessionId = `${machine}:${actorId}`;
  const base = {
    rootId: sessionId,
    sessionId,
    createdAt: String(now),
    id: `${sessionId}@${now}`,
    _version: VERSION,
  };
  const { state, context } = step.snapshot;
  const isFinal = MACHINES[machine]?.states[state]?.type === "final";
  const snapshot = {
    status: left ? ("stopped" as const) : isFinal ? ("done" as const) : ("active" as const),
    value: state,
    context: redact(context),
  };
  if (left)
    return [
      { ...base, type: "@xstate.snapshot", event: { type: "memory.left" }, snapshot: snapshot as never },
    ];
  if (event === null) {
    const definition = definitions.get(machine);
    return [{ ...base, type: "@xstate.actor", name: sessionId, parentId: undefined, definition, snapshot }];
  }
  const shown = { ...(redact(event) as { readonly type: string }), accepted, commands: redact(commands) };
  return [
    { ...base, type: "@xstate.event", sourceId: undefined, event: shown },
    { ...base, type: "@xstate.snapshot", event: shown, snapshot: snapshot as never },
  ];
};

/** Sends each step's records, in order. */
export const inspectWith =
  (send: (record: StatelyInspectionEvent) => void): Inspect =>
  (step) =>
    Effect.map(Clock.currentTimeMillis, (now) => recordsOf(step, now).forEach(send));

/** Shows the service's actors to people at `http://127.0.0.1:{port}/`. `port` 0 takes a free one. */
export const inspectLayer = ({ port }: { readonly port: number }): Layer.Layer<never> =>
  Layer.effect(
    Inspector,
    Effect.gen(function* () {
      const page = yield* openInspectPage(port);
      yield* Effect.logInfo(`actors can be inspected at ${page.url}`);
      return inspectWith(page.send);
    }),
  );
