import * as Schema from "effect/Schema";
import { expect, test } from "vitest";
import {
  BuildFailure,
  describeBuildFailure,
  mayPass,
} from "../../../src/domain/environment/build-failure.ts";

const place = { step: 2, line: 5, exit: 1, tail: "" };

const FAILURES: readonly (readonly [BuildFailure, string, boolean])[] = [
  [{ code: "syntax", line: 3, problem: "Unknown instruction FORM" }, "line 3 of the Dockerfile", false],
  [{ code: "step_failed", ...place }, "step 2 on line 5 failed with exit code 1", false],
  [{ code: "step_failed", ...place, exit: null }, "step 2 on line 5 failed", false],
  [
    { code: "egress_denied", host: "a.example", ...place },
    "after the egress proxy refused access to a.example",
    false,
  ],
  [{ code: "base_unavailable", reference: "debian:12", line: 1, tail: "" }, "debian:12", true],
  [{ code: "context_missing", path: "x/Dockerfile" }, "x/Dockerfile", false],
  [{ code: "too_large", what: "image", limit: 9 * 1024 ** 2 }, "larger than 9 MiB", false],
  [{ code: "too_large", what: "files", limit: 9 }, "more than 9 files", false],
  [{ code: "out_of_memory", limit: 9 * 1024 ** 2 }, "9 MiB of memory", false],
  [{ code: "timeout", seconds: 60 }, "60 seconds", true],
  [{ code: "builder_unavailable", problem: "install buildah" }, "install buildah", true],
  [{ code: "repository_unavailable", message: "no answer" }, "no answer", true],
  [{ code: "interrupted", times: 3 }, "3 times", true],
  [{ code: "cancelled" }, "cancelled", true],
];

test.each(FAILURES)("%j has a sentence, and may pass or not", (failure, words, passes) => {
  expect(describeBuildFailure(failure)).toContain(words);
  expect(mayPass(failure)).toBe(passes);
  expect(Schema.decodeUnknownSync(BuildFailure)(structuredClone(failure))).toEqual(failure);
});
