/** Counts statements. */
import * as Effect from "effect/Effect";
import * as Tracer from "effect/Tracer";

/** How many statements an effect runs, and what it gives. */
export const counted = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  let count = 0;
  const tracer = Tracer.make({
    span: (options) => {
      if (options.kind === "client") count += 1;
      return new Tracer.NativeSpan(options);
    },
  });
  return { answer: yield* Effect.withTracer(effect, tracer), count: () => count };
});
