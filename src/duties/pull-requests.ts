/**
 * Looks at the pull requests beside change requests (services/pull-mirror.ts): at all projects that want them, on a timer. It
 * hears of what people do at the code host, and takes up what a look from the change request's side could not do.
 */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { Directory } from "../services/directory.ts";
import { PullMirror, wantsPulls } from "../services/pull-mirror.ts";
import { DUTIES } from "./duties.ts";
import { dutyPart, runDuty } from "./duty.ts";

const PROJECTS_AT_ONCE = 4;

export const pullRequestsLayer = Layer.effectDiscard(
  Effect.gen(function* () {
    const directory = yield* Directory;
    const mirror = yield* PullMirror;
    const round = Effect.suspend(() =>
      Effect.forEach(
        [...directory.all()].filter(({ project }) => wantsPulls(project)),
        ({ project }) => dutyPart("pull_requests", mirror.look(project.id)),
        { concurrency: PROJECTS_AT_ONCE, discard: true },
      ),
    );
    yield* runDuty("pull_requests", { round, periodMs: DUTIES.pull_requests.periodMs });
  }),
);
