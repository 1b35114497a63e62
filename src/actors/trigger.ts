/** Makes happen what the trigger machine decides: its timer, and the fire of a due instant. */
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import { cronVariables } from "../domain/prompt.ts";
import type { CronTriggerDefinition } from "../domain/trigger.ts";
import { trigger, type TriggerCommand, type TriggerEvent } from "../machines/trigger.ts";
import type { StoreError } from "../store/journal.ts";
import { Projects } from "../store/port.ts";
import type { Project } from "../store/records.ts";
import { actorLayer, type EntityOptions } from "./cluster.ts";
import { Firing } from "./firing.ts";
import { startActor, type Handlers } from "./host.ts";
import { Manifests } from "./manifests.ts";
import { isScheduled, nextDue, Timers } from "./scheduler.ts";
import { volatileMemory } from "./volatile.ts";

/** Admission of the account is full: the instant waits for its turn. */
const BUSY = Schedule.spaced("1 second");

/** The trigger entities. What they must know is what is armed: an actor that left memory takes it up from there. */
export const triggerActors = (options: EntityOptions) =>
  actorLayer(
    "trigger",
    Effect.fnUntraced(function* (id: string) {
      const timers = yield* Timers;
      const armed = timers.armed(id);
      const first = trigger.start({});
      return yield* startActor({
        id,
        machine: trigger,
        memory: volatileMemory(
          armed === null ? first : { ...first, snapshot: { state: "armed", context: armed }, commands: [] },
        ),
        handlers: yield* handlersOf(id),
        mailbox: 64,
        restarts: { restarts: 5, withinMs: 30_000 },
      });
    }),
    options,
  );

const handlersOf = Effect.fnUntraced(function* (id: string) {
  const projects = yield* Projects;
  const manifests = yield* Manifests;
  const firing = yield* Firing;
  const timers = yield* Timers;
  const [projectId = "", slug = ""] = id.split("/");

  /** The trigger as it is now; null where it is not to fire any more (threats.md C18: decided at the claim). */
  const current = Effect.gen(function* () {
    const project = yield* projects.get(projectId);
    if (project === null) return null;
    const { triggers } = yield* manifests.current(project);
    const definition = triggers.find((candidate) => candidate.slug === slug);
    return definition?.type === "cron" && isScheduled(project, definition) ? { project, definition } : null;
  });

  const admit = Effect.fnUntraced(function* (
    project: Project,
    definition: CronTriggerDefinition,
    due: number,
  ) {
    const lastFired = (yield* projects.lastFired(projectId)).get(slug) ?? null;
    yield* firing.fire({
      project,
      trigger: definition,
      kind: "cron",
      variables: cronVariables(definition, {
        schedule: definition.cron,
        timezone: definition.timezone,
        dueAtMs: due,
        lastFiredAtMs: lastFired,
      }),
      userId: project.createdBy,
      deliveryId: null,
      scheduledFor: due,
      atCap: "queue",
    });
  });

  /** Ends when the instant has its ledger row, which is unique: performed again, it fires no second time. */
  const fireInstant = (due: number): Effect.Effect<TriggerEvent, StoreError> =>
    Effect.gen(function* () {
      const found = yield* current;
      if (found === null) return { type: "instant.accounted" as const, due, next: null };
      const { project, definition } = found;
      yield* admit(project, definition, due).pipe(
        Effect.catchTag("PromptTooLarge", (error) =>
          Effect.logWarning("a cron fire failed", { project: projectId, slug, error: error.message }),
        ),
        Effect.retry({ while: (error) => error._tag === "AdmissionBusy", schedule: BUSY }),
        Effect.catchTag("AdmissionBusy", (error) => Effect.die(error)),
      );
      return { type: "instant.accounted" as const, due, next: nextDue(definition, due) };
    });

  const handlers: Handlers<TriggerEvent, TriggerCommand> = {
    armTimer: { perform: ({ due, schedule }) => Effect.as(timers.arm(id, { due, schedule }), undefined) },
    disarmTimer: { perform: () => Effect.as(timers.disarm(id), undefined) },
    fireInstant: {
      perform: ({ due }) => fireInstant(due),
      gaveUp: ({ due }) => ({ type: "instant.accounted", due, next: null }),
    },
  };
  return handlers;
});
