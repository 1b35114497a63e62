/** Handlers of api/audit.ts: pages of the audit record, and the whole of it as JSON lines. */
import * as Data from "effect/Data";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import type * as Schema from "effect/Schema";
import * as Option from "effect/Option";
import * as Stream from "effect/Stream";
import { HttpServerResponse, type HttpServerRequest } from "effect/http";
import { HttpApiBuilder } from "effect/http-api";
import { Audit, type AuditRequest } from "../../store/ports/audit.ts";
import { Caller } from "../api/access.ts";
import { toUse, Openings } from "../callers/openings.ts";
import { withApiErrors, requireProject } from "../steps/answers.ts";
import { pageRequest, wireForm } from "../steps/wire.ts";
import { AuditEventWire, AuditGroup, type filters } from "../api/audit.ts";
import { Platform } from "../api/platform.ts";

/** JSON lines. */
const LINES = "application/x-ndjson";
/** How many rows an export reads at a time, and has in memory. */
const PORTION = 500;

const eventForm = wireForm(AuditEventWire);

class TokenEnded extends Data.TaggedError("TokenEnded") {}

/** All rows from the cursor on, a portion at a time. If the token or the role ends first, the answer breaks off. */
const exportRows = Effect.fnUntraced(function* (wish: AuditRequest) {
  const { list } = yield* Audit;
  const { ending } = yield* Openings;
  const use = toUse(yield* Caller, { projectId: wish.projectId, needs: "owner", session: null });
  const end = yield* ending(use);
  const lines = Stream.paginate(wish.cursor, (cursor) =>
    Effect.map(list({ ...wish, cursor, limit: PORTION }), ({ items, nextCursor }) => [
      items.map((event) => `${JSON.stringify(eventForm(event))}\n`),
      nextCursor === null ? Option.none() : Option.some(nextCursor),
    ]),
  );
  const body = Stream.encodeText(lines).pipe(
    Stream.interruptWhen(Effect.andThen(Deferred.await(end), Effect.fail(new TokenEnded()))),
  );
  return HttpServerResponse.stream(body, { contentType: LINES });
});

const parseMoment = (text: string | undefined): number | null =>
  text === undefined ? null : Date.parse(text);

const answer = Effect.fnUntraced(function* (
  query: Schema.Struct.Type<typeof filters> & { readonly project?: string },
  request: HttpServerRequest.HttpServerRequest,
) {
  const { accountId } = yield* Caller;
  const wish: AuditRequest = {
    ...pageRequest(query),
    accountId,
    projectId: query.project ?? null,
    actorId: query.actor ?? null,
    action: query.action ?? null,
    since: parseMoment(query.since),
    until: parseMoment(query.until),
  };
  if ((request.headers["accept"] ?? "").includes(LINES)) return yield* exportRows(wish);
  const page = yield* (yield* Audit).list(wish);
  return { events: page.items.map(eventForm), next_cursor: page.nextCursor };
});

export const auditHandlers = HttpApiBuilder.group(Platform.add(AuditGroup), "audit", (handlers) =>
  handlers
    .handle("list", ({ query, request }) => withApiErrors(answer(query, request)))
    .handle("listOfProject", ({ params, query, request }) =>
      withApiErrors(
        Effect.gen(function* () {
          yield* requireProject(yield* Caller, params.pid);
          return yield* answer({ ...query, project: params.pid }, request);
        }),
      ),
    ),
);
