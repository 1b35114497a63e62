/**
 * The agent runtimes to which people talk, one for each sandbox, in worlds that have people. A runtime goes on after its
 * sandbox's record has ended: a late node may still reach the old one.
 *
 *  It takes a message at rest only, and once for each id. While a turn is open, it is busy with that turn.
 *  It asks in some turns, and waits for the answer as long as it takes.
 *  Some calls never reach it, and some of its answers are lost.
 *  Some readers of its talk are slow: they get one item at a time, and of each the version that is the newest by then.
 */
import { isDeepStrictEqual } from "node:util";
import * as Effect from "effect/Effect";
import * as Stream from "effect/Stream";
import type { ItemError, NativeItem } from "../../../src/domain/conversation/conversation.ts";
import type {
  MessageHandedOver,
  OutgoingMessage,
  RequestAnswer,
} from "../../../src/domain/conversation/steering.ts";
import { DaemonUnreachable, type DaemonClient } from "../../../src/sandbox/daemon.ts";
import type { DaemonLink } from "../../../src/sandbox/port.ts";
import type { Random } from "../random.ts";
import { Runtime } from "./runtime.ts";
import { BREAKS, linesOf, madeIn, newest, REPEATS, type TalkOptions, type Talks } from "./talks.ts";

/** The share of calls that are lost on the way, and the same share of answers. */
const LOST = 0.03;
/** The share of slow reads, and how long one takes at most, ms. */
const SLOW = 0.5;
const SLOW_MAX_MS = 1_500;
/** The share of messages that the runtime never takes. */
const REFUSED = 0.03;
export const REFUSAL: ItemError = {
  code: "unknown_model",
  message: "The simulated runtime has no such model.",
};

/** A message that reached a runtime. */
export interface Handed {
  readonly sandboxId: string;
  readonly message: OutgoingMessage;
  readonly outcome: MessageHandedOver;
}

/** A turn that a call ended. */
export interface Stopped {
  readonly sandboxId: string;
  readonly turn: number;
  /** The message that began it, and when, ms of `elapsed`. */
  readonly messageId: string | null;
  readonly since: number;
}

export interface Heard {
  readonly sandboxId: string;
  /** The request's native id. */
  readonly requestId: string;
  readonly answer: RequestAnswer;
}

type Steering = "hand" | "attach" | "interrupt" | "answer" | "models" | "abort" | "goOn";

export interface RuntimeOptions extends TalkOptions {
  /** Whether the sandbox's daemon can be reached, and its runtime is ready. */
  readonly isReady: (sandboxId: string) => boolean;
  readonly idOf: (link: DaemonLink) => string;
}

const isHandedOver = (outcome: MessageHandedOver | null): outcome is MessageHandedOver => outcome !== null;

const lost = () => new DaemonUnreachable({ message: "the simulated daemon did not answer" });

export class Runtimes {
  /** Called when a message has reached a runtime. */
  onHanded: (handed: Handed) => void = () => undefined;
  /** Called when an interrupt has ended a turn. */
  onStopped: (stopped: Stopped) => void = () => undefined;
  /** Called when an agent has its answer. */
  onHeard: (heard: Heard) => void = () => undefined;
  readonly #options: RuntimeOptions;
  readonly #runtimes = new Map<string, { readonly runtime: Runtime; readonly random: Random }>();
  /** The sandboxes that are about to end. They take no message. */
  readonly #ending = new Set<string>();
  #isHealed = false;

  constructor(options: RuntimeOptions) {
    this.#options = options;
  }

  of(sandboxId: string): Runtime {
    return this.#of(sandboxId).runtime;
  }

  #of(sandboxId: string) {
    const known = this.#runtimes.get(sandboxId);
    if (known !== undefined) return known;
    const { time, randomOf, beginsAt } = this.#options;
    const random = randomOf(`runtime of ${sandboxId}`);
    const runtime = new Runtime({ id: sandboxId, time, random, beginsAt: beginsAt(sandboxId) });
    if (this.#isHealed) runtime.calm();
    const made = { runtime, random };
    this.#runtimes.set(sandboxId, made);
    return made;
  }

  /** Requests that wait in any runtime. */
  get waiting(): readonly { readonly sandboxId: string; readonly request: NativeItem }[] {
    return [...this.#runtimes].flatMap(([sandboxId, { runtime }]) => {
      const request = runtime.waitsFor;
      return request === null ? [] : [{ sandboxId, request }];
    });
  }

  readonly talks: Talks = {
    follow: (sandboxId, after) => this.#follow(sandboxId, after),
    // A message is the service's own item, whichever sandbox has it.
    saidBy: (sandboxId, until) =>
      newest(this.of(sandboxId).said.filter(({ at }) => at <= until)).filter(
        ({ message_id: message }) => message === null,
      ),
    madeBy: (sandboxId) => madeIn(this.of(sandboxId).said),
    heal: () => {
      this.#isHealed = true;
      for (const { runtime } of this.#runtimes.values()) runtime.calm();
    },
  };

  readonly steering: Pick<DaemonClient["Service"], Steering> = {
    hand: (link, _context, message) =>
      this.#called(link, (sandboxId) => {
        if (this.#ending.has(sandboxId)) return null;
        const outcome = this.#hand(sandboxId, message);
        this.onHanded({ sandboxId, message, outcome });
        return outcome;
      }).pipe(Effect.filterOrFail(isHandedOver, lost)),
    attach: () => Effect.void,
    interrupt: (link, _context, { turn }) => this.#called(link, (sandboxId) => this.#stop(sandboxId, turn)),
    answer: (link, _context, { request_id: requestId, answer }) =>
      this.#called(link, (sandboxId) => {
        const isOpen = this.of(sandboxId).answer(requestId);
        if (isOpen) this.onHeard({ sandboxId, requestId, answer });
        return isOpen;
      }),
    models: (link) => this.#called(link, () => ({ models: [], agents: [], default_model: null })),
    // Before its work is saved, the agent has to stop.
    abort: (link) =>
      this.#called(link, (sandboxId) => {
        this.#ending.add(sandboxId);
        const { open } = this.of(sandboxId);
        return open !== null && this.of(sandboxId).interrupt(open.number);
      }),
    goOn: (link) => this.#called(link, (sandboxId) => void this.#ending.delete(sandboxId)),
  };

  #hand(sandboxId: string, message: OutgoingMessage): MessageHandedOver {
    const { runtime, random } = this.#of(sandboxId);
    if (random.chance(REFUSED) && runtime.takes(message.id)) return runtime.refuse(message.id, REFUSAL);
    return runtime.hand(message);
  }

  #stop(sandboxId: string, turn: number): boolean {
    const runtime = this.of(sandboxId);
    const { open } = runtime;
    const isStopped = runtime.interrupt(turn);
    if (isStopped && open !== null)
      this.onStopped({ sandboxId, turn, messageId: open.messageId, since: open.since });
    return isStopped;
  }

  #called<A>(link: DaemonLink, call: (sandboxId: string) => A): Effect.Effect<A, DaemonUnreachable> {
    return Effect.suspend(() => {
      const sandboxId = this.#options.idOf(link);
      if (!this.#options.isReady(sandboxId)) return Effect.fail(lost());
      const { random } = this.#of(sandboxId);
      if (!this.#isHealed && random.chance(LOST)) return Effect.fail(lost());
      const answer = call(sandboxId);
      return !this.#isHealed && random.chance(LOST) ? Effect.fail(lost()) : Effect.succeed(answer);
    });
  }

  #follow(sandboxId: string, after: number): ReturnType<Talks["follow"]> {
    let read = after;
    let isTold = false;
    // Apart, so that the runtime does the same however slow its readers are.
    const pace = this.#options.randomOf(`reader of ${sandboxId}`);
    const round = Effect.gen({ self: this }, function* () {
      const { runtime, random } = this.#of(sandboxId);
      // A new reader gets the state of the turn at once.
      if (isTold) yield* runtime.newsAfter(read);
      if (!this.#isHealed && random.chance(BREAKS)) return yield* lost();
      const from = random.chance(REPEATS) ? 0 : read;
      const present = runtime.present;
      const due = present.filter(({ rev }) => rev > from);
      const [first, ...more] = newest(due);
      if (first !== undefined && more.length > 0 && !this.#isHealed && pace.chance(SLOW)) {
        read = Math.max(read, first.rev);
        yield* Effect.sleep(pace.between(0, SLOW_MAX_MS));
        return [{ type: "item" as const, item: first }];
      }
      read = Math.max(read, due.at(-1)?.rev ?? 0);
      const isNews = !isTold || due.length > 0;
      isTold = true;
      return isNews ? linesOf(due, present.at(-1) ?? null) : [];
    });
    return Stream.flatMap(Stream.fromEffectRepeat(round), (lines) => Stream.fromIterable(lines));
  }
}

/** Whether two answers are the same. */
export const isSameAnswer = (one: RequestAnswer | null, other: RequestAnswer | null): boolean =>
  isDeepStrictEqual(one, other);
