import { describe, expect, it } from "vitest";
import { BuildOutput, plain, textTail } from "../../src/builder/buildah/output.ts";
import { parseDockerfile } from "../../src/domain/environment/dockerfile.ts";
import type { BuildEvent } from "../../src/builder/port.ts";

const read = (dockerfile: string, chunks: readonly (string | Uint8Array)[]) => {
  const parsed = parseDockerfile(dockerfile);
  if (parsed.kind === "error") throw new Error(parsed.problem);
  const events: BuildEvent[] = [];
  const output = new BuildOutput(parsed.stages, (event) => events.push(event));
  for (const chunk of chunks) output.write(Buffer.from(chunk));
  output.end();
  return { output, events };
};
const steps = (events: readonly BuildEvent[]): readonly string[] =>
  events.flatMap((event) => (event.kind === "step" ? [`${event.step}:${event.line}`] : []));

describe("buildah's output", () => {
  it("counts steps over all stages, wherever chunks are cut", () => {
    const dockerfile = "FROM a AS x\nRUN one\n\nFROM b\nRUN two\n";
    const text =
      "[1/2] STEP 1/2: FROM a AS x\n[1/2] STEP 2/2: RUN one\nsaid\n[2/2] STEP 1/2: FROM b\n[2/2] STEP 2/2: RUN two\n";
    for (const size of [1, 7, 1000]) {
      const chunks = Array.from({ length: Math.ceil(text.length / size) }, (_, index) =>
        text.slice(index * size, (index + 1) * size),
      );
      const { events } = read(dockerfile, chunks);
      expect(steps(events)).toEqual(["1:1", "2:2", "3:4", "4:5"]);
    }
  });

  it("gives steps that a base image adds the line of FROM", () => {
    const { events } = read("FROM a\nRUN mine\n", [
      "STEP 1/4: FROM a\nSTEP 2/4: COPY . /app\nSTEP 3/4: RUN theirs\nSTEP 4/4: RUN mine\n",
    ]);
    expect(steps(events)).toEqual(["1:1", "2:1", "3:1", "4:2"]);
  });

  it("takes a line as a step only if it comes next", () => {
    const { events, output } = read("FROM a\nRUN x\nRUN y\n", [
      "STEP 2/3: RUN x\nSTEP 1/3: FROM a\nSTEP 3/3: RUN y\nSTEP 2/3: COPY z\n[2/9] STEP 1/1: FROM q\nSTEP 2/3: RUN x\n",
    ]);
    expect(steps(events)).toEqual(["1:1", "2:2"]);
    expect(output.current?.instruction.line).toBe(2);
  });

  it("keeps the tail of the current step alone", () => {
    const { output } = read("FROM a\nRUN x\n", ["STEP 1/2: FROM a\nfirst\nSTEP 2/2: RUN x\nsecond\nthird"]);
    expect(output.tail).toBe("second\nthird\n");
  });

  it("is plain text, and shows of a progress bar its last state", () => {
    expect(plain("10 %\r50 %\r100 %\r")).toBe("100 %");
    expect(plain("\u001b[31mred\u001b[0m\u0007\u0000\u202Etext\tend")).toBe("redtext\tend");
    const { events } = read("FROM a\n", [Buffer.from([0xe2, 0x82]), Buffer.from([0xac, 0x0a, 0xff, 0x0a])]);
    expect(events).toEqual([{ kind: "log", text: "€\n\uFFFD\n" }]);
  });

  it("cuts a line that never ends", () => {
    const { events } = read(
      "FROM a\n",
      Array.from({ length: 10 }, () => "x".repeat(5000)),
    );
    const longest = Math.max(...events.map((event) => (event.kind === "log" ? event.text.length : 0)));
    expect(longest).toBeLessThan(9000);
  });
});

describe("a tail", () => {
  it("is bounded in bytes and begins with a line", () => {
    expect(textTail("one\ntwo\nthree\n", 8)).toBe("three\n");
    expect(textTail("short", 10)).toBe("short");
    expect(Buffer.byteLength(textTail("€".repeat(100), 10))).toBeLessThanOrEqual(10);
    expect(textTail("€".repeat(100), 10)).toBe("€€€");
  });
});
