/** Keeps the whole output of tools whose items have only its beginning. The daemon has it for a while. */
import * as Effect from "effect/Effect";
import * as Queue from "effect/Queue";
import { isClosed } from "../../domain/conversation/growing.ts";
import { DaemonClient } from "../../sandbox/daemon.ts";
import { SandboxProvider } from "../../sandbox/port.ts";
import { withLink } from "../../services/answered.ts";
import { serviceContext } from "../../services/sessions/service-context.ts";
import { Conversations, type ConversationChange } from "../../store/ports/sessions/conversations.ts";
import { waitOutOutage } from "../../store/ports/outage.ts";
import { backoff } from "../../ground/backoff.ts";

/** How often an output is asked for, 250 ms doubling to 10 s. */
const TRIES = 5;

interface LongItem {
  readonly id: string;
  readonly nativeId: string;
}

/** Its item, if it has ended with the beginning of an output. */
const longItems = (change: ConversationChange, sandboxId: string): readonly LongItem[] => {
  if (change.type !== "item") return [];
  const { id, nativeId, tool, pruned, status, sandboxId: by } = change.item;
  const isLong = tool?.truncated === true && !pruned;
  return isLong && isClosed(status) && by === sandboxId && nativeId !== null ? [{ id, nativeId }] : [];
};

/** @returns a function that takes the changes of one sandbox's conversation. It fetches outputs while its scope lives. */
export const outputKeeper = Effect.gen(function* () {
  const conversations = yield* Conversations;
  const provider = yield* SandboxProvider;
  const daemon = yield* DaemonClient;
  const sign = yield* serviceContext;

  return Effect.fnUntraced(function* ({
    sandboxId,
    sessionId,
  }: {
    readonly sandboxId: string;
    readonly sessionId: string;
  }) {
    const waiting = yield* Queue.unbounded<LongItem>();
    const keep = Effect.fnUntraced(function* ({ id: itemId, nativeId }: LongItem) {
      const link = yield* withLink(provider, sandboxId);
      const text = yield* daemon.output(link, yield* sign(sandboxId, sessionId), nativeId);
      if (text === null) return;
      const keeping = conversations.keepOutput(sessionId, { itemId, sandboxId, text });
      yield* waitOutOutage("conversation", keeping);
    });
    const schedule = backoff("250 millis", "10 seconds");
    const next = Effect.flatMap(Queue.take(waiting), (item) =>
      Effect.ignore(Effect.retry(keep(item), { schedule, times: TRIES - 1 })),
    );
    yield* Effect.forkScoped(Effect.forever(next));
    return (changes: readonly ConversationChange[]): void => {
      for (const item of changes.flatMap((change) => longItems(change, sandboxId)))
        Queue.offerUnsafe(waiting, item);
    };
  });
});
