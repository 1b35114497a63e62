/** Handlers of api/triggers/webhook-refusals.ts. */
import * as Effect from "effect/Effect";
import { HttpApiBuilder } from "effect/http-api";
import { WebhookRefusals } from "../../store/ports/triggers/webhook-refusals.ts";
import { Caller } from "../api/access.ts";
import { withApiErrors, requireProject } from "../steps/answers.ts";
import { pageRequest, wireForm } from "../steps/wire.ts";
import { RefusalWire, WebhookRefusalsGroup } from "../api/triggers/webhook-refusals.ts";
import { Platform } from "../api/platform.ts";

const refusalForm = wireForm(RefusalWire);

export const webhookRefusalsHandlers = HttpApiBuilder.group(
  Platform.add(WebhookRefusalsGroup),
  "webhookRefusals",
  (handlers) =>
    handlers.handle("list", ({ params, query }) =>
      withApiErrors(
        Effect.gen(function* () {
          yield* requireProject(yield* Caller, params.pid);
          const page = yield* (yield* WebhookRefusals).list(params.pid, {
            ...pageRequest(query),
            ...(query.slug !== undefined && { slug: query.slug }),
          });
          return { webhook_refusals: page.items.map(refusalForm), next_cursor: page.nextCursor };
        }),
      ),
    ),
);
