/**
 * What all readers of one subject on this node follow together: a project's events, or a conversation's.
 *
 *  T1 One tail reads the store for a subject, however many follow it. It reads when a commit's signal comes, and every
 *     15 s in case a signal was lost. Without readers there is no tail.
 *  T2 A ring keeps what some reader has not taken yet, up to `RING_BYTES`. A reader that is further behind reads the
 *     store by itself, until it has caught up.
 *  T3 A reader takes its place in the ring before it reads the store. So it misses nothing in between. Entries that it
 *     gets twice are dropped by their number.
 */
import type * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Latch from "effect/Latch";
import * as Option from "effect/Option";
import * as RcMap from "effect/RcMap";
import * as Schedule from "effect/Schedule";
import type * as Scope from "effect/Scope";
import * as Stream from "effect/Stream";
import type { StoreError } from "../../store/ports/journal.ts";

/** How often a tail looks without a signal, and sends the comment that keeps its readers' connections open. */
const TICK: Duration.Input = "15 seconds";
/** A tail whose last reader has left stays for a moment: readers come back after a break. */
const LINGER: Duration.Input = "5 seconds";
/** After the database did not answer. */
const AGAIN = "1 second";
/** What a ring keeps for its slowest reader. */
const RING_BYTES = 1024 * 1024;

/** A part of the stream, encoded once for all readers. */
export interface Framed {
  readonly frame: Uint8Array;
}

const encoder = new TextEncoder();
export const encodeFrame = (frame: string): Uint8Array => encoder.encode(frame);
const COMMENT = encodeFrame(": keep\n\n");

/** One reader's place in a ring. */
interface Follower {
  /** The index of the next entry. */
  at: number;
  isBehind: boolean;
  readonly news: Latch.Latch;
}

export class Ring<E extends Framed> {
  #entries: E[] = [];
  /** The index of the first entry. */
  #first = 0;
  #bytes = 0;
  readonly #followers = new Set<Follower>();
  /** How many followers have not taken everything. */
  #behind = 0;
  #isOver = false;

  get isOver(): boolean {
    return this.#isOver;
  }

  /** How many entries are kept. */
  get length(): number {
    return this.#entries.length;
  }

  get #end(): number {
    return this.#first + this.#entries.length;
  }

  /** Takes a place at the end, while the scope lives. */
  get attach(): Effect.Effect<Follower, never, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.sync(() => {
        const follower = { at: this.#end, isBehind: false, news: Latch.makeUnsafe(this.#isOver) };
        this.#followers.add(follower);
        return follower;
      }),
      (follower) =>
        Effect.sync(() => {
          this.#followers.delete(follower);
          this.#caughtUp(follower);
        }),
    );
  }

  push(entries: readonly E[]): void {
    if (entries.length === 0 || this.#followers.size === 0) return;
    for (const entry of entries) {
      this.#entries.push(entry);
      this.#bytes += entry.frame.length;
    }
    if (this.#bytes > RING_BYTES) this.#drop();
    this.#wakeAll();
  }

  /** Drops all entries: every follower reads the store by itself. */
  forget(): void {
    this.#first = this.#end + 1;
    this.#entries = [];
    this.#bytes = 0;
    this.#wakeAll();
  }

  /** The subject is gone. Readers end. */
  end(): void {
    this.#isOver = true;
    for (const { news } of this.#followers) news.openUnsafe();
  }

  /** Goes to the end, past everything that is kept. */
  skip(follower: Follower): void {
    follower.at = this.#end;
    if (!this.#isOver) follower.news.closeUnsafe();
    this.#caughtUp(follower);
  }

  /** The entries that the follower has not taken. Null if some of them were dropped. */
  take(follower: Follower): readonly E[] | null {
    const from = follower.at - this.#first;
    const entries = from < 0 ? null : this.#entries.slice(from);
    this.skip(follower);
    return entries;
  }

  #wakeAll(): void {
    this.#behind = this.#followers.size;
    for (const follower of this.#followers) follower.isBehind = true;
    // Apart from the loop above: an opened latch runs its waiter immediately, and the last one to take empties the ring.
    for (const { news } of this.#followers) news.openUnsafe();
  }

  #caughtUp(follower: Follower): void {
    if (!follower.isBehind) return;
    follower.isBehind = false;
    this.#behind -= 1;
    if (this.#behind > 0) return;
    this.#first = this.#end;
    this.#entries = [];
    this.#bytes = 0;
  }

  /** Drops the older half, so that not every push drops something. */
  #drop(): void {
    let count = 0;
    for (; this.#bytes > RING_BYTES / 2; count += 1) this.#bytes -= this.#entries[count]?.frame.length ?? 0;
    this.#entries.splice(0, count);
    this.#first += count;
  }
}

/** How a tail finds what is new. */
export interface Looking<E extends Framed> {
  readonly ring: Ring<E>;
  /** Completes at a commit's signal. */
  readonly changed: Effect.Effect<void>;
  /** Pushes what is new. */
  readonly look: Effect.Effect<void, StoreError>;
  /** An entry that every reader passes on. */
  readonly comment: (frame: Uint8Array) => E;
}

/** Looks at each signal and each tick (T1), in the caller's scope. @returns a function that makes it look. */
export const lookOn = Effect.fnUntraced(function* <E extends Framed>(looking: Looking<E>) {
  const { ring, changed, look, comment } = looking;
  const news = Latch.makeUnsafe(false);
  const wake = Effect.sync(() => news.openUnsafe());
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(changed, wake)), { startImmediately: true });
  const tick = Effect.sync(() => {
    ring.push([comment(COMMENT)]);
    news.openUnsafe();
  });
  yield* Effect.forkScoped(Effect.repeat(Effect.delay(tick, TICK), Schedule.forever));
  const next = Effect.gen(function* () {
    yield* news.await;
    // Before the look, so that no signal is lost in between.
    news.closeUnsafe();
    yield* Effect.retry(look, Schedule.spaced(AGAIN));
  });
  // After a defect it looks again, too: only this tail tells its readers.
  const safely = Effect.catchDefect(next, (defect) =>
    Effect.logError("live readers could not be told", defect).pipe(
      Effect.andThen(Effect.sleep(AGAIN)),
      Effect.andThen(wake),
    ),
  );
  yield* Effect.forkScoped(Effect.forever(safely));
  return () => news.openUnsafe();
});

/** The tails of this node, by subject. A tail lives while it has readers. */
export const makeTails = <E extends Framed, R>(
  follow: (subject: string) => Effect.Effect<Ring<E>, StoreError, R | Scope.Scope>,
) => RcMap.make({ lookup: follow, idleTimeToLive: LINGER });

/** The ring of a subject's tail, which lives while the caller's scope does. */
export const subjectTail = <E extends Framed>(
  tails: RcMap.RcMap<string, Ring<E>, StoreError>,
  subject: string,
): Effect.Effect<Ring<E>, StoreError, Scope.Scope> =>
  // The map keeps a failure like a tail: the next reader would get it, too.
  Effect.tapError(RcMap.get(tails, subject), () => RcMap.invalidate(tails, subject));

/** A part of what a reader has read by itself. */
export interface CaughtUp<P> {
  readonly frames: readonly Uint8Array[];
  readonly place: P;
  /** Whether that was all. */
  readonly isAll: boolean;
}

export interface Reading<E extends Framed, P, R> {
  readonly ring: Ring<E>;
  readonly follower: Follower;
  readonly from: P;
  /** Whether everything up to the ring is read. */
  readonly isAll?: boolean;
  /** Reads the store after a place. Null if the subject is gone. */
  readonly read: (place: P) => Effect.Effect<CaughtUp<P> | null, StoreError, R>;
  /** What a reader at this place gets of the entries. Null if something before them is missing. */
  readonly pass: (entries: readonly E[], place: P) => Omit<CaughtUp<P>, "isAll"> | null;
}

interface At<P> {
  readonly place: P;
  readonly isLive: boolean;
}

/** One reader: what the store has after its place, and then the ring's entries, until the subject is gone. */
export const reading = <E extends Framed, P, R>({
  ring,
  follower,
  from,
  isAll = false,
  read,
  pass,
}: Reading<E, P, R>): Stream.Stream<Uint8Array, StoreError, R> => {
  let hasRead = isAll;
  const next = ({ place, isLive }: At<P>) =>
    Effect.gen(function* () {
      if (!isLive) {
        // The first time, its place in the ring is from before its first event.
        if (hasRead) ring.skip(follower);
        hasRead = true;
        const caughtUp = yield* read(place);
        if (caughtUp === null) return [[], Option.none<At<P>>()] as const;
        return [caughtUp.frames, Option.some({ place: caughtUp.place, isLive: caughtUp.isAll })] as const;
      }
      yield* follower.news.await;
      if (ring.isOver) return [[], Option.none<At<P>>()] as const;
      const entries = ring.take(follower);
      const onward = entries === null ? null : pass(entries, place);
      if (onward === null) return [[], Option.some({ place, isLive: false })] as const;
      return [onward.frames, Option.some({ place: onward.place, isLive: true })] as const;
    });
  return Stream.paginate({ place: from, isLive: isAll } as At<P>, next);
};
