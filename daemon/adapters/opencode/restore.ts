/**
 * Restores a history in opencode: its events are replayed in order, then the listing is compared with what was replayed.
 *
 *  R1 The history grows in a session with another title. Only when it is whole, the session gets the title by which it is
 *     found. So the agent never goes on with a part of a history.
 *  R2 The daemon removes the session of a failed attempt.
 */
import { isDeepStrictEqual } from "node:util";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import * as Schema from "effect/Schema";
import type { History } from "../../../src/domain/conversation/history.ts";
import { HttpFailure, type HttpAnswer } from "../../http/client.ts";
import { CALL_TIMEOUT_MS, RESTORED_WITHIN_MS, type Restoring } from "../adapter.ts";
import { eventBatches, messageEvents, restoredMessages, type Place, type ListedMessage } from "./history.ts";
import { quantity } from "../../../src/domain/counted.ts";

/** The calls to opencode that are needed here. */
export interface RestoreCalls {
  readonly get: <A>(path: string, schema: Schema.Decoder<A>) => Effect.Effect<A, HttpFailure>;
  readonly page: (path: string) => Effect.Effect<HttpAnswer, HttpFailure>;
  readonly post: (path: string, body?: unknown) => Effect.Effect<string, HttpFailure>;
  readonly patch: (path: string, body: unknown) => Effect.Effect<string, HttpFailure>;
  readonly remove: (path: string) => Effect.Effect<string, HttpFailure>;
}

export interface Restore {
  /** The title of the agent session. */
  readonly title: string;
  readonly history: History;
  /** Of messages that name none. */
  readonly agent: string;
  readonly model: string | null;
}

/** Messages in one answer. */
const PAGE_MESSAGES = 100;
/** A runtime without an answer is asked again: it may just restart. */
const AGAIN = Schedule.spaced("500 millis");

const Made = Schema.fromJsonString(Schema.Struct({ id: Schema.String, directory: Schema.String }));
const Sessions = Schema.Array(Schema.Struct({ id: Schema.String, title: Schema.String }));
const Page = Schema.fromJsonString(Schema.Array(Schema.Unknown));
/** opencode's cursor to the messages before a page. */
const CURSOR = "x-next-cursor";

class Different extends Schema.TaggedError<Different>()("Different", { message: Schema.String }) {}

export const restoreHistory = (
  calls: RestoreCalls,
  restore: Restore,
  withinMs = RESTORED_WITHIN_MS,
): Effect.Effect<Restoring> =>
  attempt(calls, restore).pipe(
    Effect.retry({
      schedule: AGAIN,
      while: (failure) => failure._tag === "HttpFailure" && failure.status === null,
    }),
    Effect.as<Restoring>({ outcome: "restored" }),
    Effect.catch(({ _tag, message }) =>
      Effect.succeed<Restoring>({
        outcome: "failed",
        why: _tag === "Different" ? "different" : "refused",
        message,
      }),
    ),
    Effect.timeoutOrElse({
      duration: withinMs,
      orElse: () =>
        Effect.succeed<Restoring>({
          outcome: "failed",
          why: "late",
          message: `not restored within ${withinMs / 1000} s`,
        }),
    }),
    Effect.tap(({ outcome }) =>
      // R2. If this fails, an unused session stays (R1).
      outcome === "failed"
        ? Effect.timeoutOption(Effect.ignore(removeUnfinished(calls, restore.title)), CALL_TIMEOUT_MS)
        : Effect.void,
    ),
  );

/** R1. */
const temporaryTitle = (title: string): string => `${title} (being restored)`;

const attempt = Effect.fnUntraced(function* (
  calls: RestoreCalls,
  { title, history, agent, model }: Restore,
): Effect.fn.Return<void, HttpFailure | Different> {
  // R1: the attempt before was successful, and its last answer was lost.
  if (yield* removeUnfinished(calls, title)) return;
  const session = yield* calls.post("/session", { title: temporaryTitle(title) });
  const { id, directory } = yield* decode(Made, session);
  const place: Place = { session: id, directory, agent, model, nowMs: yield* Clock.currentTimeMillis };
  const messages = restoredMessages(history, place);
  for (const events of eventBatches(messageEvents(messages, place)))
    yield* calls.post("/sync/replay", { directory, events });
  yield* compare(yield* listMessages(calls, id), messages);
  yield* calls.patch(`/session/${id}`, { title });
});

/** @returns whether the agent session exists. */
const removeUnfinished = Effect.fnUntraced(function* (calls: RestoreCalls, title: string) {
  const sessions = yield* calls.get("/session?roots=true", Sessions);
  for (const session of sessions)
    if (session.title === temporaryTitle(title)) yield* calls.remove(`/session/${session.id}`);
  return sessions.some((session) => session.title === title);
});

const decode = <A>(schema: Schema.Decoder<A>, text: string): Effect.Effect<A, Different> =>
  Effect.mapError(
    Schema.decodeUnknownEffect(schema)(text),
    () => new Different({ message: "the agent runtime answered in an unexpected form" }),
  );

/** The session's messages as opencode has them, oldest first. */
const listMessages = Effect.fnUntraced(function* (calls: RestoreCalls, session: string) {
  const pages: (readonly unknown[])[] = [];
  let before = "";
  for (;;) {
    const { body, headers } = yield* calls.page(
      `/session/${session}/message?limit=${PAGE_MESSAGES}${before}`,
    );
    const page = yield* decode(Page, body);
    pages.unshift(page);
    const cursor = headers[CURSOR];
    if (typeof cursor !== "string" || page.length === 0) return pages.flat();
    before = `&before=${encodeURIComponent(cursor)}`;
  }
});

const compare = (
  actual: readonly unknown[],
  plan: readonly ListedMessage[],
): Effect.Effect<void, Different> => {
  const at = plan.findIndex((message, index) => !isDeepStrictEqual(actual[index], message));
  if (at === -1 && actual.length === plan.length) return Effect.void;
  const message = `the agent runtime has ${actual.length} of ${quantity(plan.length, "message")}`;
  return Effect.fail(
    new Different({ message: at === -1 ? message : `${message}, and another one as number ${at + 1}` }),
  );
};
