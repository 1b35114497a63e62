import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Queue from "effect/Queue";

/**
 * Called when a person's request begins to wait for a slot: the sweeper looks at once whether a resting session can make room.
 * A lost call, or one on another node than the session's, costs a period of the sweeper.
 */
export const RoomWish = Context.Reference<() => void>("platform/services/RoomWish", {
  defaultValue: () => () => undefined,
});

/** Passes the wishes to the sweeper. */
export class RoomWishes extends Context.Service<RoomWishes, Queue.Queue<void>>()(
  "platform/services/RoomWishes",
) {
  static readonly layer = Layer.effectContext(
    Effect.map(Queue.sliding<void>(1), (queue) =>
      Context.make(RoomWishes, queue).pipe(
        Context.add(RoomWish, () => void Queue.offerUnsafe(queue, undefined)),
      ),
    ),
  );
}
