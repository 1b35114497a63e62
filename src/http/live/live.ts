/** Raw routes of live data: events of a project or a session, a session's logs, and its conversation (api.md 3). */
import * as Data from "effect/Data";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Stream from "effect/Stream";
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http";
import type { Conversations } from "../../store/ports/sessions/conversations.ts";
import type { EventScope } from "../../store/ports/events.ts";
import type { Principal } from "../../store/ports/people/identity.ts";
import { badRequest } from "../api/errors.ts";
import { listReader } from "../callers/access.ts";
import { ensureConversation, projectFor, sessionFor } from "../steps/answers.ts";
import { conversationStream, conversationTails, readPlace, type ConversationTails } from "./conversation.ts";
import { eventResponse, eventStream, eventTails, keptOpen, projectNews, type EventTails } from "./events.ts";
import { streamCounter } from "./stream-counter.ts";
import { logStream, logText } from "./logs.ts";
import { conversationJson, conversationMarkdown } from "./transcript.ts";
import {
  withErrors,
  calledWith,
  calledWithoutProject,
  endOfAccess,
  type RawParams,
} from "../raw/raw-route.ts";

const reading = <A, E, R>(handler: (caller: Principal, params: RawParams) => Effect.Effect<A, E, R>) =>
  calledWith("read_project", handler);

/** How many streams one token may have open (api.md 1 "Live data"). */
const STREAMS_MAX = 100;

type Counted = ReturnType<typeof streamCounter>;

const events = (count: Counted, tails: EventTails) =>
  reading((caller, { pid, sid }) =>
    Effect.gen(function* () {
      if (sid === null) yield* projectFor(caller, pid);
      else yield* sessionFor(caller, { pid, sid });
      const request = yield* HttpServerRequest.HttpServerRequest;
      const lastEventId = request.headers["last-event-id"] ?? null;
      yield* count(caller.tokenId);
      const end = yield* endOfAccess(caller, pid);
      return eventResponse(yield* eventStream(tails, { projectId: pid, sessionId: sid }, lastEventId), end);
    }),
  );

/** Of the projects whose sessions `GET /v1/sessions` lists. */
const listScope = (caller: Principal): EventScope =>
  caller.projectId === null
    ? { reader: { accountId: caller.accountId, userId: listReader(caller) } }
    : { projectId: caller.projectId, sessionId: null };

/** Ends with the caller's access to those projects. An owner who is made a member no longer sees all of them. */
const endOfListing = (caller: Principal) =>
  endOfAccess(
    caller,
    caller.projectId,
    caller.projectId === null && listReader(caller) === null ? "owner" : "viewer",
  );

/** The events of those projects. */
const allEvents = (count: Counted, tails: EventTails) =>
  calledWithoutProject("read_project", (caller) =>
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest;
      const lastEventId = request.headers["last-event-id"] ?? null;
      yield* count(caller.tokenId);
      const end = yield* endOfListing(caller);
      return eventResponse(yield* eventStream(tails, listScope(caller), lastEventId), end);
    }),
  );

/** A session's sandbox logs: as a live stream, or (`?follow=0`) as text. */
const logs = (count: Counted) =>
  reading((caller, { pid, sid }) =>
    Effect.gen(function* () {
      const session = yield* sessionFor(caller, { pid, sid: sid ?? "" });
      const request = yield* HttpServerRequest.HttpServerRequest;
      const follow = new URL(request.url, "http://service").searchParams.get("follow") ?? "1";
      if (follow === "0") return HttpServerResponse.text(yield* logText(session.id));
      if (follow !== "1") return yield* badRequest("follow", "must be 0 or 1");
      const lastEventId = request.headers["last-event-id"] ?? null;
      yield* count(caller.tokenId);
      const end = yield* endOfAccess(caller, pid);
      const scope = { sessionId: session.id, projectId: pid, userId: caller.user.id, role: caller.origin };
      return eventResponse(keptOpen(yield* logStream(scope, lastEventId)), end);
    }),
  );

/** The versions of a session's conversation from a number on, and text as it grows; with `project=1`, also news of its project and of the others that the reader sees. */
const conversation = (count: Counted, tails: ConversationTails, projects: EventTails) =>
  reading((caller, { pid, sid }) =>
    Effect.gen(function* () {
      const session = yield* sessionFor(caller, { pid, sid: sid ?? "" });
      const request = yield* HttpServerRequest.HttpServerRequest;
      const query = new URL(request.url, "http://service").searchParams;
      const place = yield* readPlace(request.headers["last-event-id"] ?? null, query.get("after"));
      const project = query.get("project");
      if (project !== null && project !== "1") return yield* badRequest("project", "must be 1");
      yield* count(caller.tokenId);
      const end = yield* endOfAccess(caller, pid);
      const talk = yield* conversationStream(tails, session.id, place);
      if (project === null) return eventResponse(talk, end);
      const ends = Effect.raceFirst(end, yield* endOfListing(caller));
      const news = yield* projectNews(projects, { projectId: pid, scope: listScope(caller) });
      return eventResponse(Stream.merge(talk, news, { haltStrategy: "left" }), ends);
    }),
  );

/** The whole conversation, in one of its two forms. If the token ends first, the answer breaks off. */
const archive = (form: "json" | "md") =>
  reading((caller, { pid, sid }) =>
    Effect.gen(function* () {
      const session = yield* sessionFor(caller, { pid, sid: sid ?? "" });
      const conversations = yield* Effect.context<Conversations>();
      const state = yield* ensureConversation(session.id);
      const end = yield* endOfAccess(caller, pid);
      const text = form === "json" ? conversationJson(state) : conversationMarkdown(session);
      const body = Stream.encodeText(Stream.provideContext(text, conversations)).pipe(
        Stream.interruptWhen(Effect.andThen(end, Effect.fail(new TokenEnded()))),
      );
      return HttpServerResponse.stream(body, {
        contentType: form === "json" ? "application/json" : "text/markdown; charset=utf-8",
      });
    }),
  );

class TokenEnded extends Data.TaggedError("TokenEnded") {}

const SESSION = "/v1/projects/:pid/sessions/:sid";

export const liveRoutes = Layer.unwrap(
  Effect.gen(function* () {
    // All kinds share one count, because the limit is for the token (api.md 1).
    const count = streamCounter(STREAMS_MAX);
    const projects = yield* eventTails;
    const live = withErrors(events(count, projects));
    const talk = conversation(count, yield* conversationTails, projects);
    return HttpRouter.addAll([
      HttpRouter.route("GET", "/v1/events", withErrors(allEvents(count, projects))),
      HttpRouter.route("GET", "/v1/projects/:pid/events", live),
      HttpRouter.route("GET", `${SESSION}/events`, live),
      HttpRouter.route("GET", `${SESSION}/logs`, withErrors(logs(count))),
      HttpRouter.route("GET", `${SESSION}/conversation/events`, withErrors(talk)),
      HttpRouter.route("GET", `${SESSION}/conversation.json`, withErrors(archive("json"))),
      HttpRouter.route("GET", `${SESSION}/conversation.md`, withErrors(archive("md"))),
    ]);
  }),
);
