/**
 * Passes text that grows on to the readers of a conversation on this node. It keeps no text: a reader that misses
 * some gets the whole item with its next version.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Queue from "effect/Queue";
import * as Stream from "effect/Stream";

/** Text that was added to an item's last text part. */
export interface ItemDelta {
  readonly itemId: string;
  /** The text's length before, in UTF-16 code units. */
  readonly offset: number;
  readonly text: string;
}

/** How many deltas wait for a slow reader. Beyond that it loses the oldest. */
const WAITING_MAX = 256;

export class ConversationHub extends Context.Service<
  ConversationHub,
  {
    readonly publish: (sessionId: string, deltas: readonly ItemDelta[]) => void;
    /** Deltas from now on. */
    readonly deltas: (sessionId: string) => Stream.Stream<ItemDelta>;
  }
>()("platform/services/ConversationHub") {}

export const conversationHubLayer: Layer.Layer<ConversationHub> = Layer.sync(ConversationHub, () => {
  const readers = new Map<string, Set<Queue.Queue<ItemDelta>>>();
  const attach = (sessionId: string, queue: Queue.Queue<ItemDelta>): void => {
    readers.set(sessionId, (readers.get(sessionId) ?? new Set()).add(queue));
  };
  const detach = (sessionId: string, queue: Queue.Queue<ItemDelta>): void => {
    const others = readers.get(sessionId);
    others?.delete(queue);
    if (others?.size === 0) readers.delete(sessionId);
  };
  const attached = (sessionId: string) =>
    Effect.acquireRelease(
      Effect.tap(Queue.sliding<ItemDelta>(WAITING_MAX), (queue) =>
        Effect.sync(() => attach(sessionId, queue)),
      ),
      (queue) => Effect.sync(() => detach(sessionId, queue)),
    );
  return ConversationHub.of({
    publish: (sessionId, deltas) => {
      for (const queue of readers.get(sessionId) ?? []) Queue.offerAllUnsafe(queue, deltas);
    },
    deltas: (sessionId) => Stream.unwrap(Effect.map(attached(sessionId), Stream.fromQueue)),
  });
});
