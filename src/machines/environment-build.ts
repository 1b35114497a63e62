/**
 * The life of one build of a project's environment (docs/contract/api.md 11). A build turns a Dockerfile at one commit
 * into an image on one node.
 *
 *  V1 The last three states are final. A build that has ended is never begun again: the next try is another build.
 *  V2 `ready` is entered after the image is complete on the node's disk.
 *  V3 Each try begins at the start. If the service ends during a build, the next life begins it again, and counts.
 *  V4 A cancelled build is ended on its node in the same step. A result that comes later changes nothing.
 */
import { assign, setup } from "xstate";
import type { BuildFailure } from "../domain/environment/build-failure.ts";
import { pureMachine, type Snapshot } from "./step.ts";
import type { Words } from "./word-types.ts";

/** The image that a build made. */
export interface BuiltImage {
  /** `sha256:…` of the image's configuration. */
  readonly digest: string;
  /** The size of its files. */
  readonly bytes: number;
  /** Files, directories and links. */
  readonly files: number;
}

export interface EnvironmentBuildContext {
  /** How often the build was begun. */
  readonly tries: number;
  /** Set in `ready`. */
  readonly image: BuiltImage | null;
  /** Set in `failed` and `cancelled`. */
  readonly failure: BuildFailure | null;
}
export type EnvironmentBuildState =
  | "queued"
  | "resolving"
  | "building"
  | "exporting"
  | "ready"
  | "failed"
  | "cancelled";
export type EnvironmentBuildSnapshot = Snapshot<EnvironmentBuildState, EnvironmentBuildContext>;

export type EnvironmentBuildEvent =
  /** It has its place on the node. */
  | { readonly type: "build.begun" }
  /** The commit's files are written, and the steps begin. */
  | { readonly type: "context.read" }
  /** The last step is done. The image's files are copied. */
  | { readonly type: "steps.done" }
  | { readonly type: "image.ready"; readonly image: BuiltImage }
  | { readonly type: "build.failed"; readonly failure: BuildFailure }
  | { readonly type: "cancel.requested" };

export type EnvironmentBuildCommand =
  /** Waits for a place on the node, and builds. Ends as image.ready or build.failed. */
  | { readonly type: "buildImage" }
  /** Ends what runs of the build, on its node. */
  | { readonly type: "endBuild" };

const CANCELLED: BuildFailure = { code: "cancelled" };

const outcomes = {
  "image.ready": { target: "ready" as const, actions: "keepImage" as const },
  "build.failed": { target: "failed" as const, actions: "keepFailure" as const },
  "cancel.requested": { target: "cancelled" as const, actions: ["cancel" as const, "endBuild" as const] },
};
const begin = { target: "resolving" as const, actions: "countTry" as const };

const outcomeWords = {
  "image.ready": "When the image is complete, sessions can use it.",
  "build.failed": "If the build fails, the reason is kept.",
  "cancel.requested": "A person can cancel the build.",
} as const;
const begunAgainWords = "If the service ends meanwhile, the next one begins the build again.";

export const environmentBuildMachine = setup({
  types: {
    context: {} as EnvironmentBuildContext,
    events: {} as EnvironmentBuildEvent,
    meta: {} as Words<EnvironmentBuildSnapshot["state"], EnvironmentBuildEvent, EnvironmentBuildCommand>,
  },
  actions: {
    buildImage: () => undefined,
    endBuild: () => undefined,
    countTry: assign({ tries: ({ context }) => context.tries + 1 }),
    keepImage: assign(({ event }) => (event.type === "image.ready" ? { image: event.image } : {})),
    keepFailure: assign(({ event }) => (event.type === "build.failed" ? { failure: event.failure } : {})),
    cancel: assign({ failure: CANCELLED }),
  },
}).createMachine({
  id: "environment-build",
  meta: {
    events: {
      created: "The build was ordered.",
      "build.begun": "The build got its place and began.",
      "context.read": "The files of the commit were read.",
      "steps.done": "The last step was done.",
      "image.ready": "The image was complete.",
      "build.failed": "The build failed.",
      "cancel.requested": "Somebody cancelled the build.",
    },
    commands: {
      buildImage: "build the image",
      endBuild: "end the build on its node",
    },
  },
  context: { tries: 0, image: null, failure: null },
  initial: "queued",
  entry: "buildImage",
  states: {
    queued: {
      description: "The build waits for its place on the node.",
      meta: {
        next: { "build.begun": "When it has a place on the node, the build begins.", ...outcomeWords },
      },
      on: { "build.begun": begin, ...outcomes },
    },
    resolving: {
      description: "The files of the commit are read.",
      meta: {
        next: {
          "build.begun": begunAgainWords,
          "context.read": "When the files of the commit are read, the steps run.",
          ...outcomeWords,
        },
      },
      on: { "build.begun": { actions: "countTry" }, "context.read": { target: "building" }, ...outcomes },
    },
    building: {
      description: "The steps of the Dockerfile run.",
      meta: {
        next: {
          "build.begun": begunAgainWords,
          "steps.done": "When the last step is done, the image's files are copied.",
          ...outcomeWords,
        },
      },
      on: { "build.begun": begin, "steps.done": { target: "exporting" }, ...outcomes },
    },
    exporting: {
      description: "The image's files are copied.",
      meta: { next: { "build.begun": begunAgainWords, ...outcomeWords } },
      on: { "build.begun": begin, ...outcomes },
    },
    ready: { description: "The image is ready.", type: "final" },
    failed: { description: "The build has failed.", type: "final" },
    cancelled: { description: "The build was cancelled.", type: "final" },
  },
});

/** `start({})` is a new build's first snapshot. After that, only `step` changes the state. */
export const environmentBuild = pureMachine<
  EnvironmentBuildSnapshot,
  EnvironmentBuildEvent,
  EnvironmentBuildCommand,
  Record<string, never>
>(environmentBuildMachine);

/** States in which a build is not over. */
export const LIVE_BUILD_STATES = ["queued", "resolving", "building", "exporting"] as const;

/** Whether a build in this state is not over. */
export const isLiveBuildState = (state: EnvironmentBuildState): boolean =>
  (LIVE_BUILD_STATES as readonly string[]).includes(state);
