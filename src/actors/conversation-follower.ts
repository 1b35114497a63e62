/**
 * Keeps what a sandbox's daemon reports of the conversation.
 *
 *  L1 A version is written before its readers see it. Growing text is passed on at once, and written with its version.
 *  L2 After a break the daemon reports again from the last written version on.
 *  L3 A sandbox that is not its session's current one any more writes nothing, and is not followed any longer.
 *  L4 The conversation's actor is told what the runtime does after that is written (runtime-reports.ts).
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Stream from "effect/Stream";
import {
  isClosed,
  type ConversationReport,
  type NativeItem,
  type TextDelta,
  type TurnNow,
} from "../domain/conversation.ts";
import { DaemonClient } from "../sandbox/daemon.ts";
import { SandboxProvider, type DaemonLink } from "../sandbox/port.ts";
import { linked } from "../services/answered.ts";
import { ConversationHub, type ItemDelta } from "../services/conversation-hub.ts";
import { serviceContext } from "../services/service-context.ts";
import {
  Conversations,
  type ChangedConversation,
  type ConversationChange,
} from "../store/ports/conversations.ts";
import { runtimeReporter, type RequestOptions } from "./runtime-reports.ts";
import { backoff, waitOutOutage } from "./supervisor.ts";

/** If a daemon does not answer, it is asked again: soon after a short break, rarely if it stays silent. */
const AGAIN = backoff("250 millis", "10 seconds");
/** How many versions are written together. */
const BATCH = 200;

/** The sandbox whose conversation is followed. */
interface Followed {
  readonly sandboxId: string;
  readonly sessionId: string;
}

/** Lines that belong together: versions, the newest state of the turn, and the growth that follows them. */
interface Portion {
  readonly items: readonly NativeItem[];
  readonly turn: TurnNow | null;
  /** How many turns have ended. Null: no news. */
  readonly ended: number | null;
  readonly rev: number;
  readonly deltas: readonly TextDelta[];
}

/** The lines in portions of at most `BATCH` versions. */
const portionsOf = (lines: readonly ConversationReport[]): readonly Portion[] => {
  const portions: Portion[] = [];
  for (let from = 0; from < lines.length; from += BATCH) {
    const some = lines.slice(from, from + BATCH);
    const items = some.flatMap((line) => (line.type === "item" ? [line.item] : []));
    const last = some.findLast((line) => line.type === "turn");
    portions.push({
      items,
      turn: last?.turn ?? null,
      ended: last?.ended ?? null,
      rev: Math.max(0, last?.rev ?? 0, ...items.map(({ rev }) => rev)),
      deltas: some.flatMap((line) => (line.type === "delta" ? [line.delta] : [])),
    });
  }
  return portions;
};

/** @returns a function that follows the conversation in one sandbox. It never ends. */
export const conversationFollower = Effect.fnUntraced(function* (options: RequestOptions) {
  const conversations = yield* Conversations;
  const provider = yield* SandboxProvider;
  const daemon = yield* DaemonClient;
  const hub = yield* ConversationHub;
  const sign = yield* serviceContext;
  const reportsOf = yield* runtimeReporter(options);

  return (followed: Followed & { readonly link: DaemonLink }): Effect.Effect<never> =>
    Effect.gen(function* () {
      const { sandboxId, sessionId } = followed;
      const now = yield* Clock.currentTimeMillis;
      const opened = yield* waitOutOutage("conversation", conversations.open(sessionId, now));
      if (opened === null) return yield* Effect.never;
      const isKnown = opened.sandbox?.id === sandboxId;
      const reader = new Reader({ after: isKnown ? (opened.sandbox?.rev ?? 0) : 0, seq: opened.seq });
      const report = yield* reportsOf(followed);

      const keep = Effect.fnUntraced(function* ({ deltas, ended, ...portion }: Portion) {
        let changes: readonly ConversationChange[] = [];
        if (portion.rev > reader.after) {
          const at = yield* Clock.currentTimeMillis;
          const noting = conversations.note(sessionId, { ...portion, sandboxId, now: at });
          const noted = yield* waitOutOutage("conversation", noting);
          if (noted === null) return yield* Effect.never;
          reader.noted(noted, portion.rev);
          changes = noted.changes;
        }
        yield* report({ items: portion.items, changes, seq: reader.seq, turn: portion.turn, ended });
        hub.publish(sessionId, reader.deltasOf(deltas));
      });
      let known: DaemonLink | null = followed.link;
      const once = Effect.gen(function* () {
        // After a failure the link is looked up again: the sandbox's node may have a new address.
        const link = known ?? (yield* linked(provider, sandboxId));
        known = null;
        const context = yield* sign(sandboxId, sessionId);
        const lines = daemon.conversation(link, { context, after: reader.after });
        yield* Stream.runForEachArray(lines, (some) =>
          Effect.forEach(portionsOf(some), keep, { discard: true }),
        );
      }).pipe(Effect.catchTag("NoConversation", () => Effect.never));
      return yield* Effect.forever(Effect.andThen(Effect.retry(once, AGAIN), Effect.sleep("250 millis")));
    }).pipe(Effect.orDie, Effect.scoped);
});

/** How far the conversation is written, and which items are growing. */
class Reader {
  after: number;
  /** The conversation's number at the last write. */
  seq: number;
  /** Our ids of open items, by native id. */
  readonly #growing = new Map<string, string>();

  constructor({ after, seq }: { readonly after: number; readonly seq: number }) {
    this.after = after;
    this.seq = seq;
  }

  noted({ changes, conversation }: ChangedConversation, rev: number): void {
    this.after = rev;
    this.seq = conversation.seq;
    for (const change of changes) {
      if (change.type !== "item" || change.item.nativeId === null) continue;
      const { id, nativeId, status } = change.item;
      if (isClosed(status)) this.#growing.delete(nativeId);
      else this.#growing.set(nativeId, id);
    }
  }

  deltasOf(deltas: readonly TextDelta[]): readonly ItemDelta[] {
    const { seq } = this;
    return deltas.flatMap(({ native_id: native, offset, text }) => {
      const itemId = this.#growing.get(native);
      return itemId === undefined ? [] : [{ itemId, offset, text, seq }];
    });
  }
}
