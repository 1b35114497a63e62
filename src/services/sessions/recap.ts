/** Reads what a fresh sandbox gets of its session's conversation (domain/conversation/history.ts, domain/conversation/recap.ts). */
import * as Effect from "effect/Effect";
import { makeHistory, tooOld } from "../../domain/conversation/history.ts";
import type { Recap } from "../../domain/sandbox/launch.ts";
import { makeRecap } from "../../domain/conversation/recap.ts";
import { Conversations, type Item } from "../../store/ports/sessions/conversations.ts";

/** How many items are read at once. A recap is made of that many, the newest. Its size bounds it further. */
const ITEMS_READ = 200;
/** How many items older than a history are read for the summary of what it leaves out, if there are that many. */
const EARLIER_READ = 100;
/** No more than that is read for a history. Some items, such as thoughts and those of subagents, are no part of it. */
const READ_ITEMS_MAX = 5000;
const READ_BYTES_MAX = 16 * 1024 * 1024;

/** The model of the newest message that names one. */
const lastModel = (items: readonly Item[]): string | null =>
  items.flatMap((item) => (isAccepted(item) ? (item.model ?? []) : [])).at(-1) ?? null;

/** The effort of the newest message that names one. */
const lastEffort = (items: readonly Item[]): string | undefined =>
  items.findLast((item) => isAccepted(item) && item.effort !== undefined)?.effort;

const isAccepted = ({ role, status }: Item): boolean => role === "user" && status === "accepted";

/** The agent or mode that an item chose. Null: it chose none. */
const agentChosen = (item: Item): string | null => {
  const { answer } = item.answer ?? {};
  if (answer !== undefined && "approve" in answer) return answer.mode;
  return isAccepted(item) ? item.agent : null;
};

/** The agent or mode of the newest message or approved plan that names one. */
const lastAgent = (items: readonly Item[]): string | null =>
  items.flatMap((item) => agentChosen(item) ?? []).at(-1) ?? null;

/** @returns null if no runtime has had any item. */
export const readRecap = Effect.fnUntraced(function* (sessionId: string) {
  const { item } = yield* Conversations;
  const { items, hasOlder } = yield* readNewest(sessionId);
  const newest = items.slice(-ITEMS_READ);
  const hasGap = hasOlder || newest.length < items.length;
  const prompt = hasGap ? yield* item(sessionId, sessionId) : null;
  const text = makeRecap([...(prompt === null ? [] : [prompt]), ...newest], hasGap);
  if (text === null) return null;
  const history = makeHistory(items, hasOlder ? prompt : null);
  const effort = lastEffort(newest);
  return {
    text,
    agent: lastAgent(newest),
    model: lastModel(newest),
    ...(effort !== undefined && { effort }),
    ...(history !== null && { history }),
  } satisfies Recap;
});

/** As many of the newest items as a history needs, oldest first. */
const readNewest = Effect.fnUntraced(function* (sessionId: string) {
  const { page } = yield* Conversations;
  const items: Item[] = [];
  let bytes = 0;
  let before: string | null = null;
  do {
    const read: Effect.Success<ReturnType<typeof page>> = yield* page(sessionId, {
      before,
      limit: ITEMS_READ,
    }).pipe(Effect.catchTag("BadCursor", Effect.die));
    if (read === null) break;
    items.unshift(...read.items.toReversed());
    bytes += Buffer.byteLength(JSON.stringify(read.items));
    before = read.nextCursor;
  } while (
    before !== null &&
    items.length < READ_ITEMS_MAX &&
    bytes < READ_BYTES_MAX &&
    tooOld(items) < EARLIER_READ
  );
  return { items, hasOlder: before !== null };
});
