/**
 * Pushes of the project's own sessions, which come back as webhooks: the service creates a branch for each session, and
 * its agent pushes there. If this started a session, that session's branch would start the next one, without end.
 */
import * as Effect from "effect/Effect";
import type { JsonValue } from "../domain/prompt.ts";
import type { WebhookTriggerDefinition } from "../domain/trigger.ts";
import { pushedSessions, type EventHeaders } from "../domain/webhook-event.ts";
import { Sessions } from "../store/ports/sessions.ts";

/** The sessions to look for. Empty for nearly every delivery, which then costs no statement. */
export const ownPushOf = (
  { filter }: WebhookTriggerDefinition,
  { headers, body }: { readonly headers: EventHeaders; readonly body: JsonValue },
): readonly string[] => (filter?.ownPushes === true ? [] : pushedSessions(headers, body));

/** Whether there are any, and all are sessions of the project. Deleted ones count: their branches stay. */
export const areOwnSessions = Effect.fnUntraced(function* (projectId: string, ids: readonly string[]) {
  const sessions = yield* Sessions;
  for (const id of ids) {
    const session = yield* sessions.get(id);
    if (session?.projectId !== projectId) return false;
  }
  return ids.length > 0;
});
