/** Builds of environments, as a test opens them. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import type { BuildSource } from "../../../src/domain/environment/environment-source.ts";
import type { EnvironmentBuildEvent } from "../../../src/machines/environment-build.ts";
import { environmentBuild } from "../../../src/machines/environment-build.ts";
import { EnvironmentBuilds, type NewBuild } from "../../../src/store/ports/projects/environment-builds.ts";
import { NOON } from "./world.ts";

/** A Dockerfile whose build has this key. */
export const sourceOf = (key: string): BuildSource => ({
  dockerfile: ".platform/Dockerfile",
  context: ".platform",
  target: null,
  args: {},
  commit: "c".repeat(40),
  key,
});

/** Opens a build of the key `k1` on `node-1`, unless the fields say otherwise. Null: the project does not exist. */
export const openBuild = Effect.fnUntraced(function* (projectId: string, fields: Partial<NewBuild> = {}) {
  const { open } = yield* EnvironmentBuilds;
  return yield* open({
    id: randomUUID(),
    projectId,
    nodeId: "node-1",
    source: sourceOf("k1"),
    cause: "manifest",
    requestedBy: null,
    now: NOON,
    ...fields,
  });
});

/** Steps a build, one step a millisecond, without its actor. */
export const stepBuild = Effect.fnUntraced(function* (
  id: string,
  events: readonly EnvironmentBuildEvent[],
  from = NOON + 1,
) {
  const { memory } = yield* EnvironmentBuilds;
  for (const [index, event] of events.entries()) {
    const loaded = yield* memory.load(id);
    if (loaded === null) return yield* Effect.die(new Error(`build ${id} does not exist`));
    const { snapshot: before, version, pending } = loaded;
    const { snapshot: after, commands, accepted } = environmentBuild.step(before, event);
    if (!accepted) return yield* Effect.die(new Error(`${event.type} is refused in ${before.state}`));
    const completes = pending[0]?.id ?? null;
    const isOver = event.type === "image.ready" || event.type === "build.failed";
    const change = { id, version, event, before, after, commands, now: from + index };
    yield* memory.save({ ...change, completes: isOver ? completes : null });
  }
});

/** How builds end. */
export const BUILT = {
  type: "image.ready",
  image: { digest: `sha256:${"0".repeat(64)}`, bytes: 10, files: 2 },
} as const satisfies EnvironmentBuildEvent;
export const NOT_BUILT = {
  type: "build.failed",
  failure: { code: "context_missing", path: "Dockerfile" },
} as const satisfies EnvironmentBuildEvent;
export const CANCELLED = { type: "cancel.requested" } as const satisfies EnvironmentBuildEvent;

/** A build that is not the one under way. @returns its id */
export const newBuild = Effect.fnUntraced(function* (projectId: string, fields: Partial<NewBuild> = {}) {
  const opened = yield* openBuild(projectId, fields);
  if (opened?.isNew !== true) return yield* Effect.die("the build is not new");
  return opened.build.id;
});

/** A build that has ended with an event. @returns its id */
export const endedBuild = Effect.fnUntraced(function* (
  projectId: string,
  event: EnvironmentBuildEvent,
  fields: Partial<NewBuild> = {},
) {
  const id = yield* newBuild(projectId, fields);
  yield* stepBuild(id, [event], (fields.now ?? NOON) + 1);
  return id;
});
