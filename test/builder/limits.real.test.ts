/** A build that wants too much ends with the limit that it exceeded, and harms no other build. */
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { BuildFailure } from "../../src/domain/environment/build-failure.ts";
import type { BuildLimits } from "../../src/builder/port.ts";
import { BASE, makeNeighbour, missing, openRealBuilder, type RealBuilder } from "./real-builder.ts";
import { tarOf } from "../support/machine/tars.ts";
import { deepTest, onlyDeep } from "../support/vitest/rings.ts";

const MIB = 1024 * 1024;
const zeros = Buffer.alloc(6 * MIB);

interface Bomb {
  readonly name: string;
  readonly files: Readonly<Record<string, string | Uint8Array>>;
  readonly limits: Partial<BuildLimits>;
  readonly failure: Partial<BuildFailure>;
}

/** Limits just above what an honest build of the base needs. */
const BOMBS: readonly Bomb[] = [
  {
    name: "a sparse file of 50 GB",
    files: { Dockerfile: `${BASE}RUN truncate -s 50G /big\n` },
    limits: { diskBytes: 60 * MIB },
    failure: { code: "too_large", what: "disk", limit: 60 * MIB },
  },
  {
    name: "many sparse files",
    files: { Dockerfile: `${BASE}RUN for i in 1 2 3 4 5 6 7 8; do truncate -s 16M /big$i; done\n` },
    limits: { diskBytes: 1024 * MIB, imageBytes: 64 * MIB },
    failure: { code: "too_large", what: "image", limit: 64 * MIB },
  },
  {
    name: "a compressed tar that is a hundred times larger",
    files: {
      Dockerfile: "FROM scratch\nADD bomb.tar.gz /\n",
      "bomb.tar.gz": gzipSync(
        tarOf(Array.from({ length: 40 }, (_, index) => ({ name: `zeros${index}`, content: zeros }))),
      ),
    },
    limits: { diskBytes: 40 * MIB },
    failure: { code: "too_large", what: "disk", limit: 40 * MIB },
  },
  {
    name: "a tar with more files than an image may have",
    files: {
      Dockerfile: "FROM scratch\nADD many.tar /\n",
      "many.tar": tarOf(Array.from({ length: 1500 }, (_, index) => ({ name: `file${index}` }))),
    },
    limits: { imageFiles: 1000 },
    failure: { code: "too_large", what: "files", limit: 1000 },
  },
  {
    name: "files without an end",
    files: {
      Dockerfile: `${BASE}RUN i=0; mkdir /n; while true; do i=$((i+1)); : > /n/$i; done\n`,
    },
    limits: { imageFiles: 1000 },
    failure: { code: "too_large", what: "files", limit: 1000 },
  },
  {
    name: "a file that grows without an end",
    files: {
      Dockerfile: `${BASE}RUN while true; do dd if=/dev/zero bs=1M count=1 2>/dev/null >> /n$((RANDOM % 64)); done\n`,
    },
    limits: { diskBytes: 60 * MIB },
    failure: { code: "too_large", what: "disk", limit: 60 * MIB },
  },
  {
    name: "processes without an end",
    files: { Dockerfile: `${BASE}RUN bomb() { bomb | bomb & }; bomb; sleep 1000\n` },
    limits: { processes: 150 },
    failure: { code: "too_large", what: "processes", limit: 150 },
  },
  {
    name: "memory without an end",
    files: { Dockerfile: `${BASE}RUN dd if=/dev/zero of=/dev/null bs=900M count=1\n` },
    limits: { memoryBytes: 400 * MIB },
    failure: { code: "out_of_memory", limit: 400 * MIB },
  },
  {
    name: "output without an end",
    files: { Dockerfile: `${BASE}RUN yes\n` },
    limits: { logBytes: 100_000 },
    failure: { code: "too_large", what: "log", limit: 100_000 },
  },
  {
    name: "a line without an end",
    files: { Dockerfile: `${BASE}RUN cat /dev/zero\n` },
    limits: { logBytes: 100_000 },
    failure: { code: "too_large", what: "log", limit: 100_000 },
  },
  {
    name: "a command that never ends",
    files: { Dockerfile: `${BASE}RUN trap "" TERM INT HUP; sleep 1000 & sleep 1000\n` },
    limits: { seconds: 8 },
    failure: { code: "timeout", seconds: 8 },
  },
];

describe.skipIf(missing !== "")(`limits of builds with buildah ${missing}`, () => {
  let real: RealBuilder;
  /** Builds in another project. The image is the same each time. */
  let neighbour: () => Promise<string>;
  let neighbours = "";
  beforeAll(async () => {
    real = await openRealBuilder();
    neighbour = makeNeighbour(real);
    neighbours = await neighbour();
  });
  afterAll(() => real.close());

  onlyDeep(() => {
    it.each(BOMBS)(
      "ends $name with its own code, leaves nothing, and harms no next build [E26]",
      async ({ files, limits, failure }) => {
        const built = await real.build(files, { limits });
        expect(built.failure).toEqual(failure);
        expect(built.image).toBeNull();
        expect(await real.leftovers(built.request)).toEqual([]);
        const logged = built.log.length;
        expect(logged).toBeLessThan(200_000);
        expect(await neighbour()).toBe(neighbours);
      },
    );
  });

  deepTest("harms no build beside it [E26]", async () => {
    const bomb = BOMBS.find(({ name }) => name === "processes without an end");
    const honest = { Dockerfile: `${BASE}RUN for i in 1 2 3; do sleep 1; echo alive; done\n` };
    const [bombed, other] = await Promise.all([
      real.build(bomb?.files ?? {}, { layerStore: "bomb", limits: bomb?.limits ?? {} }),
      real.build(honest, { layerStore: "honest" }),
    ]);
    expect(bombed.failure).toEqual(bomb?.failure);
    expect(other.failure).toBeNull();
    expect(other.log).toContain("alive\nalive\nalive\n");
  });

  it("keeps the end of a failed step's output, and only that", async () => {
    const { failure } = await real.build({
      Dockerfile: `${BASE}RUN i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo line $i; done; exit 4\n`,
    });
    expect(failure).toMatchObject({ code: "step_failed", exit: 4 });
    const tail = failure?.code === "step_failed" ? failure.tail : "";
    expect(tail).toContain("line 20000\n");
    expect(tail).toMatch(/^line \d+\n/);
    expect(Buffer.byteLength(tail)).toBeLessThanOrEqual(65_536);
  });

  deepTest("removes a layer store that is too large, and takes the next build all the same", async () => {
    const small = await openRealBuilder({ storeBytes: MIB });
    try {
      const Dockerfile = `${BASE}RUN echo made\n`;
      expect((await small.build({ Dockerfile })).failure).toBeNull();
      const again = await small.build({ Dockerfile });
      expect(again.failure).toBeNull();
      expect(again.log).not.toContain("Using cache");
    } finally {
      await small.close();
    }
  });
});
