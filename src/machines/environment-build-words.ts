/** The sentences of the builds of environments (words.ts). */
import type {
  EnvironmentBuildCommand,
  EnvironmentBuildEvent,
  EnvironmentBuildState,
} from "./environment-build.ts";
import type { Words } from "./word-types.ts";

const outcomes = {
  "image.ready": "When the image is complete, sessions can use it.",
  "build.failed": "If the build fails, the reason is kept.",
  "cancel.requested": "A person can cancel the build.",
} as const;
const begunAgain = "If the service ends meanwhile, the next one begins the build again.";

export const environmentBuildWords: Words<
  EnvironmentBuildState,
  EnvironmentBuildEvent,
  EnvironmentBuildCommand
> = {
  states: {
    queued: "The build waits for its place on the node.",
    resolving: "The files of the commit are read.",
    building: "The steps of the Dockerfile run.",
    exporting: "The image's files are copied.",
    ready: "The image is ready.",
    failed: "The build has failed.",
    cancelled: "The build was cancelled.",
  },
  events: {
    created: "The build was ordered.",
    "build.begun": "The build got its place and began.",
    "context.read": "The files of the commit were read.",
    "steps.done": "The last step was done.",
    "image.ready": "The image was complete.",
    "build.failed": "The build failed.",
    "cancel.requested": "Somebody cancelled the build.",
  },
  next: {
    queued: { "build.begun": "When it has a place on the node, the build begins.", ...outcomes },
    resolving: {
      "build.begun": begunAgain,
      "context.read": "When the files of the commit are read, the steps run.",
      ...outcomes,
    },
    building: {
      "build.begun": begunAgain,
      "steps.done": "When the last step is done, the image's files are copied.",
      ...outcomes,
    },
    exporting: { "build.begun": begunAgain, ...outcomes },
    ready: {},
    failed: {},
    cancelled: {},
  },
  commands: {
    buildImage: "build the image",
    endBuild: "end the build on its node",
  },
};
