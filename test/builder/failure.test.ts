/** Failures are told from the words of buildah 1.28. */
import { describe, expect, it } from "vitest";
import { classifyFailure } from "../../src/builder/buildah/failure.ts";
import { BuildOutput } from "../../src/builder/buildah/output.ts";
import { parseDockerfile } from "../../src/domain/environment/dockerfile.ts";

const failed = (last: string, said: string, rest: { code?: number; refused?: readonly string[] } = {}) => {
  const parsed = parseDockerfile(`FROM base.example/image:1\n${last}\n`);
  if (parsed.kind === "error") throw new Error(parsed.problem);
  const output = new BuildOutput(parsed.stages, () => undefined);
  output.write(Buffer.from(`STEP 1/2: FROM base.example/image:1\nSTEP 2/2: ${last}\n${said}\n`));
  return classifyFailure({
    code: rest.code ?? 125,
    output,
    refused: rest.refused ?? [],
    diskBytes: 1000,
    stages: parsed.stages,
  });
};

describe("a failure of buildah", () => {
  it("is the step's, with its exit code", () => {
    const said = 'subprocess exited with status 3\nError: building at STEP "RUN x": exit status 3';
    expect(failed("RUN x", said, { code: 3 })).toMatchObject({ code: "step_failed", line: 2, exit: 3 });
    const newer = 'Error: building at STEP "RUN x": while running runtime: exit status 125';
    expect(failed("RUN x", newer)).toMatchObject({ code: "step_failed", exit: 125 });
  });

  it("is the limit's if a file became too large", () => {
    const layer =
      "Error: committing container for step {}: initializing source containers-storage:working-container: " +
      'storing layer "2eb0" to file: io: read/write on closed pipe';
    for (const said of [layer, "subprocess exited on file size limit exceeded\nError: x: exit status 1"])
      expect(failed("ADD a /", said)).toEqual({ code: "too_large", what: "disk", limit: 1000 });
  });

  it.each([
    [
      "ADD a.tar /",
      'Error: building at STEP "ADD a.tar /": storing "a.tar": copier: put: error setting ownership of "/x": potentially insufficient UIDs or GIDs available in user namespace (requested 1407182137:1407182137 for /x): Check /etc/subuid and /etc/subgid: lchown /x: invalid argument',
      125,
    ],
    [
      "RUN chown 1407182137 /x",
      "chown: changing ownership of '/x': Invalid argument\nError: x: exit status 1",
      1,
    ],
  ])("ends with what owners a build has, if a file has another one: %s", (instruction, said, code) => {
    expect(failed(instruction, said, { code })).toMatchObject({
      code: "step_failed",
      tail: expect.stringMatching(/users and groups from 0 to 65535 only.*\n$/),
    });
  });

  it("is the base image's if another image is missing", () => {
    const said = "Error: COPY --from=other.example/image: no stage or image found with that name";
    expect(failed("COPY --from=other.example/image / /", said)).toMatchObject({
      code: "base_unavailable",
      reference: "other.example/image",
      line: 2,
    });
  });

  it("is the refused host's, whatever the step says of it", () => {
    expect(
      failed("RUN x", "Error: exit status 1", { code: 1, refused: ["a.example", "b.example"] }),
    ).toMatchObject({ code: "egress_denied", host: "a.example", exit: 1 });
  });

  it("is the path's if a name is too long", () => {
    expect(failed("ADD a /", "Error: lstat /x: file name too long")).toMatchObject({ what: "path" });
  });
});
