/** A project's triggers as the API lists them: for the triggers' endpoints and for a project's creation. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { scheduleText } from "../../../actors/schedules.ts";
import { parseCron, upcomingInstants } from "../../../domain/trigger/cron.ts";
import { apiUrl } from "../../../domain/sandbox/environment.ts";
import type { TriggerDefinition } from "../../../domain/trigger/trigger.ts";
import type { WebhookFilter } from "../../../domain/trigger/webhook-filter.ts";
import { Manifests } from "../../../services/projects/manifests.ts";
import { Scheduler } from "../../../duties/scheduler.ts";
import { Directory } from "../../../services/directory.ts";
import { Fires, type ShownFire } from "../../../store/ports/triggers/fires.ts";
import { Projects, type Project, type TriggerCursor } from "../../../store/ports/projects/projects.ts";
import { Addresses } from "../../limits.ts";
import { deliveredKeys, sessionWarnings } from "../warnings.ts";
import { instant, instantOrNull } from "../wire.ts";

const UPCOMING = 5;

interface Facts {
  readonly baseUrl: string;
  readonly project: Project;
  readonly now: number;
  readonly lastFired: ReadonlyMap<string, number>;
  readonly lastFires: ReadonlyMap<string, ShownFire>;
  readonly cursors: ReadonlyMap<string, TriggerCursor>;
}

/**
 * The next due instants. A paused project or a disabled trigger has none. Instants that are accounted for are left out,
 * even if the clock was set back before them.
 */
const nextInstants = (trigger: TriggerDefinition, { project, now, cursors }: Facts): readonly string[] => {
  if (trigger.type !== "cron" || !trigger.enabled || project.triggersPaused) return [];
  const schedule = Result.getOrThrow(parseCron(trigger.cron));
  const cursor = cursors.get(trigger.slug);
  const accountedUntil = cursor?.schedule === scheduleText(trigger) ? cursor.accountedUntil : now;
  const afterMs = Math.max(now, accountedUntil);
  return upcomingInstants(schedule, trigger.timezone, { afterMs, count: UPCOMING }).map(instant);
};

const conditionsWire = (conditions: WebhookFilter["conditions"] = []) =>
  conditions.length === 0 ? null : Object.fromEntries(conditions.map(({ path, equals }) => [path, equals]));

const filterWire = ({ events, branches, conditions, exceptions, includes }: WebhookFilter) => ({
  events,
  branches,
  deletions: includes.includes("deletion"),
  own_pushes: includes.includes("own_push"),
  own_requests: includes.includes("own_request"),
  own_comments: includes.includes("own_comment"),
  if: conditionsWire(conditions),
  unless: conditionsWire(exceptions),
});

/** Where the deliveries of a webhook trigger go. */
export const webhookAddress = (baseUrl: string, projectId: string, slug: string): string =>
  `${apiUrl(baseUrl)}/webhooks/projects/${projectId}/${slug}`;

const lastFireWire = (fire: ShownFire | undefined) =>
  fire === undefined
    ? null
    : { id: fire.id, status: fire.status, at: instant(fire.receivedAt), outcome: fire.outcome };

const summaryWire = (trigger: TriggerDefinition, facts: Facts) => ({
  slug: trigger.slug,
  name: trigger.name,
  type: trigger.type,
  agent: trigger.agent,
  enabled: trigger.enabled,
  ...(trigger.type === "cron" && { cron: trigger.cron, timezone: trigger.timezone }),
  last_fired_at: instantOrNull(facts.lastFired.get(trigger.slug) ?? null),
  next_fire_at: nextInstants(trigger, facts)[0] ?? null,
  last_fire: lastFireWire(facts.lastFires.get(trigger.slug)),
});

const triggerWire = (trigger: TriggerDefinition, facts: Facts) => ({
  ...summaryWire(trigger, facts),
  ...(trigger.title !== undefined && { title: trigger.title }),
  prompt: trigger.prompt,
  ...(trigger.type === "webhook" && {
    secret_env: trigger.secretEnv,
    webhook_url: webhookAddress(facts.baseUrl, facts.project.id, trigger.slug),
    ...(trigger.filter !== undefined && { filter: filterWire(trigger.filter) }),
  }),
  upcoming: nextInstants(trigger, facts),
});

/** The instants and last runs of the project's triggers. */
const readKnown = Effect.fnUntraced(function* (project: Project, triggers: readonly TriggerDefinition[]) {
  const projects = yield* Projects;
  const cursors = yield* projects.cursors(triggers.map(({ slug }) => ({ projectId: project.id, slug })));
  const facts: Facts = {
    baseUrl: (yield* Addresses).publicUrl,
    project,
    now: yield* Clock.currentTimeMillis,
    lastFired: yield* projects.lastFired(project.id),
    cursors: new Map(cursors.map((cursor) => [cursor.slug, cursor])),
    lastFires: yield* (yield* Fires).lastBySlug(
      project.id,
      triggers.map(({ slug }) => slug),
    ),
  };
  return facts;
});

/** The listing of a project's triggers: valid entries, and the errors of the others (spec 4.4). */
export const triggerListing = Effect.fnUntraced(function* (project: Project) {
  const read = yield* (yield* Manifests).current(project);
  const scheduler = yield* (yield* Scheduler).state;
  const facts = yield* readKnown(project, read.triggers);
  const memory = (yield* Directory).known(project.id);
  return {
    triggers: read.triggers.map((trigger) => triggerWire(trigger, facts)),
    errors: read.errors,
    manifest: { commit: read.commit, synced_at: instantOrNull(read.syncedAt), stale: read.stale },
    warnings: [...sessionWarnings(memory), ...deliveredKeys(memory)],
    triggers_paused: project.triggersPaused,
    scheduler: { ticked_at: instantOrNull(scheduler.tickedAt), late: scheduler.late },
  };
});

/** How many projects are read at a time for one list. */
const READ_AT_ONCE = 4;

/** The triggers of several projects. Those without any, and those that start nothing, are left out. */
export const triggerSummaries = Effect.fnUntraced(function* (projects: readonly Project[]) {
  const manifests = yield* Manifests;
  const active = projects.filter(({ status }) => status === "active");
  const rows = yield* Effect.forEach(
    active,
    Effect.fnUntraced(function* (project) {
      const { triggers, errors, stale } = yield* manifests.current(project);
      if (triggers.length + errors.length === 0) return [];
      const facts = yield* readKnown(project, triggers);
      return [
        {
          id: project.id,
          name: project.name,
          triggers: triggers.map((trigger) => summaryWire(trigger, facts)),
          errors: errors.length,
          stale,
          triggers_paused: project.triggersPaused,
        },
      ];
    }),
    { concurrency: READ_AT_ONCE },
  );
  return rows.flat();
});
