/**
 * Decides whether a delivery is the service's own act and starts nothing: own pushes, requests and comments.
 * Compares what it may be (domain/trigger/event-skip.ts) with the rows: with the sessions of the installation, whose branches
 * stay after their deletion, and with the project's change requests and their pull requests. Sessions of other projects count: where two
 * projects have one repository, the sessions of one would start those of the other without end.
 */
import * as Effect from "effect/Effect";
import {
  suspicions,
  type EventSkip,
  type RequestClue,
  type Suspicion,
} from "../../domain/trigger/event-skip.ts";
import type { JsonValue } from "../../domain/trigger/prompt.ts";
import type { WebhookTriggerDefinition } from "../../domain/trigger/trigger.ts";
import type { EventHeaders } from "../../domain/trigger/webhook-event.ts";
import type { StoreError } from "../../store/ports/journal.ts";
import { Sessions } from "../../store/ports/sessions/sessions.ts";
import { ProposedWork } from "../sessions/proposed-work.ts";

/** What to look for. Empty for nearly every delivery, which then costs no statement. */
export const skipSuspicions = (
  { filter }: WebhookTriggerDefinition,
  { headers, body }: { readonly headers: EventHeaders; readonly body: JsonValue },
): readonly Suspicion[] =>
  suspicions(headers, body).filter(({ reason }) => filter?.includes.includes(reason) !== true);

const areSessions = Effect.fnUntraced(function* (ids: readonly string[]) {
  const sessions = yield* Sessions;
  for (const id of ids) if ((yield* sessions.get(id)) === null) return false;
  return true;
});

const isOwnRequest = Effect.fnUntraced(function* (projectId: string, clue: RequestClue) {
  const { sessionId } = clue;
  if (sessionId !== null && (yield* areSessions([sessionId]))) return true;
  return yield* (yield* ProposedWork).isOwn(projectId, clue);
});

const isConfirmed = (projectId: string, suspicion: Suspicion) => {
  switch (suspicion.reason) {
    case "deletion":
      return Effect.succeed(true);
    case "own_push":
      return areSessions(suspicion.sessionIds);
    case "own_request":
    case "own_comment":
      return isOwnRequest(projectId, suspicion.request);
  }
};

/** The first reason that holds for the project. Null if the delivery fires. */
export const confirmedSkip = Effect.fnUntraced(function* (
  projectId: string,
  suspects: readonly Suspicion[],
): Effect.fn.Return<EventSkip | null, StoreError, ProposedWork | Sessions> {
  for (const suspicion of suspects) if (yield* isConfirmed(projectId, suspicion)) return suspicion.reason;
  return null;
});
