/**
 * Passes text that grows on to the readers of a conversation on this node. It keeps no text: a reader that misses
 * some gets the whole item with its next version.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type * as Scope from "effect/Scope";

/** Text that was added to an item's last text part. */
export interface ItemDelta {
  readonly itemId: string;
  /** The text's length before, in UTF-16 code units. */
  readonly offset: number;
  readonly text: string;
  /** The version that the text continues. It fits only after every version up to this number. */
  readonly seq: number;
}

/** How many deltas wait for a slow reader. Beyond that it loses the oldest. */
const WAITING_MAX = 256;

/** The deltas that wait for one reader. */
export interface WaitingDeltas {
  /** Takes those that fit after the versions up to this number, oldest first. */
  readonly take: (seq: number) => readonly ItemDelta[];
  /** Whether there are any. */
  readonly areThere: () => boolean;
}

export class ConversationHub extends Context.Service<
  ConversationHub,
  {
    readonly publish: (sessionId: string, deltas: readonly ItemDelta[]) => void;
    /** Collects deltas from now on, while the scope lives. `wake` is called when there are new ones. */
    readonly attach: (
      sessionId: string,
      wake: () => void,
    ) => Effect.Effect<WaitingDeltas, never, Scope.Scope>;
  }
>()("platform/services/ConversationHub") {}

/**
 * Whether a text follows another one that waits for a later version. That version takes readers back to the beginning of
 * the other one, so they need this text again.
 */
const continues = (delta: ItemDelta, { itemId, offset, text }: ItemDelta): boolean =>
  delta.itemId === itemId && delta.offset === offset + text.length;

class Reader implements WaitingDeltas {
  readonly #wake: () => void;
  #waiting: ItemDelta[] = [];

  constructor(wake: () => void) {
    this.#wake = wake;
  }

  offer(deltas: readonly ItemDelta[]): void {
    this.#waiting.push(...deltas);
    if (this.#waiting.length > WAITING_MAX) this.#waiting = this.#waiting.slice(-WAITING_MAX);
    this.#wake();
  }

  take(seq: number): readonly ItemDelta[] {
    const current: ItemDelta[] = [];
    let early: ItemDelta[] = [];
    for (const delta of this.#waiting) {
      if (delta.seq > seq) {
        early.push(delta);
        continue;
      }
      current.push(delta);
      early = early.map((other) =>
        continues(delta, other) ? { ...other, text: other.text + delta.text } : other,
      );
    }
    this.#waiting = early;
    return current;
  }

  areThere(): boolean {
    return this.#waiting.length > 0;
  }
}

export const conversationHubLayer: Layer.Layer<ConversationHub> = Layer.sync(ConversationHub, () => {
  const readers = new Map<string, Set<Reader>>();
  const detach = (sessionId: string, reader: Reader): void => {
    const others = readers.get(sessionId);
    others?.delete(reader);
    if (others?.size === 0) readers.delete(sessionId);
  };
  return ConversationHub.of({
    publish: (sessionId, deltas) => {
      if (deltas.length > 0) for (const reader of readers.get(sessionId) ?? []) reader.offer(deltas);
    },
    attach: (sessionId, wake) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          const reader = new Reader(wake);
          readers.set(sessionId, (readers.get(sessionId) ?? new Set()).add(reader));
          return reader;
        }),
        (reader) => Effect.sync(() => detach(sessionId, reader)),
      ),
  });
});
