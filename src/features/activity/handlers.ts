/** Handlers of api.ts. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { HttpApiBuilder } from "effect/http-api";
import { isRecord } from "../../ground/record.ts";
import { Caller } from "../../http/api/access.ts";
import { Platform } from "../../http/api/platform.ts";
import { listReader } from "../../http/callers/access.ts";
import { withApiErrors } from "../../http/steps/answers.ts";
import { sessionTitle } from "../../domain/session/title.ts";
import { instant, instantOrNull, pageRequest } from "../../http/steps/wire.ts";
import { ActivityGroup } from "./api.ts";
import { Activity, type ActivityEntry } from "./ports/activity.ts";

const textIn = (data: ActivityEntry["data"], name: string): string | null => {
  const value = data[name];
  return typeof value === "string" ? value : null;
};

/** Of the turn, the fire or the delivery, or of the session's failure. */
const entryCode = ({ kind, data }: ActivityEntry): string | null => {
  if (kind.startsWith("fire.")) return textIn(data, "reason");
  return textIn(isRecord(data["failure"]) ? data["failure"] : data, "code");
};

const entryState = ({ kind, data }: ActivityEntry): string | null => {
  switch (kind) {
    case "session.turn_ended":
      return textIn(data, "state");
    case "session.waiting":
      return textIn(data, "reason");
    case "change_request.remarked":
      return textIn(data, "kind");
    default:
      return null;
  }
};

const entryReviewer = ({ data }: ActivityEntry) => {
  const [id, name] = [textIn(data, "reviewer_id"), textIn(data, "reviewer_name")];
  return id === null || name === null ? null : { id, name };
};

const entryWire = (entry: ActivityEntry) => {
  const { kind, session, changeRequest, data } = entry;
  return {
    id: String(entry.number),
    kind,
    at: instant(entry.at),
    project: entry.project,
    session: session && {
      id: session.id,
      name: sessionTitle(session.name, session.triggerSlug, session.prompt),
    },
    change_request: changeRequest,
    trigger_slug: textIn(data, "trigger_slug"),
    fire_id: textIn(data, "fire_id"),
    person: entry.person,
    reviewer: entryReviewer(entry),
    state: entryState(entry),
    code: entryCode(entry),
    own: entry.isOwn,
  };
};

interface Query {
  readonly limit?: number;
  readonly cursor?: string;
  readonly own?: "true" | "false";
}

const list = Effect.fnUntraced(function* (query: Query) {
  const caller = yield* Caller;
  const activity = yield* Activity;
  const reader = { accountId: caller.accountId, userId: listReader(caller) };
  const { items, nextCursor } = yield* activity.list(reader, {
    ...pageRequest(query),
    personId: caller.user.id,
    isOwn: query.own === "true",
    projectId: caller.projectId,
  });
  return {
    entries: items.map(entryWire),
    seen_at: instantOrNull(yield* activity.seenAt(caller.user.id)),
    next_cursor: nextCursor,
  };
});

/** A program that reads the list for a person, such as her agent, has not seen it for her. An instant to come counts as now. */
const see = Effect.fnUntraced(function* (moment: string) {
  const caller = yield* Caller;
  if (caller.origin !== "user") return;
  const at = Math.min(Date.parse(moment), yield* Clock.currentTimeMillis);
  yield* (yield* Activity).see(caller.user.id, at);
});

export const activityHandlers = HttpApiBuilder.group(Platform.add(ActivityGroup), "activity", (handlers) =>
  handlers
    .handle("list", ({ query }) => withApiErrors(list(query)))
    .handle("see", ({ payload }) => withApiErrors(see(payload.at))),
);
