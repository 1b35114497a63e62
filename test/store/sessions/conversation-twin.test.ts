/** Random histories of a conversation, told to Postgres and to the twin alike: both give the same answers. */
import * as Effect from "effect/Effect";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { memoryStore } from "../../twins/store/layer.ts";
import { Conversations } from "../../../src/store/ports/sessions/conversations.ts";
import { type Store } from "../../conformance/store/fixture.ts";
import { nativeItem, replaceSandbox, report, tokens } from "../../support/world/conversations.ts";
import { admitSession, openSandbox } from "../../support/world/sessions.ts";
import { makeWorld, NOON, numbered } from "../../support/world/world.ts";
import { storeOfFile } from "../../support/postgres/postgres.ts";
import { rounds } from "../../support/vitest/rings.ts";

const RUNS = rounds(8, 25);
const SESSION = numbered(10);

const nativeId = fc.constantFrom("a", "b", "c", "d");
const anyItem = fc.record({
  native_id: nativeId,
  rev: fc.nat(20),
  order: fc.nat(9),
  kind: fc.constantFrom("message" as const, "tool" as const, "request" as const),
  role: fc.constantFrom("user" as const, "agent" as const, null),
  status: fc.constantFrom(
    "pending" as const,
    "running" as const,
    "completed" as const,
    "interrupted" as const,
  ),
  message_id: fc.constantFrom(null, null, null, SESSION, "not an id"),
  turn_id: fc.option(nativeId),
  parent_id: fc.option(nativeId),
  content: fc.array(fc.record({ type: fc.constant("text" as const), text: fc.string({ unit: "binary" }) }), {
    maxLength: 2,
  }),
  context: fc.option(fc.record({ tokens: fc.double(), size: fc.option(fc.nat(9)) })),
  usage: fc.option(fc.record({ count: fc.nat(9), cost: fc.double({ min: 0, max: 1, noNaN: true }) })),
});
const anyTurn = fc.record({
  state: fc.constantFrom("idle" as const, "running" as const, "requires_action" as const),
  waiting_for: fc.option(nativeId),
});
const anyStep = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      op: fc.constant("note" as const),
      items: fc.array(anyItem, { maxLength: 4 }),
      turn: fc.option(anyTurn),
      rev: fc.nat(20),
      isCurrent: fc.constantFrom(true, true, true, false),
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant("replace" as const) }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant("close" as const), isCurrent: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({ op: fc.constant("output" as const), of: fc.nat(5), text: fc.string() }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant("page" as const),
      before: fc.option(fc.integer({ min: 1, max: 20 })),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant("after" as const),
      seq: fc.nat(30),
      limit: fc.integer({ min: 1, max: 5 }),
    }),
  },
);
type Step = typeof anyStep extends fc.Arbitrary<infer S> ? S : never;

/** Plays a history and writes down every answer. */
const play = Effect.fnUntraced(function* (steps: readonly Step[]) {
  const conversations = yield* Conversations;
  const world = yield* makeWorld({
    cap: 9,
    accountId: numbered(1),
    userId: numbered(2),
    projectId: numbered(3),
  });
  yield* admitSession(world, { id: SESSION });
  const sandboxes = [(yield* openSandbox(SESSION)).id];
  const answers: unknown[] = [yield* conversations.open(SESSION, NOON)];

  const perform = Effect.fnUntraced(function* (step: Step, now: number) {
    const current = sandboxes.at(-1) ?? "";
    switch (step.op) {
      case "note": {
        const items = step.items.map(({ native_id, rev, usage, context, ...fields }) =>
          nativeItem(native_id, rev, {
            ...fields,
            ...(context !== null && { context }),
            usage: usage && tokens(usage.count, usage.cost),
          }),
        );
        const sandboxId = step.isCurrent ? current : (sandboxes.at(-2) ?? current);
        return yield* conversations.note(
          SESSION,
          report(sandboxId, step.rev, { items, turn: step.turn, now }),
        );
      }
      case "replace": {
        sandboxes.push(yield* replaceSandbox(SESSION, current));
        return null;
      }
      case "close": {
        const sandboxId = step.isCurrent ? current : (sandboxes.at(-2) ?? current);
        return yield* conversations.close(SESSION, { sandboxId, as: "lost", now });
      }
      case "output": {
        const { items = [] } = (yield* conversations.page(SESSION, { before: null, limit: 100 })) ?? {};
        const { id: itemId = SESSION, sandboxId } = items[step.of] ?? {};
        return [
          yield* conversations.keepOutput(SESSION, {
            itemId,
            sandboxId: sandboxId ?? current,
            text: step.text,
          }),
          yield* conversations.output(SESSION, itemId),
        ];
      }
      case "page":
        return yield* conversations.page(SESSION, {
          before: step.before === null ? null : String(step.before),
          limit: 3,
        });
      case "after":
        return yield* conversations.changedAfter(SESSION, step.seq, step.limit);
    }
  });
  for (const [index, step] of steps.entries()) answers.push(yield* perform(step, NOON + index));
  answers.push(yield* conversations.page(SESSION, { before: null, limit: 100 }));
  // The ids of sandboxes are random: each gets its number.
  const text = sandboxes.reduce(
    (all, id, index) => all.replaceAll(id, `sandbox ${index}`),
    JSON.stringify(answers),
  );
  return JSON.parse(text) as unknown;
});

const inPostgres = storeOfFile();

const played = (steps: readonly Step[], store: typeof memoryStore | typeof inPostgres) =>
  Effect.runPromise(
    Effect.provide(play(steps) as Effect.Effect<unknown, unknown, Store>, store, { local: true }),
  );

it("both stores answer alike through random histories of a conversation", async () => {
  // A failing history is printed with the seed that brings it back: `fc.assert(…, { seed, path })`.
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { minLength: 5, maxLength: 30 }), async (steps) => {
      expect(await played(steps, inPostgres)).toEqual(await played(steps, memoryStore));
    }),
    { numRuns: RUNS },
  );
});
