/** Reads what a fresh sandbox gets of its session's conversation (domain/conversation/history.ts, domain/conversation/recap.ts). */
import * as Effect from "effect/Effect";
import { makeHistory, tooOld } from "../../domain/conversation/history.ts";
import type { Recap } from "../../domain/sandbox/launch.ts";
import { begunIntroduction, makeRecap } from "../../domain/conversation/recap.ts";
import { begunFrom } from "../../domain/session/begun.ts";
import { Conversations, type Item } from "../../store/ports/sessions/conversations.ts";
import { type Session, Sessions } from "../../store/ports/sessions/sessions.ts";

/** How many items are read at once. A recap is made of that many, the newest. Its size bounds it further. */
const ITEMS_READ = 200;
/** How many items older than a history are read for the summary of what it leaves out, if there are that many. */
const EARLIER_READ = 100;
/** No more than that is read for a history. Some items, such as thoughts and those of subagents, are no part of it. */
const READ_ITEMS_MAX = 5000;
const READ_BYTES_MAX = 16 * 1024 * 1024;
/** How far back is read where a session began from another one, and that from another one. */
const BEGINNINGS_MAX = 8;

/** The model of the newest message that names one. */
const lastModel = (items: readonly Item[]): string | null =>
  items.flatMap((item) => (isAccepted(item) ? (item.model ?? []) : [])).at(-1) ?? null;

/** The effort of the newest message that names one. */
const lastEffort = (items: readonly Item[]): string | undefined =>
  items.findLast((item) => isAccepted(item) && item.effort !== undefined)?.effort;

const isAccepted = ({ role, status }: Item): boolean => role === "user" && status === "accepted";

/** The agent or mode that an item chose. Null if it chose none. */
const agentChosen = (item: Item): string | null => {
  const { answer } = item.answer ?? {};
  if (answer !== undefined && "approve" in answer) return answer.mode;
  return isAccepted(item) ? item.agent : null;
};

/** The agent or mode of the newest message or approved plan that names one. */
const lastAgent = (items: readonly Item[]): string | null =>
  items.flatMap((item) => agentChosen(item) ?? []).at(-1) ?? null;

/** The fields of a session that are read. */
type Remembering = Pick<Session, "id" | "projectId" | "metadata" | "createdAt">;

/** @returns null if no runtime has had any item. */
export const readRecap = Effect.fnUntraced(function* (session: Remembering) {
  const { item } = yield* Conversations;
  const { items, own, hasOlder, oldest } = yield* readNewest(session);
  const newest = items.slice(-ITEMS_READ);
  const hasGap = hasOlder || newest.length < items.length;
  const prompt = hasGap ? yield* item(oldest, oldest) : null;
  // Another session's agent and model are no choice for this one.
  const recentItems = own.slice(-ITEMS_READ);
  const origin = makeRecap(own, false) === null ? begunFrom(session) : null;
  const introduction = origin === null ? undefined : begunIntroduction(origin.title);
  const text = makeRecap([...(prompt === null ? [] : [prompt]), ...newest], hasGap, introduction);
  if (text === null) return null;
  const history = makeHistory(items, hasOlder ? prompt : null);
  const effort = lastEffort(recentItems);
  return {
    text,
    ...(origin !== null && { begun: origin.title }),
    agent: lastAgent(recentItems),
    model: lastModel(recentItems),
    ...(effort !== undefined && { effort }),
    ...(history !== null && { history }),
  } satisfies Recap;
});

/**
 * As many of the newest items as a history needs, oldest first. They begin with those of the session from which it began, up to there.
 *
 * @returns with `own`, those of the session itself, and with `oldest`, the session whose items are the first
 */
const readNewest = Effect.fnUntraced(function* (session: Remembering) {
  const { page } = yield* Conversations;
  const { get } = yield* Sessions;
  const items: Item[] = [];
  let bytes = 0;
  /** @returns whether the conversation has older items than those that were read */
  const read = Effect.fnUntraced(function* (id: string, among: (read: readonly Item[]) => readonly Item[]) {
    let before: string | null = null;
    do {
      const nextPage: Effect.Success<ReturnType<typeof page>> = yield* page(id, {
        before,
        limit: ITEMS_READ,
      }).pipe(Effect.catchTag("BadCursor", Effect.die));
      if (nextPage === null) break;
      items.unshift(...among(nextPage.items.toReversed()));
      bytes += Buffer.byteLength(JSON.stringify(nextPage.items));
      before = nextPage.nextCursor;
    } while (
      before !== null &&
      items.length < READ_ITEMS_MAX &&
      bytes < READ_BYTES_MAX &&
      tooOld(items) < EARLIER_READ
    );
    return before !== null;
  });
  let hasOlder = yield* read(session.id, (all) => all);
  const own = [...items];
  let oldest = session;
  for (let depth = 0; !hasOlder && depth < BEGINNINGS_MAX; depth += 1) {
    const origin = begunFrom(oldest);
    const source: Remembering | null = origin && (yield* get(origin.session_id));
    if (origin === null || source === null || source.projectId !== oldest.projectId) break;
    hasOlder = yield* read(source.id, upTo(origin.turn_id ?? null, oldest.createdAt));
    oldest = source;
  }
  return { items, own, hasOlder, oldest: oldest.id };
});

/**
 * Leaves out what the conversation of another session got after this one began.
 *
 * @param turn its last turn. Null means any
 * @param at when this one began
 * @returns the rest of a page, for pages from the newest on
 */
const upTo = (turn: string | null, at: number): ((page: readonly Item[]) => readonly Item[]) => {
  let isReached = turn === null;
  return (page) => {
    const last = isReached
      ? page.length
      : page.findLastIndex(({ id, turnId }) => turnId === turn || id === turn) + 1;
    isReached ||= last > 0;
    return page.slice(0, last).filter(({ createdAt }) => createdAt <= at);
  };
};
