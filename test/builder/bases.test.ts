/** From which tags a Dockerfile builds. */
import { expect, it } from "vitest";
import { namedBases, BASES_MAX } from "../../src/builder/bases.ts";
import { parseDockerfile } from "../../src/domain/environment/dockerfile.ts";

const bases = (
  source: string,
  { target = null, args = {} }: { target?: string | null; args?: Record<string, string> } = {},
): readonly string[] => {
  const parsed = parseDockerfile(source);
  if (parsed.kind === "error") throw new Error(parsed.problem);
  return namedBases(parsed, { target, args });
};

it.each([
  ["FROM debian:13\n", ["docker.io/library/debian:13"]],
  ["FROM debian\n", ["docker.io/library/debian:latest"]],
  ["FROM team/tools\n", ["docker.io/team/tools:latest"]],
  ["FROM --platform=linux/amd64 images.example.com:5000/a/b:1 AS x\n", ["images.example.com:5000/a/b:1"]],
  ["FROM scratch\nADD root.tar /\n", []],
  // A digest always stands for the same image.
  [`FROM images.example.com/a:1@sha256:${"0".repeat(64)}\n`, []],
  ["FROM oci-archive:image.tar\n", []],
  ["FROM ./layout\n", []],
  ["FROM docker://images.example.com/a:1\n", ["images.example.com/a:1"]],
  ["FROM images.example.com/a:1\nFROM images.example.com/a:1\n", ["images.example.com/a:1"]],
  // Stages, by name in any case and by number.
  [
    "FROM images.example.com/a:1 AS Tools\nFROM tools\nCOPY --from=0 /x /x\nCOPY --from=TOOLS /x /y\n",
    ["images.example.com/a:1"],
  ],
  ["FROM scratch\nCOPY --chown=1 --from=images.example.com/b:2 /x /x\n", ["images.example.com/b:2"]],
  [
    "FROM scratch\nRUN --mount=type=bind,from=images.example.com/c:3,target=/c --mount=type=cache,target=/d true\n",
    ["images.example.com/c:3"],
  ],
])("reads %j", (source, expected) => {
  expect(bases(source)).toEqual(expected);
});

it("replaces the arguments before the first FROM, by given values and defaults", () => {
  const source = `ARG HOST=images.example.com
ARG TAG="\${VERSION:-1}" EMPTY=
FROM $HOST/a:\${TAG}
FROM \${OTHER:-images.example.com/b}:\${EMPTY:-2}\${EMPTY:+no}
`;
  expect(bases(source)).toEqual(["images.example.com/a:1", "images.example.com/b:2"]);
  expect(bases(source, { args: { TAG: "9", OTHER: "not declared" } })).toEqual([
    "images.example.com/a:9",
    "images.example.com/b:2",
  ]);
});

it("leaves out a reference that depends on what only the builder knows", () => {
  expect(
    bases("FROM images.example.com/$TARGETARCH/a:1\nARG LATE=1\nFROM images.example.com/b:$LATE\n"),
  ).toEqual([]);
});

it("stops behind the stage that is built", () => {
  const source = "FROM images.example.com/a:1 AS one\nFROM images.example.com/b:1 AS two\n";
  expect(bases(source, { target: "ONE" })).toEqual(["images.example.com/a:1"]);
  expect(bases(source, { target: "unknown" })).toHaveLength(2);
});

it("has a limit", () => {
  const many = Array.from({ length: BASES_MAX + 5 }, (_, at) => `FROM images.example.com/a:${at}\n`).join("");
  expect(bases(many)).toHaveLength(BASES_MAX);
});
