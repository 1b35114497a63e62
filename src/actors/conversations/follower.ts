/**
 * Keeps what a sandbox's daemon reports of the conversation.
 *
 *  L1 A version is written before its readers see it. Growing text is passed on at once, and written with its version. It
 *     does not wait for the write of an earlier version (growing-text.ts).
 *  L2 After a break the daemon reports again from the last written version on.
 *  L3 A sandbox that is not its session's current one any more writes nothing, and is not followed any longer.
 *  L4 The conversation's actor is told what the runtime does after that is written (runtime-reports.ts).
 *  L5 A tool's whole output is fetched when its item has ended with the beginning of it, while the daemon has it.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Latch from "effect/Latch";
import * as Stream from "effect/Stream";
import {
  isTurnOpen,
  type ConversationReport,
  type NativeItem,
  type TurnNow,
} from "../../domain/conversation/conversation.ts";
import { DaemonClient } from "../../sandbox/daemon.ts";
import { SandboxProvider, type DaemonLink } from "../../sandbox/port.ts";
import { withLink } from "../../services/answered.ts";
import { ConversationHub } from "../../services/sessions/conversation-hub.ts";
import { serviceContext } from "../../services/sessions/service-context.ts";
import { WorkTimes } from "../../services/sessions/work-times.ts";
import { Conversations, type ChangedConversation } from "../../store/ports/sessions/conversations.ts";
import { Measures, Traces } from "../../telemetry/port.ts";
import type { SaveOccasions } from "../sandboxes/continuous-saves.ts";
import { GrowingTexts } from "./growing-text.ts";
import { outputKeeper } from "./long-outputs.ts";
import { runtimeReporter, type RequestOptions } from "./runtime-reports.ts";
import { waitOutOutage } from "../../store/ports/outage.ts";
import { backoff } from "../../ground/backoff.ts";

/** If a daemon does not answer, it is asked again: soon after a short break, rarely if it stays silent. */
const AGAIN = backoff("250 millis", "10 seconds");
/** How many versions are written together. */
const BATCH = 200;

/** The sandbox whose conversation is followed. */
interface Followed {
  readonly sandboxId: string;
  readonly sessionId: string;
}

interface Following extends Followed {
  readonly link: DaemonLink;
  readonly occasions: SaveOccasions;
}

/** Versions that are written together, and the newest state of the turn. */
interface Portion {
  readonly items: readonly NativeItem[];
  readonly turn: TurnNow | null;
  /** How many turns have ended. Null means no news. */
  readonly ended: number | null;
  readonly rev: number;
}

type Version = Exclude<ConversationReport, { readonly type: "delta" }>;

const toPortion = (lines: readonly Version[]): Portion => {
  // Of an item that was reported twice, the later version replaces the earlier one.
  const items = new Map<string, NativeItem>();
  for (const line of lines) {
    if (line.type !== "item") continue;
    items.delete(line.item.native_id);
    items.set(line.item.native_id, line.item);
  }
  const last = lines.findLast((line) => line.type === "turn");
  const revs = lines.map((line) => (line.type === "item" ? line.item.rev : line.rev));
  return {
    items: [...items.values()],
    turn: last?.turn ?? null,
    ended: last?.ended ?? null,
    rev: Math.max(0, ...revs),
  };
};

/** The versions that wait to be written. */
class Unwritten {
  #lines: Version[] = [];
  readonly isThere = Latch.makeUnsafe(false);
  /** Open while the daemon may report more: it waits while a whole portion waits here. */
  readonly hasRoom = Latch.makeUnsafe(true);
  /** Open while nothing waits and nothing is being written. */
  readonly isSettled = Latch.makeUnsafe(true);

  add(line: Version): void {
    this.#lines.push(line);
    if (this.#lines.length >= BATCH) this.hasRoom.closeUnsafe();
    this.isSettled.closeUnsafe();
    this.isThere.openUnsafe();
  }

  take(): readonly Version[] {
    const lines = this.#lines.splice(0, BATCH);
    if (this.#lines.length === 0) this.isThere.closeUnsafe();
    if (this.#lines.length < BATCH) this.hasRoom.openUnsafe();
    return lines;
  }

  wrote(): void {
    if (this.#lines.length === 0) this.isSettled.openUnsafe();
  }
}

/** @returns a function that follows the conversation in one sandbox. It never ends. */
export const conversationFollower = Effect.fnUntraced(function* (options: RequestOptions) {
  const conversations = yield* Conversations;
  const provider = yield* SandboxProvider;
  const daemon = yield* DaemonClient;
  const hub = yield* ConversationHub;
  const sign = yield* serviceContext;
  const makeReports = yield* runtimeReporter(options);
  const makeOutputs = yield* outputKeeper;
  const measures = yield* Measures;
  const traces = yield* Traces;

  return ({ occasions, ...followed }: Following): Effect.Effect<never> =>
    Effect.gen(function* () {
      const { sandboxId, sessionId } = followed;
      const now = yield* Clock.currentTimeMillis;
      const opening = yield* waitOutOutage("conversation", conversations.open(sessionId, now));
      if (opening === null) return yield* Effect.never;
      /** How far the conversation is written: the daemon's revision, and the conversation's number. */
      let position = { after: opening.sandbox?.id === sandboxId ? opening.sandbox.rev : 0, seq: opening.seq };
      const texts = new GrowingTexts(opening.seq);
      const unwritten = new Unwritten();
      const report = yield* makeReports(followed);
      const times = new WorkTimes({ measures, traces }, followed);

      const keepOutputs = yield* makeOutputs(followed);

      const keep = Effect.fnUntraced(function* ({ ended, ...portion }: Portion) {
        let change: ChangedConversation | null = null;
        // A turn has the number of the last version before it, which may be written already.
        if (portion.rev > position.after || (portion.turn !== null && portion.rev === position.after)) {
          const at = yield* Clock.currentTimeMillis;
          const noting = conversations.note(sessionId, { ...portion, sandboxId, now: at });
          change = yield* waitOutOutage("conversation", noting);
          if (change === null) return false;
          position = { after: portion.rev, seq: change.conversation.seq };
          hub.publish(sessionId, texts.written(change));
        }
        if (portion.turn !== null) occasions.works(isTurnOpen(portion.turn));
        times.reported(portion.items, portion.turn, change?.spent ?? []);
        const changes = change?.changes ?? [];
        keepOutputs(changes);
        yield* report({ items: portion.items, changes, seq: position.seq, turn: portion.turn, ended });
        return true;
      });
      /** Ends when the sandbox is not current any more (L3). */
      const write = Effect.gen(function* () {
        yield* unwritten.isThere.await;
        const isCurrent = yield* keep(toPortion(unwritten.take()));
        unwritten.wrote();
        return isCurrent;
      }).pipe(Effect.repeat({ while: (isCurrent) => isCurrent }));
      const take = Effect.fnUntraced(function* (lines: readonly ConversationReport[]) {
        for (const line of lines) {
          if (line.type === "delta") {
            hub.publish(sessionId, texts.grew(line.delta));
            continue;
          }
          if (line.type === "item") texts.reported(line.item);
          unwritten.add(line);
          yield* unwritten.hasRoom.await;
        }
      });
      let knownLink: DaemonLink | null = followed.link;
      const once = Effect.gen(function* () {
        // L2: a write that has begun counts.
        yield* unwritten.isSettled.await;
        // After a failure the link is looked up again: the sandbox's node may have a new address.
        const link = knownLink ?? (yield* withLink(provider, sandboxId));
        knownLink = null;
        const context = yield* sign(sandboxId, sessionId);
        const lines = daemon.conversation(link, { context, after: position.after });
        yield* Stream.runForEachArray(lines, take);
      }).pipe(Effect.catchTag("NoConversation", () => Effect.never));
      const read = Effect.andThen(Effect.retry(once, AGAIN), Effect.sleep("250 millis"));
      yield* Effect.raceFirst(write, Effect.forever(read));
      return yield* Effect.never;
    }).pipe(Effect.orDie, Effect.scoped);
});
