/**
 * Model tests: paths are generated from a machine's definition, and every one is replayed through the real actor host.
 * On the way each event that the machine refuses in the states it passes is told as well (stale ids, wrong instants).
 */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import { describe, expect, test } from "vitest";
import type { AnyStateMachine } from "xstate";
import { createTestModel } from "xstate/graph";
import { startActor, type Handlers } from "../../src/actors/host.ts";
import type { Named, PureMachine, Snapshot, Step } from "../../src/machines/step.ts";
import type { Memory } from "../../src/store/ports/journal.ts";
import { recordingMemory } from "../support/actors/recording-memory.ts";

export interface Model<S extends Snapshot<string, object>, Event extends Named, Command extends Named> {
  readonly machine: PureMachine<S, Event, Command, Record<string, never>>;
  /** The same machine as xstate knows it. */
  readonly definition: AnyStateMachine;
  /** Concrete events: each type with each payload that matters. */
  readonly events: readonly Event[];
  /** Where a context can grow for ever: beyond this there is nothing new. */
  readonly stopWhen?: (snapshot: S) => boolean;
  /** Where the graph has too many simple paths to walk them all: only a shortest one to each transition is taken. */
  readonly isDense?: boolean;
  /** Paths that lead back to an earlier snapshot: where the graph is dense, no generated one does. */
  readonly returns?: readonly (readonly Event[])[];
  /** States that no path of these events is long enough for; their own tests reach them. */
  readonly beyond?: readonly string[];
  /** A fresh actor's memory, holding the machine's start. */
  readonly memory: Effect.Effect<{ readonly id: string; readonly memory: Memory<S, Event, Command> }>;
}

/** One step as it was seen on a path. */
export interface Seen<S, Event, Command> extends Step<S, Command> {
  readonly before: S;
  readonly event: Event;
  /** The accepted events before this one. */
  readonly past: readonly Event[];
}

/** The numbered invariants of a machine's header, by their sentences: each holds on every path. */
export type Invariants<S, Event, Command> = Readonly<
  Record<string, (path: readonly Seen<S, Event, Command>[]) => void>
>;

/** An invariant that looks at one step at a time. */
export const everyStep =
  <S, Event, Command>(holds: (seen: Seen<S, Event, Command>) => void) =>
  (path: readonly Seen<S, Event, Command>[]): void => {
    for (const seen of path) holds(seen);
  };

const isOwn = ({ type }: Named): boolean => !type.startsWith("xstate.");

interface Placed {
  readonly value: unknown;
  readonly context: object;
}

/** A number that counts orders makes no new state: without this, there would be no end of them. */
const serializeState = ({ value, context }: Placed): string =>
  JSON.stringify([value, { ...context, ends: undefined }]);

const serializeTransition = (to: Placed, event?: unknown, from?: Placed): string =>
  [serializeState(to), JSON.stringify(event), from === undefined ? "" : serializeState(from)].join(" ");

/** Every simple path through the graph of snapshots, and a shortest path to every transition of it. */
export const pathsOf = <S extends Snapshot<string, object>, Event extends Named, Command extends Named>({
  definition,
  events,
  stopWhen,
  isDense = false,
  returns = [],
}: Model<S, Event, Command>): readonly (readonly Event[])[] => {
  const options = {
    events,
    ...(stopWhen !== undefined && {
      stopWhen: ({ value, context }: { readonly value: unknown; readonly context: object }) =>
        stopWhen({ state: value, context } as S),
    }),
  };
  const simple = isDense
    ? []
    : createTestModel(definition, { ...options, serializeState } as object).getSimplePaths();
  const transitions = createTestModel(definition, {
    ...options,
    serializeState: serializeTransition,
  } as object).getShortestPaths();
  const paths = [...simple, ...transitions].map(({ steps }) =>
    steps.map(({ event }) => event as unknown as Event).filter(isOwn),
  );
  return [...new Map([...paths, ...returns].map((path) => [JSON.stringify(path), path])).values()];
};

/**
 * The pure machine's way along a path: at each state first every event that it refuses, then the path's own.
 * @param tried the beginnings of paths after which the refused events were told already. They are not told again.
 */
const walk = <S extends Snapshot<string, object>, Event extends Named, Command extends Named>(
  { machine, events }: Model<S, Event, Command>,
  path: readonly Event[],
  tried: Set<string>,
): readonly Seen<S, Event, Command>[] => {
  const seen: Seen<S, Event, Command>[] = [];
  let before = machine.start({}).snapshot;
  const take = (event: Event, past: readonly Event[]) =>
    seen.push({ ...machine.step(before, event), before, event, past });
  const takeRefused = (past: readonly Event[]) => {
    const beginning = JSON.stringify(past);
    if (tried.has(beginning)) return;
    tried.add(beginning);
    for (const event of events) if (!machine.step(before, event).accepted) take(event, past);
  };
  for (const [index, event] of path.entries()) {
    takeRefused(path.slice(0, index));
    take(event, path.slice(0, index));
    before = machine.step(before, event).snapshot;
  }
  takeRefused(path);
  return seen;
};

/** The walks that go a way of the machine which no walk before them goes: each event in each state is in one of them. */
const newWays = <S extends Snapshot<string, object>, Event extends Named, Command extends Named>(
  walks: readonly (readonly Seen<S, Event, Command>[])[],
): readonly (readonly Seen<S, Event, Command>[])[] => {
  const gone = new Set<string>();
  return walks.filter((steps) => {
    const before = gone.size;
    for (const {
      before: { state },
      event,
      snapshot,
    } of steps)
      gone.add([state, event.type, snapshot.state].join(" "));
    return gone.size > before;
  });
};

/** Replays the walk along one path through a real actor and compares every step with the pure machine's. */
const replay = <S extends Snapshot<string, object>, Event extends Named, Command extends Named>(
  model: Model<S, Event, Command>,
  steps: readonly Seen<S, Event, Command>[],
): Effect.Effect<number, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const { machine } = model;
    const { id, memory } = yield* model.memory;
    const recorded = recordingMemory(memory);
    const performed: Command[] = [];
    const handler = { perform: (command: Command) => Effect.andThen(note(command), Effect.never) };
    const note = (command: Command) => Effect.sync(() => performed.push(command));
    // Commands stay under way: what they lead to is the path's to say.
    const handlers = new Proxy({}, { get: () => handler }) as Handlers<Event, Command>;
    const budget = { restarts: 0, withinMs: 1000 };
    const actor = yield* startActor({
      id,
      machine,
      memory: recorded.memory,
      handlers,
      mailbox: 1,
      restarts: budget,
    });
    const first = machine.start({});
    expect(performed.splice(0)).toEqual(first.commands);
    let { version } = (yield* memory.load(id)) ?? { version: -1 };
    for (const { event, before, snapshot, commands, accepted } of steps) {
      expect(yield* actor.tell(event)).toEqual({ accepted, snapshot });
      const loaded = yield* memory.load(id);
      version += accepted ? 1 : 0;
      expect(loaded).toMatchObject({ version, snapshot });
      const saved = accepted
        ? [expect.objectContaining({ id, event, before, after: snapshot, commands })]
        : [];
      expect(recorded.saves.splice(0)).toEqual(saved);
      expect(performed.splice(0)).toEqual(commands);
    }
    expect(recorded.completed).toEqual([]);
    return 1;
  });

/** Registers a machine's model tests. */
export const describeModel = <S extends Snapshot<string, object>, Event extends Named, Command extends Named>(
  model: Model<S, Event, Command>,
  invariants: Invariants<S, Event, Command>,
): void => {
  const paths = pathsOf(model);
  const tried = new Set<string>();
  const walks = paths.map((path) => walk(model, path, tried));
  process.stdout.write(`${model.machine.name}: ${paths.length} generated paths\n`);

  describe(`the ${model.machine.name} machine, on each generated path`, () => {
    test("accepts every event in some state", () => {
      const told = new Set(paths.flat().map(({ type }) => type));
      expect(new Set(model.events.map(({ type }) => type))).toEqual(told);
    });

    test("reaches every state", () => {
      const reached = walks.flat().flatMap(({ before, snapshot }) => [before.state, snapshot.state]);
      const { definition, beyond = [] } = model;
      expect(new Set([...reached, ...beyond])).toEqual(new Set(Object.keys(definition.states)));
    });

    test.each(Object.entries(invariants))("keeps %s", (_, holds) => {
      for (const path of walks) holds(path);
    });

    it.effect(
      "takes the same way through the actor host, saves each accepted event once and no refused one",
      () =>
        Effect.gen(function* () {
          const replayed = yield* Effect.forEach(newWays(walks), (steps) =>
            Effect.scoped(replay(model, steps)),
          );
          expect(replayed.length).toBeGreaterThan(0);
        }),
    );
  });
};
