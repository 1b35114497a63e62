/** Handlers of api/triggers/triggers.ts. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { HttpApiBuilder } from "effect/http-api";
import {
  cronVariables,
  isForm,
  manualVariables,
  parseWebhookBody,
  renderPrompt,
  webhookVariables,
  type JsonObject,
  type JsonValue,
} from "../../domain/trigger/prompt.ts";
import type { TriggerDefinition } from "../../domain/trigger/trigger.ts";
import { isPing } from "../../domain/trigger/webhook-event.ts";
import { isFiltered } from "../../domain/trigger/webhook-filter.ts";
import { confirmedSkip, skipSuspicions } from "../../services/triggers/own-events.ts";
import { Caller } from "../api/access.ts";
import { badRequest } from "../api/errors.ts";
import { promptTooLarge } from "../answers/refusals.ts";
import { withApiErrors, projectFor, projectPage } from "../steps/answers.ts";
import {
  fireByHand,
  handWords,
  lastFiredAt,
  triggerFor,
  type HandMessage,
  type TriggerPath,
} from "../steps/projects/hand-fires.ts";
import { triggerListing, triggerSummaries } from "../steps/projects/trigger-listing.ts";
import { type PreviewRequest, TriggersGroup } from "../api/triggers/triggers.ts";
import { Platform } from "../api/platform.ts";

/** A manual fire also works on a disabled or paused trigger (api.md 4). */
export const fire = Effect.fnUntraced(function* (path: TriggerPath, message: HandMessage) {
  const caller = yield* Caller;
  const firedAtMs = yield* Clock.currentTimeMillis;
  const lastFiredAtMs = yield* lastFiredAt(path);
  return yield* fireByHand(path, ({ trigger }) =>
    Effect.succeed({
      kind: "manual",
      ...handWords(trigger, message, { firedAtMs, actor: caller.user.id, lastFiredAtMs }),
      request: { body: Buffer.from(JSON.stringify(message)), encoding: "identity", headers: null },
      deliveryId: null,
      scheduledFor: null,
      replayOf: null,
    }),
  );
});

/** A request's headers, with names in lower case. */
const lowerCaseHeaders = ({ headers = {} }: typeof PreviewRequest.Type): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

/** The body as the receiver reads it. A form's body is given as text. */
const previewBody = (request: typeof PreviewRequest.Type): JsonValue => {
  const { body = {} } = request;
  const contentType = lowerCaseHeaders(request)["content-type"];
  return typeof body === "string" && isForm(contentType)
    ? parseWebhookBody(Buffer.from(body), contentType)
    : (body as JsonValue);
};

/** The outcome of this delivery if its signature is valid. */
const previewOutcome = Effect.fnUntraced(function* (
  { project, trigger }: Effect.Success<ReturnType<typeof triggerFor>>,
  request: typeof PreviewRequest.Type,
  variables: JsonObject,
) {
  if (request.kind !== "webhook" || trigger.type !== "webhook") return "fires";
  const headers = lowerCaseHeaders(request);
  if (isPing(headers)) return "pong";
  const delivery = { headers, body: previewBody(request), variables };
  if (isFiltered(trigger.filter, delivery)) return "filtered";
  return (yield* confirmedSkip(project.id, skipSuspicions(trigger, delivery))) ?? "fires";
});

/** The prompt and variables of the described fire, and its outcome. Starts nothing. */
const preview = Effect.fnUntraced(function* (path: TriggerPath, request: typeof PreviewRequest.Type) {
  const { project, trigger } = yield* triggerFor(path);
  const at = request.at === undefined ? yield* Clock.currentTimeMillis : Date.parse(request.at);
  if (Number.isNaN(at)) return yield* badRequest("at", "must be an ISO 8601 instant");
  if (request.kind === "cron" && trigger.type !== "cron")
    return yield* badRequest("kind", "must be webhook or manual, because the trigger is not a cron trigger");
  const caller = yield* Caller;
  const lastFiredAtMs = yield* lastFiredAt(path);
  const variables = previewVariables(trigger, request, { at, actor: caller.user.id, lastFiredAtMs });
  const outcome = yield* previewOutcome({ project, trigger }, request, variables);
  const prompt = renderPrompt(trigger.prompt, variables);
  if (Result.isSuccess(prompt)) return { prompt: prompt.success, variables, outcome } as const;
  // A request that does not fire has no rendered prompt.
  return outcome === "fires" ? yield* promptTooLarge() : ({ prompt: "", variables, outcome } as const);
});

const previewVariables = (
  trigger: TriggerDefinition,
  request: typeof PreviewRequest.Type,
  now: { readonly at: number; readonly actor: string; readonly lastFiredAtMs: number | null },
): JsonObject => {
  if (request.kind === "cron" && trigger.type === "cron") {
    return cronVariables(trigger, {
      schedule: trigger.cron,
      timezone: trigger.timezone,
      dueAtMs: now.at,
      lastFiredAtMs: now.lastFiredAtMs,
    });
  }
  if (request.kind === "webhook") {
    const headers = lowerCaseHeaders(request);
    return webhookVariables(trigger, {
      firedAtMs: now.at,
      body: previewBody(request),
      headers: {
        contentType: headers["content-type"],
        userAgent: headers["user-agent"],
        forwardedFor: headers["x-forwarded-for"],
      },
    });
  }
  const { text = "", source = "" } = request;
  return manualVariables(trigger, { ...now, firedAtMs: now.at, text, source });
};

export const triggersHandlers = HttpApiBuilder.group(Platform.add(TriggersGroup), "triggers", (handlers) =>
  handlers
    .handle("list", ({ params }) =>
      withApiErrors(
        Effect.gen(function* () {
          return yield* triggerListing(yield* projectFor(yield* Caller, params.pid));
        }),
      ),
    )
    .handle("listAll", ({ query }) =>
      withApiErrors(
        Effect.gen(function* () {
          const { items, nextCursor } = yield* projectPage(yield* Caller, query);
          return { projects: yield* triggerSummaries(items), next_cursor: nextCursor };
        }),
      ),
    )
    .handle("fire", ({ params, payload }) => withApiErrors(fire(params, payload)))
    .handle("preview", ({ params, payload }) => withApiErrors(preview(params, payload))),
);
