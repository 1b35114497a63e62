/** Why the build of an environment failed: for programs by its code, and for people in one sentence. */
import * as Schema from "effect/Schema";
import { cutText } from "../text.ts";
import { quantity } from "../counted.ts";

/** How much of a failed step's output a failure has, in bytes. */
export const TAIL_BYTES = 64 * 1024;

/** The step at which a build failed. */
const Place = {
  step: Schema.Int,
  line: Schema.Int,
  /** The exit code of the step's command. Null if the step runs none, or a signal ended it. */
  exit: Schema.NullOr(Schema.Int),
  /** The end of the step's output. */
  tail: Schema.String,
};

const failureCase = <Code extends string, Fields extends Schema.Struct.Fields>(code: Code, fields: Fields) =>
  Schema.Struct({ code: Schema.Literal(code), ...fields });

export const BuildFailure = Schema.Union([
  failureCase("syntax", { line: Schema.Int, problem: Schema.String }),
  failureCase("step_failed", Place),
  failureCase("base_unavailable", { reference: Schema.String, line: Schema.Int, tail: Schema.String }),
  /** The context or its Dockerfile is missing. */
  failureCase("context_missing", { path: Schema.String }),
  /** A step failed after the egress proxy had refused it a host. */
  failureCase("egress_denied", { host: Schema.String, ...Place }),
  failureCase("too_large", {
    what: Schema.Literals(["disk", "files", "image", "log", "path", "processes"]),
    limit: Schema.Int,
  }),
  /** The manifest gives the build a secret that has no value. */
  failureCase("secret_missing", { name: Schema.String }),
  /** The image was built, but no sandbox can use it. */
  failureCase("image_unusable", { problem: Schema.String }),
  failureCase("out_of_memory", { limit: Schema.Int }),
  failureCase("timeout", { seconds: Schema.Int }),
  /** This node cannot build images. `problem` says why, for example what is missing. */
  failureCase("builder_unavailable", { problem: Schema.String }),
  /** The project's files could not be read. */
  failureCase("repository_unavailable", { message: Schema.String }),
  /** The service ended during each try. */
  failureCase("interrupted", { times: Schema.Int }),
  /** Somebody ended the build, or the service did. */
  failureCase("cancelled", {}),
]);
export type BuildFailure = typeof BuildFailure.Type;
export type BuildFailureCode = BuildFailure["code"];

/**
 * Failures that may pass by themselves. The next session that needs the environment starts another build. After any
 * other failure the same files would fail again, so only people start another one.
 */
const PASSING: ReadonlySet<BuildFailureCode> = new Set([
  "base_unavailable",
  "secret_missing",
  "timeout",
  "builder_unavailable",
  "repository_unavailable",
  "interrupted",
  "cancelled",
]);

export const mayPass = ({ code }: BuildFailure): boolean => PASSING.has(code);

const WORDS_MAX = 300;
/** The builder's own last line, which says why. */
const lastWords = (tail: string): string => {
  const line = tail.trimEnd().split("\n").at(-1)?.trim() ?? "";
  return line === "" ? "" : `: ${cutText(line, WORDS_MAX)}`;
};

const mebibytes = (bytes: number): string => `${Math.floor(bytes / 1024 ** 2)} MiB`;

const TOO_LARGE: Readonly<
  Record<Extract<BuildFailure, { readonly code: "too_large" }>["what"], (limit: number) => string>
> = {
  disk: (limit) => `the build wrote more than ${mebibytes(limit)} to the disk`,
  image: (limit) => `the image is larger than ${mebibytes(limit)}`,
  log: (limit) => `the build printed more than ${mebibytes(limit)}`,
  files: (limit) => `the build has more than ${limit} files`,
  processes: (limit) => `the build started more than ${limit} processes`,
  path: (limit) => `a path is longer than ${limit} bytes`,
};

/** A failure as a part of a sentence, without a full stop. */
export const describeBuildFailure = (failure: BuildFailure): string => {
  switch (failure.code) {
    case "syntax":
      return `line ${failure.line} of the Dockerfile: ${failure.problem}`;
    case "step_failed":
      return `step ${failure.step} on line ${failure.line} failed${failure.exit === null ? "" : ` with exit code ${failure.exit}`}`;
    case "base_unavailable":
      return `the base image ${failure.reference} is not available${lastWords(failure.tail)}`;
    case "context_missing":
      return `the build needs ${failure.path}, which is not in the repository or not in the context`;
    case "egress_denied":
      return `step ${failure.step} on line ${failure.line} failed after the egress proxy refused access to ${failure.host}`;
    case "too_large":
      return TOO_LARGE[failure.what](failure.limit);
    case "secret_missing":
      return `the secret ${failure.name} has no value`;
    case "image_unusable":
      return failure.problem;
    case "out_of_memory":
      return `the build used more than ${mebibytes(failure.limit)} of memory`;
    case "timeout":
      return `the build took longer than ${quantity(failure.seconds, "second")}`;
    case "builder_unavailable":
      return `this node cannot build images: ${failure.problem}`;
    case "repository_unavailable":
      return `the project's files could not be read: ${failure.message}`;
    case "interrupted":
      return `the service ended ${quantity(failure.times, "time")} during the build`;
    case "cancelled":
      return "the build was cancelled";
  }
};
