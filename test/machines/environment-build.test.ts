import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { expect } from "vitest";
import {
  environmentBuild,
  type EnvironmentBuildCommand,
  type EnvironmentBuildEvent,
  environmentBuildMachine,
  type EnvironmentBuildSnapshot,
} from "../../src/machines/environment-build.ts";
import { memoryStore } from "../twins/store/layer.ts";
import { EnvironmentBuilds } from "../../src/store/ports/projects/environment-builds.ts";
import { sourceOf } from "../support/world/environment-builds.ts";
import { makeWorld, NOON } from "../support/world/world.ts";
import { describeModel, everyStep } from "./model.ts";

const image = { digest: `sha256:${"0".repeat(64)}`, bytes: 10, files: 2 };
const failure = { code: "context_missing", path: "Dockerfile" } as const;

const events: EnvironmentBuildEvent[] = [
  { type: "build.begun" },
  { type: "context.read" },
  { type: "steps.done" },
  { type: "image.ready", image },
  { type: "build.failed", failure },
  { type: "cancel.requested" },
];

const isOver = ({ state }: EnvironmentBuildSnapshot): boolean =>
  state === "ready" || state === "failed" || state === "cancelled";

describeModel<EnvironmentBuildSnapshot, EnvironmentBuildEvent, EnvironmentBuildCommand>(
  {
    machine: environmentBuild,
    definition: environmentBuildMachine,
    // Each try counts.
    stopWhen: ({ context }) => context.tries > 2,
    events,
    memory: Effect.gen(function* () {
      const { projectId } = yield* makeWorld(3);
      const { memory, open } = yield* EnvironmentBuilds;
      const id = randomUUID();
      yield* open({
        id,
        projectId,
        nodeId: "node-1",
        source: sourceOf("k1"),
        cause: "manifest",
        requestedBy: null,
        now: NOON,
      });
      return { id, memory };
    }).pipe(Effect.provide(memoryStore, { local: true }), Effect.orDie),
  },
  {
    "V1: a build that is over changes no more": everyStep(({ before, accepted }) => {
      if (isOver(before)) expect(accepted).toBe(false);
    }),
    "V2: ready means that the image is complete, and nothing else does": everyStep(
      ({ event, accepted, snapshot }) => {
        expect(snapshot.context.image).toEqual(snapshot.state === "ready" ? image : null);
        if (accepted && snapshot.state === "ready") expect(event.type).toBe("image.ready");
      },
    ),
    "V1: a build that ended without an image has the reason": everyStep(
      ({ snapshot: { state, context } }) => {
        const reason = state === "failed" ? failure : state === "cancelled" ? { code: "cancelled" } : null;
        expect(context.failure).toEqual(reason);
      },
    ),
    "V3: each try is counted, and begins at the start": everyStep(({ before, event, accepted, snapshot }) => {
      const isTry = event.type === "build.begun" && accepted;
      expect(snapshot.context.tries).toBe(before.context.tries + Number(isTry));
      if (isTry) expect(snapshot.state).toBe("resolving");
    }),
    "V4: a cancelled build is ended on its node in the same step, and only that": everyStep(
      ({ event, accepted, commands }) => {
        const isCancelled = event.type === "cancel.requested" && accepted;
        expect(commands).toEqual(isCancelled ? [{ type: "endBuild" }] : []);
      },
    ),
  },
);
