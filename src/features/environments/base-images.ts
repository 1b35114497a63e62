/**
 * Looks up the tags of base images again, and begins a build where one has changed. A round looks at this node's images on a timer, and
 * takes no input.
 *
 *  L1 Only environments that sessions would start on count: the newest image of an active project, if it has the Dockerfile in force.
 *  L2 A tag is looked up once for all projects and nodes. Builds have no credentials for registries, so all of them see the same tag.
 *  L3 A registry that does not answer is asked again later, with growing pauses. Nothing is built for that.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { BuildSite } from "../../builder/site/port.ts";
import { hasNewerBase } from "../../domain/environment/base-image.ts";
import { Environments } from "../../services/environments/environments.ts";
import { type EnvironmentBase, EnvironmentBases } from "../../store/ports/projects/environment-bases.ts";
import { EnvironmentBuilds } from "../../store/ports/projects/environment-builds.ts";
import { Projects } from "../../store/ports/projects/projects.ts";
import { DUTIES } from "../../services/duties.ts";
import { dutyPart, runDuty } from "../../services/duty.ts";

/** How many tags a round looks up, and how many of them at the same time. The next round takes the rest. */
const LOOKS_A_ROUND = 40;
const LOOKS_AT_ONCE = 4;
/** A round ends sooner: a look takes 15 s at most. */
const ROUND_MS = 5 * 60_000;
/** The pause after the first failure. It doubles with each further one, up to the usual pause. */
export const AGAIN_MS = 5 * 60_000;
/** After how many usual pauses without a use a tag is forgotten, but never within a week. */
const PAUSES_KEPT = 4;
const KEPT_MS = 7 * 24 * 60 * 60_000;

export interface BaseImagesOptions {
  readonly nodeId: string;
  /** The usual pause between two looks at a tag, ms (PLATFORM_ENVIRONMENT_BASES_MS). */
  readonly everyMs: number;
}

/** @returns the pause before the next look, ms */
const retryPause = (failures: number, everyMs: number): number =>
  Math.min(AGAIN_MS * 2 ** Math.min(failures, 20), everyMs);

const makeRound = Effect.fnUntraced(function* ({ nodeId, everyMs }: BaseImagesOptions) {
  const builds = yield* EnvironmentBuilds;
  const bases = yield* EnvironmentBases;
  const environments = yield* Environments;
  const projects = yield* Projects;
  const site = yield* BuildSite;

  /** L1 */
  const current = Effect.gen(function* () {
    const ready = (yield* builds.newestReady(nodeId)).filter((build) => build.bases.length > 0);
    const states = yield* projects.states(ready.map(({ projectId }) => projectId));
    return ready.flatMap((build) => {
      const state = states.find(({ project }) => project.id === build.projectId);
      const source = state?.manifest?.environment ?? null;
      const isCurrent = state?.project.status === "active" && source?.key === build.source.key;
      return isCurrent && source !== null ? [{ build, source }] : [];
    });
  });

  const look = Effect.fnUntraced(function* ({
    reference,
    failures,
  }: Pick<EnvironmentBase, "reference" | "failures">) {
    const lookUp = yield* Effect.result(site.lookUp(reference));
    const now = yield* Clock.currentTimeMillis;
    if (lookUp._tag === "Success")
      return yield* bases.found({ reference, digest: lookUp.success, now, dueAt: now + everyMs });
    const { message: problem, waitMs } = lookUp.failure;
    const dueAt = now + Math.max(retryPause(failures, everyMs), waitMs ?? 0);
    yield* bases.missed({ reference, problem, now, dueAt });
  });

  return Effect.gen(function* () {
    if (site.builder === null) return;
    const now = yield* Clock.currentTimeMillis;
    const sources = yield* current;
    const references = [
      ...new Set(sources.flatMap(({ build }) => build.bases.map(({ reference }) => reference))),
    ];
    const due = yield* bases.take({ references, now, until: now + ROUND_MS, limit: LOOKS_A_ROUND });
    yield* Effect.forEach(due, (one) => dutyPart("base_images", look(one)), {
      concurrency: LOOKS_AT_ONCE,
      discard: true,
    });
    const baseRows = yield* bases.get(references);
    for (const { build, source } of sources)
      if (hasNewerBase(build.bases, baseRows))
        yield* dutyPart("base_images", Effect.asVoid(environments.renew(build.projectId, source)));
    yield* bases.prune(now - Math.max(PAUSES_KEPT * everyMs, KEPT_MS));
  });
});

export const baseImagesLayer = (options: BaseImagesOptions) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const round = yield* makeRound(options);
      yield* runDuty("base_images", { round, first: "a period", periodMs: DUTIES.base_images.periodMs });
    }),
  );
