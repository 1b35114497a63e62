/** Builds with a million files, and with directories that are deeper than any path. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { manyEmptyFiles } from "../support/machine/tars.ts";
import { BASE, makeNeighbour, missing, openRealBuilder, type RealBuilder } from "./real-builder.ts";

const MIB = 1024 * 1024;
const MILLION = 1_000_000;
const LEVELS = 4096;

describe.skipIf(missing !== "")(`large images with buildah ${missing}`, () => {
  let real: RealBuilder;
  let neighbour: () => Promise<string>;
  let neighbours = "";
  beforeAll(async () => {
    real = await openRealBuilder();
    neighbour = makeNeighbour(real);
    neighbours = await neighbour();
  });
  afterAll(() => real.close());

  const limits = { seconds: 1200, diskBytes: 4096 * MIB, memoryBytes: 2048 * MIB };

  it("ends a build with a million files at its limit of files [E26]", async () => {
    const built = await real.build(
      { Dockerfile: "FROM scratch\nADD many.tar.gz /\n", "many.tar.gz": await manyEmptyFiles(MILLION) },
      { limits: { ...limits, imageFiles: MILLION / 2 } },
    );
    expect(built.failure).toEqual({ code: "too_large", what: "files", limit: MILLION / 2 });
    expect(built.image).toBeNull();
    expect(await real.leftovers(built.request)).toEqual([]);
    expect(await neighbour()).toBe(neighbours);
  });

  it("refuses directories that are 4,096 levels deep, and removes them [E26]", async () => {
    // Each step goes down by a relative path, which the kernel does not limit.
    const deep = `i=0; while [ $i -lt ${LEVELS} ]; do mkdir d && cd -P d || exit 9; i=$((i+1)); done; echo bottom > file`;
    const built = await real.build({ Dockerfile: `${BASE}RUN ${deep}\n` }, { limits });
    expect(built.failure).toEqual({ code: "too_large", what: "path", limit: LEVELS });
    expect(await real.leftovers(built.request)).toEqual([]);
    expect(existsSync(join(real.options.directory, "builds", built.request.id))).toBe(false);
    expect(await neighbour()).toBe(neighbours);
  });
});
