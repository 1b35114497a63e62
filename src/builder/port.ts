/**
 * The port to builders of environments: a context directory and a Dockerfile become an unpacked image on this machine's
 * disk. A builder knows no project, no database and no session. Its caller decides what is built and when, and keeps the
 * result.
 *
 * Invariants of every builder (test/conformance/sandboxes/builder.ts):
 *  B1 The last event of a build that succeeds is `built`. Then `output` has `root/` and `image.json`, and nothing else.
 *  B2 A build that fails or is interrupted leaves nothing: no process, mount or directory, and an empty `output`.
 *  B3 The context, the Dockerfile and everything that they start are untrusted. They read and write nothing outside the
 *     build's own sandbox and its project's layer store, and reach only the allowed hosts.
 *  B4 Texts of events and failures are plain: no control characters except line breaks and tabs, and bounded in size.
 */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import type * as Stream from "effect/Stream";
import { BuildFailure, describeBuildFailure } from "../domain/environment/build-failure.ts";

/** What one build may use. */
export interface BuildLimits {
  /** From the start of the build, without waiting for another build of the same layer store. */
  readonly seconds: number;
  /** Memory of all processes together. */
  readonly memoryBytes: number;
  /** The growth of everything that the build writes: context, layers, temporary files and the result. */
  readonly diskBytes: number;
  /** Processes and threads. A build needs about 60 for the builder itself. */
  readonly processes: number;
  /** The output of all steps together. */
  readonly logBytes: number;
  /** The image's files together, holes included. */
  readonly imageBytes: number;
  /** The image's files and directories. */
  readonly imageFiles: number;
}

export interface BuildRequest {
  /** A lower-case UUID. */
  readonly id: string;
  /** The files of a commit, unchanged: no symbolic link in it has been followed. Only the service writes here. */
  readonly contextDirectory: string;
  /** The Dockerfile's path within the context. */
  readonly dockerfile: string;
  /** The stage to build. Null means the last one. */
  readonly target: string | null;
  readonly args: Readonly<Record<string, string>>;
  /** Values that a step can mount as files (`RUN --mount=type=secret,id=NAME`), by name. They are in no layer and no image. */
  readonly secrets: Readonly<Record<string, string>>;
  /** Builds with the same key share layers, and trust each other: use one key for each project. */
  readonly layerStore: string;
  /** Hosts that the build may reach (sandbox/egress-policy.ts): names, `*.example.org`, or `*`. */
  readonly egressAllow: readonly string[];
  /** `newer`: base images that are here already are compared with their registries. */
  readonly pull: "missing" | "newer";
  readonly limits: BuildLimits;
  /** An empty directory on the images' file system. */
  readonly output: string;
}

/** The configuration of an image, as far as a sandbox uses it. */
const ImageConfig = Schema.Struct({
  env: Schema.Record(Schema.String, Schema.String),
  /** As the Dockerfile has it: a name or a number, with or without a group. Empty: root. */
  user: Schema.String,
  /** Empty: the root directory. */
  workdir: Schema.String,
  /** The size of all files together, holes included. */
  bytes: Schema.Int,
  /** How many files and directories `root/` has. */
  files: Schema.Int,
});
export type ImageConfig = typeof ImageConfig.Type;

/** The content of `image.json`. The digest is that of the image's configuration (decision 0053). */
export const ImageFile = Schema.Struct({
  version: Schema.Literal(1),
  digest: Schema.String.check(Schema.isPattern(/^sha256:[0-9a-f]{64}$/)),
  ...ImageConfig.fields,
});
export type ImageFile = typeof ImageFile.Type;

export type BuildEvent =
  /** A step begins. Steps count from 1 over all stages, in the order in which they run. */
  | {
      readonly kind: "step";
      readonly step: number;
      /** The line of the Dockerfile on which the instruction begins. */
      readonly line: number;
      readonly instruction: string;
    }
  /** Output of the step, or of the builder: whole lines. */
  | { readonly kind: "log"; readonly text: string }
  /** The last step is done. The image's files are copied. */
  | { readonly kind: "exporting" }
  | { readonly kind: "built"; readonly digest: string; readonly config: ImageConfig };

export class BuildError extends Schema.TaggedError<BuildError>()("BuildError", { failure: BuildFailure }) {
  /** The failure's code, for callers that need no more. */
  get code(): BuildFailure["code"] {
    return this.failure.code;
  }

  override get message(): string {
    return describeBuildFailure(this.failure);
  }
}

export interface BuilderReport {
  readonly builder: string;
  /** False if no image could be built. `problem` gives the reason and the remedy. */
  readonly usable: boolean;
  readonly problem: string | null;
  /** A limit of this builder's version, as part of a sentence. */
  readonly note?: string;
}

export class EnvironmentBuilder extends Context.Service<
  EnvironmentBuilder,
  {
    /** A stable name, e.g. `buildah`. */
    readonly name: string;
    /**
     * Builds an image. Interrupt the stream to cancel the build; the interruption ends when it has left no trace (B2).
     */
    readonly build: (request: BuildRequest) => Stream.Stream<BuildEvent, BuildError>;
    /** Builds one small image, and removes it. */
    readonly doctor: Effect.Effect<BuilderReport>;
  }
>()("platform/builder/EnvironmentBuilder") {}
