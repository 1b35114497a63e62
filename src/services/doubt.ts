import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Queue from "effect/Queue";

/**
 * Called if it is unknown whether something was committed, so an actor may need a wake: the next look follows at once.
 * A lost signal costs an interval. Without recovery the call does nothing.
 */
export const Doubt = Context.Reference<() => void>("platform/services/Doubt", {
  defaultValue: () => () => undefined,
});

/** Passes doubts to recovery. Anything that may raise a doubt needs this layer below it. */
export class Doubts extends Context.Service<Doubts, Queue.Queue<void>>()("platform/services/Doubts") {
  static readonly layer = Layer.effectContext(
    Effect.map(Queue.sliding<void>(1), (queue) =>
      Context.make(Doubts, queue).pipe(Context.add(Doubt, () => void Queue.offerUnsafe(queue, undefined))),
    ),
  );
}
