/**
 * Looks at the pull requests beside change requests (services/pull-mirror.ts): at all projects that want them, on a timer. It
 * hears of what people do at the code host, and takes up what a look from the change request's side could not do.
 */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Schedule from "effect/Schedule";
import { dutyRound } from "../actors/supervisor.ts";
import { Directory } from "../services/directory.ts";
import { PullMirror, wantsPulls } from "../services/pull-mirror.ts";

/** Half of the time within which an end at the host is known here. */
const INTERVAL = "30 seconds";
const PROJECTS_AT_ONCE = 4;

export const pullRequestsLayer = Layer.effectDiscard(
  Effect.gen(function* () {
    const directory = yield* Directory;
    const mirror = yield* PullMirror;
    const round = Effect.suspend(() =>
      Effect.forEach(
        [...directory.all()].filter(({ project }) => wantsPulls(project)),
        ({ project }) => dutyRound("pull requests", mirror.look(project.id)),
        { concurrency: PROJECTS_AT_ONCE, discard: true },
      ),
    );
    yield* Effect.forkScoped(Effect.repeat(round, Schedule.spaced(INTERVAL)));
  }),
);
