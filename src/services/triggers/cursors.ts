/**
 * Reads the cursors of cron triggers in batches. Requests that arrive during a read share the next one: many triggers
 * are due in the same second, and a statement for each would take longer than their rows.
 */
import * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import { StoreError } from "../../store/ports/journal.ts";
import { Projects, type TriggerCursor, type TriggerKey } from "../../store/ports/projects/projects.ts";

/** How many cursors one statement reads. */
const TOGETHER = 500;
/** How many statements run at the same time. A statement that hangs delays only its own triggers. */
const AT_ONCE = 4;
const DEADLINE = "10 seconds";

export class CursorReads extends Context.Service<
  CursorReads,
  {
    /** The trigger's cursor as it is now. Null if it has none. */
    readonly read: (of: TriggerKey) => Effect.Effect<TriggerCursor | null, StoreError>;
  }
>()("platform/services/CursorReads") {}

interface Asked {
  readonly key: TriggerKey;
  readonly answer: Deferred.Deferred<TriggerCursor | null, StoreError>;
}

const cursorKey = ({ projectId, slug }: TriggerKey): string => `${projectId}/${slug}`;

export const cursorReadsLayer: Layer.Layer<CursorReads, never, Projects> = Layer.effect(
  CursorReads,
  Effect.gen(function* () {
    const projects = yield* Projects;
    const scope = yield* Effect.scope;
    const waiting: Asked[] = [];
    let reading = 0;
    const readTogether = Effect.fnUntraced(function* (requests: readonly Asked[]) {
      const exit = yield* Effect.exit(
        Effect.timeoutOrElse(projects.cursors(requests.map(({ key }) => key)), {
          duration: DEADLINE,
          orElse: () => Effect.fail(new StoreError({ operation: "cursors", cause: new Error("it hangs") })),
        }),
      );
      const byKey = new Map(Exit.isSuccess(exit) ? exit.value.map((one) => [cursorKey(one), one]) : []);
      for (const { key, answer } of requests)
        yield* Deferred.done(
          answer,
          Exit.map(exit, () => byKey.get(cursorKey(key)) ?? null),
        );
    });
    const readAll = Effect.whileLoop({
      while: () => waiting.length > 0,
      body: () => readTogether(waiting.splice(0, TOGETHER)),
      step: () => undefined,
    });
    const begin = Effect.suspend(() => {
      if (reading >= AT_ONCE) return Effect.void;
      reading += 1;
      return Effect.asVoid(
        Effect.forkIn(
          Effect.ensuring(
            readAll,
            Effect.sync(() => (reading -= 1)),
          ),
          scope,
        ),
      );
    });
    return CursorReads.of({
      read: (key) =>
        Effect.suspend(() => {
          const answer = Deferred.makeUnsafe<TriggerCursor | null, StoreError>();
          waiting.push({ key, answer });
          return Effect.andThen(begin, Deferred.await(answer));
        }),
    });
  }),
);
