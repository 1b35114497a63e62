/** A person fires a trigger, or fires it again: what both endpoints share. */
import * as Effect from "effect/Effect";
import { manualVariables } from "../../../domain/trigger/prompt.ts";
import type { TriggerDefinition } from "../../../domain/trigger/trigger.ts";
import { Manifests } from "../../../services/projects/manifests.ts";
import { Directory } from "../../../services/directory.ts";
import { Firing, fireWords, type FireRequest } from "../../../services/triggers/firing.ts";
import { Projects } from "../../../store/ports/projects/projects.ts";
import { Caller } from "../../api/access.ts";
import { notFound, Unavailable } from "../../api/errors.ts";
import type * as api from "../../api/triggers/triggers.ts";
import { parentSession } from "../../callers/agent-rules.ts";
import {
  capReached,
  childrenFull,
  fireFailed,
  projectInactive,
  spendLimitReached,
} from "../../answers/refusals.ts";
import { projectFor } from "../answers.ts";

export type TriggerPath = { readonly pid: string; readonly slug: string };

/** The trigger of the path as it is in force, with its project's version. */
export const triggerFor = Effect.fnUntraced(function* ({ pid, slug }: TriggerPath) {
  const project = yield* projectFor(yield* Caller, pid);
  yield* (yield* Manifests).current(project);
  const directory = yield* Directory;
  const memory = directory.known(pid);
  const entry = memory?.project.version === project.version ? memory : yield* directory.refresh(pid);
  const trigger = entry?.triggers.get(slug);
  return entry === null || trigger === undefined
    ? yield* notFound("trigger")
    : { project: entry.project, trigger };
});

/** How often a fire is decided again because its project changed meanwhile. */
const STALE_MAX = 5;

/**
 * A person's fire: at the cap it is refused, not queued (api.md 4). An agent's fire starts a child of its session (agent-rules.ts R1).
 *
 * @param make creates the fire from the trigger as it is in force.
 */
export const fireByHand = Effect.fnUntraced(function* <E, R>(
  path: TriggerPath,
  make: (target: Effect.Success<ReturnType<typeof triggerFor>>) => Effect.Effect<HandFire, E, R>,
) {
  const caller = yield* Caller;
  const firing = yield* Firing;
  yield* projectFor(caller, path.pid);
  const parent = yield* parentSession(caller);
  for (let attempt = 1; attempt <= STALE_MAX; attempt += 1) {
    const { project, trigger } = yield* triggerFor(path);
    if (project.status !== "active") return yield* projectInactive(project);
    const fire = yield* make({ project, trigger });
    const admission = yield* firing.fire({
      ...fire,
      project,
      trigger,
      ...parent,
      userId: caller.user.id,
      by: "hand",
    });
    if (admission.outcome === "admitted")
      return { status: "fired" as const, session_id: admission.sessionId };
    if (admission.outcome === "refused") return yield* capReached(admission);
    if (admission.outcome === "children_full") return yield* childrenFull(admission);
    if (admission.outcome === "skipped") return yield* spendLimitReached();
    if (admission.outcome === "failed") return yield* fireFailed(admission.reason);
    if (admission.outcome === "inactive") return yield* projectInactive(project);
  }
  return yield* new Unavailable({
    error: "The project is changing. Try again in a moment.",
    code: "busy",
  });
});

type HandFire = Pick<
  FireRequest,
  "kind" | "prompt" | "title" | "request" | "deliveryId" | "scheduledFor" | "replayOf"
>;

export type HandMessage = (typeof api.HandMessage)["Type"];

export const handWords = (
  trigger: TriggerDefinition,
  { text = "", source = "" }: HandMessage,
  by: { readonly firedAtMs: number; readonly actor: string; readonly lastFiredAtMs: number | null },
) => fireWords(trigger, manualVariables(trigger, { ...by, text, source }));

/** When the trigger last fired, in ms. Null if it never did. */
export const lastFiredAt = Effect.fnUntraced(function* ({ pid, slug }: TriggerPath) {
  return (yield* (yield* Projects).lastFired(pid)).get(slug) ?? null;
});
