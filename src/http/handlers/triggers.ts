/** Handlers of api/triggers.ts. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { HttpApiBuilder } from "effect/http-api";
import { Directory } from "../../services/directory.ts";
import { Firing, firePrompt, type FireRequest } from "../../services/firing.ts";
import { Manifests } from "../../duties/manifests.ts";
import { Scheduler } from "../../duties/scheduler.ts";
import { scheduleOf } from "../../actors/schedules.ts";
import { parseCron, upcomingInstants } from "../../domain/cron.ts";
import { apiUrl } from "../../domain/environment.ts";
import { NO_MODEL } from "../../domain/model.ts";
import {
  cronVariables,
  isForm,
  manualVariables,
  parseWebhookBody,
  PROMPT_LIMIT_BYTES,
  renderPrompt,
  webhookVariables,
  type JsonObject,
  type JsonValue,
} from "../../domain/prompt.ts";
import type { TriggerDefinition } from "../../domain/trigger.ts";
import { isPing } from "../../domain/webhook-event.ts";
import { isFiltered, type WebhookFilter } from "../../domain/webhook-filter.ts";
import type { FireFailure } from "../../store/ports/admissions.ts";
import { Fires } from "../../store/ports/fires.ts";
import { Projects } from "../../store/ports/projects.ts";
import type { Fire, Project, TriggerCursor } from "../../store/ports/records.ts";
import { Caller } from "../api/access.ts";
import type * as api from "../api/triggers.ts";
import { Api } from "../api/api.ts";
import { badRequest, Internal, notFound, Unavailable, Unprocessable } from "../api/errors.ts";
import { answering, projectFor } from "./answers.ts";
import { Addresses } from "../limits.ts";
import { capReached, projectInactive } from "./sessions.ts";
import { warningsOf } from "./warnings.ts";
import { instant, instantOrNull } from "./wire.ts";

const UPCOMING = 5;

interface Known {
  readonly baseUrl: string;
  readonly project: Project;
  readonly now: number;
  readonly lastFired: ReadonlyMap<string, number>;
  readonly lastFires: ReadonlyMap<string, Fire>;
  readonly cursors: ReadonlyMap<string, TriggerCursor>;
}

/**
 * The next due instants. A paused project or a disabled trigger has none. Instants that are accounted for are left out,
 * even if the clock was set back before them.
 */
const upcomingOf = (trigger: TriggerDefinition, { project, now, cursors }: Known): readonly string[] => {
  if (trigger.type !== "cron" || !trigger.enabled || project.triggersPaused) return [];
  const schedule = Result.getOrThrow(parseCron(trigger.cron));
  const cursor = cursors.get(trigger.slug);
  const accountedUntil = cursor?.schedule === scheduleOf(trigger) ? cursor.accountedUntil : now;
  const afterMs = Math.max(now, accountedUntil);
  return upcomingInstants(schedule, trigger.timezone, { afterMs, count: UPCOMING }).map(instant);
};

const filterWire = ({ events, branches, conditions }: WebhookFilter) => ({
  events,
  branches,
  if:
    conditions.length === 0 ? null : Object.fromEntries(conditions.map(({ path, equals }) => [path, equals])),
});

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
          ...(trigger.filter !== undefined && { filter: filterWire(trigger.filter) }),
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

/** The listing of a project's triggers: valid entries, and the errors of the others (spec 4.4). */
export const triggerListing = Effect.fnUntraced(function* (project: Project) {
  const read = yield* (yield* Manifests).current(project);
  const scheduler = yield* (yield* Scheduler).state;
  const projects = yield* Projects;
  const cursors = yield* projects.cursors(read.triggers.map(({ slug }) => ({ projectId: project.id, slug })));
  const known: Known = {
    baseUrl: (yield* Addresses).publicUrl,
    project,
    now: yield* Clock.currentTimeMillis,
    lastFired: yield* projects.lastFired(project.id),
    cursors: new Map(cursors.map((cursor) => [cursor.slug, cursor])),
    lastFires: yield* (yield* Fires).lastBySlug(
      project.id,
      read.triggers.map(({ slug }) => slug),
    ),
  };
  return {
    triggers: read.triggers.map((trigger) => triggerWire(trigger, known)),
    errors: read.errors,
    manifest: { commit: read.commit, synced_at: instantOrNull(read.syncedAt), stale: read.stale },
    warnings: warningsOf((yield* Directory).known(project.id)),
    triggers_paused: project.triggersPaused,
    scheduler: { ticked_at: instantOrNull(scheduler.tickedAt), late: scheduler.late },
  };
});

type TriggerPath = { readonly pid: string; readonly slug: string };

/** The trigger of the path as it is in force, with its project's version. */
export const triggerFor = Effect.fnUntraced(function* ({ pid, slug }: TriggerPath) {
  const asked = yield* projectFor(yield* Caller, pid);
  yield* (yield* Manifests).current(asked);
  const directory = yield* Directory;
  const held = directory.known(pid);
  const known = held?.project.version === asked.version ? held : yield* directory.refresh(pid);
  const trigger = known?.triggers.get(slug);
  return known === null || trigger === undefined
    ? yield* notFound("trigger")
    : { project: known.project, trigger };
});

const promptTooLarge = (): Internal =>
  new Internal({
    error: `The rendered prompt is larger than ${PROMPT_LIMIT_BYTES} bytes.`,
    code: "prompt_too_large",
    details: { limit_bytes: PROMPT_LIMIT_BYTES },
  });

/** The answer to a fire that left a failed row. */
export const fireFailed = (reason: FireFailure): Internal | Unprocessable =>
  reason === "no_model" ? new Unprocessable({ error: NO_MODEL, code: "no_model" }) : promptTooLarge();

/** How often a fire is decided again because its project changed meanwhile. */
const STALE_MAX = 5;

/**
 * A person's fire: at the cap it is refused, not queued (api.md 4).
 *
 * @param make creates the fire from the trigger as it is in force.
 */
export const fireByHand = Effect.fnUntraced(function* <E, R>(
  path: TriggerPath,
  make: (found: Effect.Success<ReturnType<typeof triggerFor>>) => Effect.Effect<HandFire, E, R>,
) {
  const caller = yield* Caller;
  const firing = yield* Firing;
  for (let attempt = 1; attempt <= STALE_MAX; attempt += 1) {
    const { project, trigger } = yield* triggerFor(path);
    if (project.status !== "active") return yield* projectInactive();
    const fire = yield* make({ project, trigger });
    const admission = yield* firing.fire({
      ...fire,
      project,
      trigger,
      userId: caller.user.id,
      atCap: "refuse",
    });
    if (admission.outcome === "admitted")
      return { status: "fired" as const, session_id: admission.sessionId };
    if (admission.outcome === "refused") return yield* capReached(admission);
    if (admission.outcome === "failed") return yield* fireFailed(admission.reason);
    if (admission.outcome === "inactive") return yield* projectInactive();
    if (admission.outcome !== "stale") return yield* notFound("trigger");
  }
  return yield* new Unavailable({
    error: "The project is changing. Try again in a moment.",
    code: "busy",
  });
});

type HandFire = Pick<FireRequest, "kind" | "prompt" | "request" | "deliveryId" | "scheduledFor" | "replayOf">;

/** A manual fire also works on a disabled or paused trigger (api.md 4). */
export const fire = Effect.fnUntraced(function* (path: TriggerPath, message: HandMessage) {
  const caller = yield* Caller;
  const firedAtMs = yield* Clock.currentTimeMillis;
  return yield* fireByHand(path, ({ trigger }) =>
    Effect.succeed({
      kind: "manual",
      prompt: handPrompt(trigger, message, { firedAtMs, actor: caller.user.id }),
      request: { body: Buffer.from(JSON.stringify(message)), encoding: "identity", headers: null },
      deliveryId: null,
      scheduledFor: null,
      replayOf: null,
    }),
  );
});

export type HandMessage = (typeof api.HandMessage)["Type"];

export const handPrompt = (
  trigger: TriggerDefinition,
  { text = "", source = "" }: HandMessage,
  by: { readonly firedAtMs: number; readonly actor: string },
) => firePrompt(trigger.prompt, manualVariables(trigger, { ...by, text, source }));

interface PreviewRequest {
  readonly kind: "cron" | "webhook" | "manual";
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly text?: string;
  readonly source?: string;
  readonly at?: string;
}

/** A request's headers, with names in lower case. */
const headersOf = ({ headers = {} }: PreviewRequest): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

/** The body as the receiver reads it. A form's body is given as text. */
const bodyOf = (request: PreviewRequest): JsonValue => {
  const { body = {} } = request;
  const contentType = headersOf(request)["content-type"];
  return typeof body === "string" && isForm(contentType)
    ? parseWebhookBody(Buffer.from(body), contentType)
    : (body as JsonValue);
};

/** The outcome of this delivery if its signature is valid. */
const outcomeOf = (trigger: TriggerDefinition, request: PreviewRequest, variables: JsonObject) => {
  if (request.kind !== "webhook" || trigger.type !== "webhook") return "fires";
  const headers = headersOf(request);
  if (isPing(headers)) return "pong";
  return isFiltered(trigger.filter, { headers, body: bodyOf(request), variables }) ? "filtered" : "fires";
};

/** The prompt and variables of the described fire, and its outcome. Starts nothing. */
const preview = Effect.fnUntraced(function* (path: TriggerPath, request: PreviewRequest) {
  const { project, trigger } = yield* triggerFor(path);
  const at = request.at === undefined ? yield* Clock.currentTimeMillis : Date.parse(request.at);
  if (Number.isNaN(at)) return yield* badRequest("at", "must be an ISO 8601 instant");
  if (request.kind === "cron" && trigger.type !== "cron")
    return yield* badRequest("kind", "must be webhook or manual, because the trigger is not a cron trigger");
  const caller = yield* Caller;
  const lastFiredAtMs = (yield* (yield* Projects).lastFired(project.id)).get(trigger.slug) ?? null;
  const variables = previewVariables(trigger, request, { at, actor: caller.user.id, lastFiredAtMs });
  const outcome = outcomeOf(trigger, request, variables);
  const prompt = renderPrompt(trigger.prompt, variables);
  if (Result.isSuccess(prompt)) return { prompt: prompt.success, variables, outcome } as const;
  // A request that does not fire has no rendered prompt.
  return outcome === "fires" ? yield* promptTooLarge() : ({ prompt: "", variables, outcome } as const);
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
    const headers = headersOf(request);
    return webhookVariables(trigger, {
      firedAtMs: now.at,
      body: bodyOf(request),
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
    .handle("fire", ({ params, payload }) => answering(fire(params, payload)))
    .handle("preview", ({ params, payload }) => answering(preview(params, payload))),
);
