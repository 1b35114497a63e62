/**
 * Tells a conversation's actor what the runtime of one sandbox does. Of several reports that wait, the actor gets the
 * newest. The first report after a start repeats the present state, so nothing is lost with a message.
 *
 * The runtime's title names a session without a name. The name of a person or a trigger stays.
 *
 * A request without an answer is declined when its time is over. Until then the sandbox and its agent wait.
 */
import { isDeepStrictEqual } from "node:util";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Queue from "effect/Queue";
import * as Schedule from "effect/Schedule";
import { isTurnOpen, type NativeItem, type TurnNow } from "../../domain/conversation/conversation.ts";
import { isClosed } from "../../domain/conversation/growing.ts";
import { rowText } from "../../domain/conversation/row-texts.ts";
import { storableText } from "../../domain/text.ts";
import type { ConversationEvent } from "../../machines/conversation-events.ts";
import {
  Conversations,
  type ConversationChange,
  type Item,
} from "../../store/ports/sessions/conversations.ts";
import { Sessions } from "../../store/ports/sessions/sessions.ts";
import { Actors } from "../../services/actors.ts";
import { deliver } from "../delivery.ts";
import { waitOutOutage } from "../../store/ports/outage.ts";

/** The actor mostly hears of a request before its time is over. */
const SOON_MS = 1_000;
/** If it heard later, it did not take the answer, and gets it again. */
const EXPIRED_AGAIN = "5 seconds";

export interface RequestOptions {
  /** How long a request waits for its answer (PLATFORM_REQUEST_TTL_MS). */
  readonly requestTtlMs: number;
}

type RuntimeReported = Extract<ConversationEvent, { type: "runtime.reported" }>;

/** A written portion of a report: what the daemon reported, and what that has changed. */
interface News {
  readonly items: readonly NativeItem[];
  readonly changes: readonly ConversationChange[];
  /** The conversation's number after this write. */
  readonly seq: number;
  readonly turn: TurnNow | null;
  /** How many turns have ended. Null means no news. */
  readonly ended: number | null;
}

/**
 * Whether a request was written before: the answer to an earlier write was lost, or another node was first. Then the
 * changes do not have it.
 */
const isMissed = ({ items, changes }: News): boolean =>
  items.some(
    ({ kind, native_id: native }) =>
      kind === "request" &&
      !changes.some((change) => change.type === "item" && change.item.nativeId === native),
  );

/** The requests that wait for an answer. */
class OpenRequests {
  readonly #isPlan = new Map<string, boolean>();

  get all(): readonly string[] {
    return [...this.#isPlan.keys()];
  }

  get plans(): readonly string[] {
    return this.all.filter((id) => this.#isPlan.get(id) === true);
  }

  has(id: string): boolean {
    return this.#isPlan.has(id);
  }

  /** @returns whether it is new here */
  add({ id, request }: Pick<Item, "id" | "request">): boolean {
    const isNew = !this.has(id);
    this.#isPlan.set(id, request?.kind === "plan");
    return isNew;
  }

  delete(id: string): void {
    this.#isPlan.delete(id);
  }
}

/** @returns a function that names the session with the title that the runtime has now, in the place of the one that it had before */
const entitling = ({ entitle }: Sessions["Service"], sessionId: string) => {
  let former: string | null = null;
  return Effect.fnUntraced(function* (turn: TurnNow | null) {
    const title = rowText(storableText(turn?.title ?? ""));
    if (title === "" || title === former) return;
    const now = yield* Clock.currentTimeMillis;
    yield* waitOutOutage("conversation", entitle(sessionId, { title, former, now }));
    former = title;
  });
};

/** @returns a function that takes news of one sandbox, in order. It tells the actor while its scope lives. */
export const runtimeReporter = Effect.fnUntraced(function* ({ requestTtlMs }: RequestOptions) {
  const conversations = yield* Conversations;
  const sessions = yield* Sessions;
  const actors = yield* Actors;

  return Effect.fnUntraced(function* ({
    sandboxId,
    sessionId,
  }: {
    readonly sandboxId: string;
    readonly sessionId: string;
  }) {
    const session = yield* waitOutOutage("conversation", sessions.get(sessionId));
    const page = conversations.page(sessionId, { before: null, limit: 1 });
    const openRequests = Effect.map(Effect.orDie(waitOutOutage("conversation", page)), (firstPage) =>
      (firstPage?.requests ?? []).filter((item) => item.sandboxId === sandboxId),
    );
    const requests = new OpenRequests();
    // A trigger's session has no person who could answer.
    const isAttended = session?.triggerSlug === null;
    const scope = yield* Effect.scope;
    const run = Effect.runForkWith(yield* Effect.context());
    /** The machine takes only an answer to a request that it knows and that has none, so the answer may be repeated. */
    const expire = (requestId: string, waitMs: number): void => {
      const answer = { declined: "expired" as const };
      const event = { type: "answer.given" as const, requestId, answer: answer, by: null };
      const delivery = Effect.repeat(deliver(actors.conversation(sessionId, event)), {
        while: () => requests.has(requestId),
        schedule: Schedule.spaced(EXPIRED_AGAIN),
      });
      run(Effect.forkIn(Effect.delay(delivery, waitMs), scope));
    };
    /** Reads which requests are open. A request that is new here has waited since it was made. */
    const readRequests = Effect.gen(function* () {
      const open = yield* openRequests;
      const now = yield* Clock.currentTimeMillis;
      for (const id of requests.all) if (!open.some((item) => item.id === id)) requests.delete(id);
      for (const item of open) {
        const { id, createdAt } = item;
        if (requests.add(item))
          expire(id, Math.min(requestTtlMs, Math.max(SOON_MS, createdAt + requestTtlMs - now)));
      }
    });
    yield* readRequests;
    const entitle = entitling(sessions, sessionId);

    const waiting = yield* Queue.sliding<RuntimeReported>(1);
    const next = Effect.flatMap(Queue.take(waiting), (event) =>
      deliver(actors.conversation(sessionId, event)),
    );
    yield* Effect.forkIn(Effect.forever(next), scope);

    let state: Pick<RuntimeReported, "ended" | "isWorking"> | null = null;
    let last: Omit<RuntimeReported, "seq"> | null = null;
    return Effect.fnUntraced(function* (news: News) {
      const { changes, seq, turn, ended } = news;
      for (const change of changes) {
        if (change.type !== "item" || change.item.kind !== "request") continue;
        if (isClosed(change.item.status)) requests.delete(change.item.id);
        else if (change.item.sandboxId === sandboxId && requests.add(change.item))
          expire(change.item.id, requestTtlMs);
      }
      if (isMissed(news)) yield* readRequests;
      yield* entitle(turn);
      if (turn !== null && ended !== null) state = { ended, isWorking: isTurnOpen(turn) };
      if (state === null) return;
      const type = "runtime.reported" as const;
      const report = { type, sandboxId, ...state, requests: requests.all, plans: requests.plans, isAttended };
      if (isDeepStrictEqual(report, last)) return;
      last = report;
      Queue.offerUnsafe(waiting, { ...report, seq });
    });
  });
});
