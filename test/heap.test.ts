import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const PROGRAM = fileURLToPath(new URL("support/programs/buffers-main.ts", import.meta.url));

const collections = (mode: "on" | "off"): number =>
  (
    JSON.parse(execFileSync(process.execPath, [PROGRAM, mode], { encoding: "utf8" })) as {
      readonly collections: number;
    }
  ).collections;

it.skipIf(!process.versions.v8.startsWith("13."))(
  `counts buffers with the heap, and so seldom collects because of them (V8 13; here ${process.versions.v8})`,
  () => {
    expect(collections("on")).toBeLessThan(collections("off") / 2);
  },
);
