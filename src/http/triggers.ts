/** Handlers of api/triggers.ts. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { HttpApiBuilder } from "effect/http-api";
import { Firing } from "../actors/firing.ts";
import { Manifests } from "../actors/manifests.ts";
import { Scheduler } from "../actors/scheduler.ts";
import { parseCron, upcomingInstants } from "../domain/cron.ts";
import { apiUrl } from "../domain/environment.ts";
import {
  cronVariables,
  manualVariables,
  renderPrompt,
  webhookVariables,
  type JsonObject,
  type JsonValue,
  type PromptTooLarge,
} from "../domain/prompt.ts";
import type { TriggerDefinition } from "../domain/trigger.ts";
import { Fires, Projects } from "../store/port.ts";
import type { Fire, Project } from "../store/records.ts";
import { Caller } from "./api/access.ts";
import { Api } from "./api/api.ts";
import { badRequest, Internal, notFound } from "./api/errors.ts";
import { answering, projectFor } from "./answers.ts";
import { Addresses } from "./limits.ts";
import { capReached } from "./sessions.ts";
import { fireWire, instant, instantOrNull, pageOf, queuedFireWire } from "./wire.ts";

const UPCOMING = 5;

interface Known {
  readonly baseUrl: string;
  readonly project: Project;
  readonly now: number;
  readonly lastFired: ReadonlyMap<string, number>;
  readonly lastFires: ReadonlyMap<string, Fire>;
}

/** Due instants ahead; a paused project or a disabled trigger has none. */
const upcomingOf = (trigger: TriggerDefinition, { project, now }: Known): readonly string[] => {
  if (trigger.type !== "cron" || !trigger.enabled || project.triggersPaused) return [];
  const schedule = Result.getOrThrow(parseCron(trigger.cron));
  return upcomingInstants(schedule, trigger.timezone, { afterMs: now, count: UPCOMING }).map(instant);
};

const triggerWire = (trigger: TriggerDefinition, known: Known) => {
  const upcoming = upcomingOf(trigger, known);
  const lastFire = known.lastFires.get(trigger.slug);
  return {
    slug: trigger.slug,
    name: trigger.name,
    type: trigger.type,
    agent: trigger.agent,
    enabled: trigger.enabled,
    prompt: trigger.prompt,
    ...(trigger.type === "cron"
      ? { cron: trigger.cron, timezone: trigger.timezone }
      : {
          secret_env: trigger.secretEnv,
          webhook_url: `${apiUrl(known.baseUrl)}/webhooks/projects/${known.project.id}/${trigger.slug}`,
        }),
    last_fired_at: instantOrNull(known.lastFired.get(trigger.slug) ?? null),
    next_fire_at: upcoming[0] ?? null,
    upcoming,
    last_fire:
      lastFire === undefined
        ? null
        : { id: lastFire.id, status: lastFire.status, at: instant(lastFire.receivedAt) },
  };
};

/** The listing of a project's triggers, good ones beside the errors (spec 4.4). */
export const triggerListing = Effect.fnUntraced(function* (project: Project) {
  const read = yield* (yield* Manifests).current(project);
  const scheduler = yield* (yield* Scheduler).state;
  const known: Known = {
    baseUrl: (yield* Addresses).publicUrl,
    project,
    now: yield* Clock.currentTimeMillis,
    lastFired: yield* (yield* Projects).lastFired(project.id),
    lastFires: yield* (yield* Fires).lastBySlug(project.id),
  };
  return {
    triggers: read.triggers.map((trigger) => triggerWire(trigger, known)),
    errors: read.errors,
    manifest: { commit: read.commit, synced_at: instantOrNull(read.syncedAt), stale: read.stale },
    triggers_paused: project.triggersPaused,
    scheduler: { ticked_at: instantOrNull(scheduler.tickedAt), late: scheduler.late },
  };
});

type TriggerPath = { readonly pid: string; readonly slug: string };

const triggerFor = Effect.fnUntraced(function* ({ pid, slug }: TriggerPath) {
  const project = yield* projectFor(yield* Caller, pid);
  const read = yield* (yield* Manifests).current(project);
  const trigger = read.triggers.find((candidate) => candidate.slug === slug);
  return trigger === undefined ? yield* notFound("trigger") : { project, trigger };
});

export const promptTooLarge = (error: PromptTooLarge): Internal =>
  new Internal({
    error: error.message,
    code: "prompt_too_large",
    details: { limit_bytes: error.limit_bytes },
  });

/** A fire by hand works on a disabled or paused trigger too; at the cap it is refused, not queued (api.md 4). */
const fire = Effect.fnUntraced(function* (
  path: TriggerPath,
  message: { readonly text?: string; readonly source?: string },
) {
  const { project, trigger } = yield* triggerFor(path);
  const caller = yield* Caller;
  const variables = manualVariables(trigger, {
    firedAtMs: yield* Clock.currentTimeMillis,
    actor: caller.user.id,
    text: message.text ?? "",
    source: message.source ?? "",
  });
  const admission = yield* (yield* Firing).fire({
    project,
    trigger,
    kind: "manual",
    variables,
    userId: caller.user.id,
    deliveryId: null,
    scheduledFor: null,
    atCap: "refuse",
  });
  if (admission.outcome === "refused") return yield* capReached(admission);
  if (admission.outcome !== "admitted") return yield* notFound("trigger");
  return { status: "fired" as const, session_id: admission.sessionId };
});

interface PreviewRequest {
  readonly kind: "cron" | "webhook" | "manual";
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly text?: string;
  readonly source?: string;
  readonly at?: string;
}

/** The prompt and its variables as such a fire would have them; starts nothing. */
const preview = Effect.fnUntraced(function* (path: TriggerPath, request: PreviewRequest) {
  const { project, trigger } = yield* triggerFor(path);
  const at = request.at === undefined ? yield* Clock.currentTimeMillis : Date.parse(request.at);
  if (Number.isNaN(at)) return yield* badRequest("at", "expected an ISO 8601 instant");
  if (request.kind === "cron" && trigger.type !== "cron")
    return yield* badRequest("kind", "the trigger is no cron trigger");
  const caller = yield* Caller;
  const lastFiredAtMs = (yield* (yield* Projects).lastFired(project.id)).get(trigger.slug) ?? null;
  const variables = previewVariables(trigger, request, { at, actor: caller.user.id, lastFiredAtMs });
  const prompt = renderPrompt(trigger.prompt, variables);
  if (Result.isFailure(prompt)) return yield* promptTooLarge(prompt.failure);
  return { prompt: prompt.success, variables };
});

const previewVariables = (
  trigger: TriggerDefinition,
  request: PreviewRequest,
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
    const { headers = {} } = request;
    return webhookVariables(trigger, {
      firedAtMs: now.at,
      body: (request.body ?? {}) as JsonValue,
      headers: {
        contentType: headers["content-type"],
        userAgent: headers["user-agent"],
        forwardedFor: headers["x-forwarded-for"],
      },
    });
  }
  const { text = "", source = "" } = request;
  return manualVariables(trigger, { firedAtMs: now.at, actor: now.actor, text, source });
};

export const triggersHandlers = HttpApiBuilder.group(Api, "triggers", (handlers) =>
  handlers
    .handle("list", ({ params }) =>
      answering(
        Effect.gen(function* () {
          return yield* triggerListing(yield* projectFor(yield* Caller, params.pid));
        }),
      ),
    )
    .handle("fire", ({ params, payload }) =>
      answering(fire(params, payload)).pipe(
        Effect.catchTag("PromptTooLarge", (error) => Effect.fail(promptTooLarge(error))),
      ),
    )
    .handle("preview", ({ params, payload }) => answering(preview(params, payload)))
    .handle("fires", ({ params, query }) =>
      answering(
        Effect.gen(function* () {
          const project = yield* projectFor(yield* Caller, params.pid);
          const request = { ...pageOf(query), slug: query.slug ?? null, status: query.status ?? null };
          const page = yield* (yield* Fires).list(project.id, request);
          return { fires: page.items.map(fireWire), next_cursor: page.nextCursor };
        }),
      ),
    )
    .handle("queue", () =>
      answering(
        Effect.gen(function* () {
          const queue = yield* (yield* Fires).queue((yield* Caller).accountId);
          return {
            queue: queue.map(queuedFireWire),
            next_cursor: null,
          };
        }),
      ),
    ),
);
