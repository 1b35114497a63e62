/** Handlers of api/triggers/webhook-refusals.ts. */
import * as Effect from "effect/Effect";
import { HttpApiBuilder } from "effect/http-api";
import { WebhookRefusals, type WebhookRefusal } from "../../store/ports/triggers/webhook-refusals.ts";
import { Caller } from "../api/access.ts";
import { answering, requireProject } from "../steps/answers.ts";
import { instant, pageRequest } from "../steps/wire.ts";
import { WebhookRefusalsGroup } from "../api/triggers/webhook-refusals.ts";
import { Platform } from "../api/platform.ts";

const refusalWire = (refusal: WebhookRefusal) => ({
  id: refusal.id,
  at: instant(refusal.at),
  slug: refusal.slug,
  status: refusal.status,
  code: refusal.code,
  reason: refusal.reason,
  delivery_id: refusal.deliveryId,
  event: refusal.event,
  declared_bytes: refusal.declaredBytes,
  body_bytes: refusal.bodyBytes,
  address: refusal.address,
  forwarded_for: refusal.forwardedFor,
});

export const webhookRefusalsHandlers = HttpApiBuilder.group(
  Platform.add(WebhookRefusalsGroup),
  "webhookRefusals",
  (handlers) =>
    handlers.handle("list", ({ params, query }) =>
      answering(
        Effect.gen(function* () {
          yield* requireProject(yield* Caller, params.pid);
          const page = yield* (yield* WebhookRefusals).list(params.pid, {
            ...pageRequest(query),
            ...(query.slug !== undefined && { slug: query.slug }),
          });
          return { webhook_refusals: page.items.map(refusalWire), next_cursor: page.nextCursor };
        }),
      ),
    ),
);
