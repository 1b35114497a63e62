/** Which images a site removes when they exceed their budget. Its builds are tested with the real builder (test/e2e). */
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { afterEach, beforeEach, expect, it } from "vitest";
import { imageSite } from "../../src/builder/site/images.ts";
import type { AskRegistry } from "../../src/sandbox/images/registry/client.ts";
import { SimulatedBuilds, simulatedBuilder } from "../twins/builder/builder.ts";
import { BuildSite, type SiteEvent } from "../../src/builder/site/port.ts";
import { sourceOf } from "../support/world/environment-builds.ts";
import { buildImageName } from "../../src/domain/environment/image.ts";
import { ImageStore } from "../../src/sandbox/images/store.ts";

let home: string;
let store: ImageStore;
beforeEach(() => {
  used = new Set();
  home = mkdtempSync(path.join(tmpdir(), "image-site-"));
  chmodSync(home, 0o755);
  store = new ImageStore(path.join(home, "images"));
});
afterEach(() => rmSync(home, { recursive: true }));

const LIMITS = {
  seconds: 1,
  memoryBytes: 1,
  diskBytes: 1,
  processes: 1,
  logBytes: 1,
  imageBytes: 1,
  imageFiles: 1,
};
/** Digests that sandboxes on this machine use. */
let used: ReadonlySet<string> = new Set();
/** Long after each import, ms since the epoch. */
const LATER = 8e15;
const site = (imagesBytes: number) =>
  imageSite({
    store,
    directory: path.join(home, "site"),
    limits: LIMITS,
    egressAllow: [],
    imagesBytes,
    inUse: async () => used,
    registry: null,
  }).pipe(Layer.provide(simulatedBuilder()));
const collect = (imagesBytes: number, kept: readonly string[], now = 0) =>
  Effect.runPromise(
    Effect.flatMap(BuildSite, (one) => one.collect({ kept: new Set(kept), gone: new Set(), now })).pipe(
      Effect.provide(site(imagesBytes)),
      Effect.scoped,
    ),
  );

const id = (digit: number): string => `00000000-0000-4000-8000-${String(digit).padStart(12, "0")}`;

/** An image of 10 bytes, last used at this time. */
const add = async (name: string, content: number, usedMs: number) => {
  await store.add(name, async (draft) => {
    await mkdir(path.join(draft, "root"));
    return { digest: digest(content), env: {}, user: "", workdir: "", bytes: 10, files: 1 };
  });
  await store.noteUse(name, usedMs);
};

/** What a builder writes. */
const write = (output: string) =>
  Effect.promise(() => mkdir(path.join(output, "root")).then(() => undefined));

it("looks up the tags from which it builds, and builds from what they stand for now", async () => {
  const digest = `sha256:${"d".repeat(64)}`;
  const asked: string[] = [];
  const askRegistry: AskRegistry = async ({ url }) => {
    asked.push(url.href);
    const isKnown = url.pathname.includes("/known/");
    const headers = isKnown ? { "docker-content-digest": digest } : {};
    const body = { dump: async () => undefined, async *[Symbol.asyncIterator]() {} };
    return { statusCode: isKnown ? 200 : 404, headers, body } as never;
  };
  const layer = imageSite({
    store,
    directory: path.join(home, "site"),
    limits: { ...LIMITS, diskBytes: 1000, imageFiles: 10 },
    egressAllow: ["images.example.com"],
    imagesBytes: 1000,
    inUse: async () => used,
    registry: null,
    askRegistry,
  }).pipe(Layer.provideMerge(simulatedBuilder({ write })));
  const build = Effect.fnUntraced(function* (number: number, dockerfile: string) {
    const content = new TextEncoder().encode(dockerfile);
    const entries = [{ path: "Dockerfile", kind: "file", size: content.length, content }] as const;
    const events: SiteEvent[] = [];
    yield* (yield* BuildSite).build(
      {
        id: id(number),
        projectId: id(9),
        source: { ...sourceOf("k"), dockerfile: "Dockerfile", context: "" },
        secrets: {},
        pull: "missing",
        files: () => Effect.succeed({ entries, next: null }),
      },
      (event) => Effect.sync(() => void events.push(event)),
    );
    const request = (yield* (yield* SimulatedBuilds).requests).at(-1);
    return [request?.pull, events.find(({ kind }) => kind === "bases")];
  });
  await Effect.runPromise(
    Effect.gen(function* () {
      const one = { reference: "images.example.com/known/a:1", digest };
      const other = { reference: "images.example.com/b:latest", digest: null };
      expect(yield* build(1, `FROM ${one.reference}\nCOPY --from=images.example.com/b / /\n`)).toEqual([
        "newer",
        { kind: "bases", bases: [one, other] },
      ]);
      expect(yield* build(2, `FROM ${other.reference}\n`)).toEqual([
        "missing",
        { kind: "bases", bases: [other] },
      ]);
      const before = asked.length;
      expect(yield* build(3, "FROM scratch\n")).toEqual(["missing", undefined]);
      expect(asked).toHaveLength(before);
    }).pipe(Effect.provide(layer), Effect.scoped),
  );
});

it("removes images of builds, the least recently used first, until all are within the budget", async () => {
  await add(buildImageName(id(1)), 1, 3000);
  await add(buildImageName(id(2)), 2, 1000);
  await add(buildImageName(id(3)), 3, 2000);
  expect(await collect(30, [])).toEqual([]);
  expect(await collect(29, [])).toEqual([id(2)]);
  expect(await collect(10, [])).toEqual([id(3)]);
  expect(await store.find(buildImageName(id(1)))).not.toBeNull();
});

it("keeps what must stay and what people named, also above the budget", async () => {
  await add("tools:1", 1, 1000);
  await add(buildImageName(id(2)), 2, 2000);
  await add(buildImageName(id(3)), 3, 3000);
  expect(await collect(0, [id(2)])).toEqual([id(3)]);
  expect((await store.list()).map(({ name }) => name)).toEqual([buildImageName(id(2)), "tools:1"]);
});

it("counts an image with several names once, and frees nothing until the last one goes", async () => {
  await add(buildImageName(id(1)), 1, 1000);
  await add(buildImageName(id(2)), 1, 2000);
  await add(buildImageName(id(3)), 3, 3000);
  expect(await collect(20, [])).toEqual([]);
  expect(await collect(10, [])).toEqual([id(1), id(2)]);
});

const digest = (content: number) => `sha256:${String(content).repeat(64)}`;
/** The images whose files are on the disk. */
const present = () =>
  readdirSync(store.directory)
    .filter((entry) => entry !== "names")
    .map((entry) => Number(entry["sha256-".length]))
    .toSorted();

it("frees the disk, also of images that lost their name before, and keeps what a sandbox or work under way uses", async () => {
  for (const number of [1, 2, 3, 4]) {
    // eslint-disable-next-line no-await-in-loop -- in this order
    await add(buildImageName(id(number)), number, number * 1000);
  }
  // A new image under the name of a former one.
  await add("tools:1", 5, 9000);
  await add("tools:1", 6, 9000);
  used = new Set([digest(2)]);
  expect(await collect(30, [])).toEqual([id(1), id(2)]);
  expect(present()).toEqual([1, 2, 3, 4, 5, 6]);
  expect(await collect(30, [], LATER)).toEqual([]);
  expect(present()).toEqual([2, 3, 4, 6]);
  // Its sandbox has ended.
  used = new Set();
  await collect(30, [], LATER);
  expect(present()).toEqual([3, 4, 6]);
});
