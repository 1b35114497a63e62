/** The conformance suite over buildah, and what only real images show. */
import { execFileSync, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { lstat, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Latch from "effect/Latch";
import * as Layer from "effect/Layer";
import * as Stream from "effect/Stream";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildahBuilder } from "../../src/builder/buildah/buildah.ts";
import { EnvironmentBuilder } from "../../src/builder/port.ts";
import { deepTest, sampled } from "../support/vitest/rings.ts";
import { builderCases, type BuilderSubject, type Intention } from "../conformance/sandboxes/builder.ts";
import {
  BASE,
  makeNeighbour,
  missing,
  openRealBuilder,
  readResult,
  type RealBuilder,
} from "./real-builder.ts";

/** How many secrets are looked for. */
const CANARIES = 64;

const DOCKERFILES: Readonly<Record<Intention, string>> = {
  succeed: `${BASE}RUN echo built > /made\nENV GREETING=hello\nUSER 1000:1000\nWORKDIR /srv\n`,
  fail: `${BASE}# a comment\nRUN echo before the failure; exit 3\n`,
  misspell: "FROM scratch\nFOO bar\n",
  hang: `${BASE}RUN echo hanging; sleep 1000 & sleep 1000\n`,
  scribble: `${BASE}RUN printf 'scrib\\033[31mbled\\007\\r\\n\\200\\303\\n\\342\\200\\256x'\n`,
};

describe.skipIf(missing !== "")(`builds with buildah ${missing}`, () => {
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

  const subject: BuilderSubject<never> = {
    layer: Layer.unwrap(Effect.sync(() => real.layer)),
    request: (intention) => Effect.promise(() => real.prepare({ Dockerfile: DOCKERFILES[intention] })),
    result: (request) => Effect.promise(() => readResult(request)),
    leftovers: (request) => Effect.promise(() => real.leftovers(request)),
  };
  for (const { name, run } of builderCases(subject)) deepTest(name, () => Effect.runPromise(run));

  it("unpacks the image's files as they are, with its configuration", async () => {
    const { root, image, failure } = await real.build({
      Dockerfile: `${BASE}RUN mkdir -m 1777 /shared && echo one > /file && chmod 640 /file && ln /file /same && \
ln -s /nowhere /link && mkdir '/name with \\n' && mkdir -m 755 /own && chown 1000:65533 /own\nUSER 1000\nRUN id -u > /own/id\nENV GREETING="hello world" EMPTY=\nUSER agent:staff\nWORKDIR /srv/app\n`,
    });
    expect(failure).toBeNull();
    expect(image?.env["GREETING"]).toBe("hello world");
    expect(image?.env["EMPTY"]).toBe("");
    expect(image).toMatchObject({ user: "agent:staff", workdir: "/srv/app" });
    const stat = (name: string): string =>
      execFileSync("stat", ["-c", "%f %h %N", join(root, name)], { encoding: "utf8" }).trim();
    expect(stat("shared")).toContain("43ff 2");
    expect(stat("file")).toContain("81a0 2");
    expect(stat("link")).toContain("'/nowhere'");
    expect(await readFile(join(root, "same"), "utf8")).toBe("one\n");
    expect(await readFile(join(root, "own", "id"), "utf8")).toBe("1000\n");
    const [first, own] = await Promise.all([lstat(root), lstat(join(root, "own"))]);
    expect([own.uid - first.uid, own.gid - first.gid]).toEqual([1000, 65_533]);
    expect(image?.files).toBe(Number(execFileSync("find", [root, "-printf", "x"]).length));
  });

  it("obeys SHELL, so that a failed pipe ends the build", async () => {
    const Dockerfile = `${BASE}SHELL ["/bin/sh", "-ec"]\nRUN false; echo reached > /reached\n`;
    const { failure } = await real.build({ Dockerfile }, { layerStore: "shell" });
    expect(failure).toMatchObject({ code: "step_failed", line: 4 });
  });

  it("reads a here-document, or refuses it at its line", async () => {
    const Dockerfile = `${BASE}\nRUN <<EOF\necho here > /here\nEOF\n`;
    const { failure } = await real.build({ Dockerfile }, { layerStore: "here" });
    if (failure !== null) expect(failure).toMatchObject({ code: "syntax", line: 4 });
  });

  it("runs no step again whose inputs are the same, and only those after a change [E27]", async () => {
    const files = { Dockerfile: `${BASE}COPY one /one\nRUN echo stamp > /stamp\nCOPY two /two\n`, one: "1" };
    const first = await real.build({ ...files, two: "2" }, { layerStore: "cached" });
    const same = await real.build({ ...files, two: "2" }, { layerStore: "cached" });
    expect(first.log).not.toContain("Using cache");
    expect(same.log.match(/--> Using cache/g)).toHaveLength(4);
    expect(same.image?.digest).toBe(first.image?.digest);
    const changed = await real.build({ ...files, two: "changed" }, { layerStore: "cached" });
    expect(changed.log.match(/--> Using cache/g)).toHaveLength(3);
    expect(changed.image?.digest).not.toBe(first.image?.digest);
    const elsewhere = await real.build({ ...files, two: "2" }, { layerStore: "another project" });
    expect(elsewhere.log).not.toContain("Using cache");
  });

  deepTest(
    "names lines of several stages, and builds the one that is asked for, with arguments",
    async () => {
      const Dockerfile = `ARG TAG=unused
FROM scratch AS tools
ADD base.tar /
ARG VERSION
RUN echo version \\
    # in between
    $VERSION \\
    > /version

FROM scratch AS left-out
COPY nothing /

FROM tools AS last
RUN cat /version && exit 7
`;
      const tools = await real.build({ Dockerfile }, { target: "tools", args: { VERSION: "a b;c" } });
      expect(tools.failure).toBeNull();
      expect(await readFile(join(tools.root, "version"), "utf8")).toBe("version a b;c\n");
      const last = await real.build({ Dockerfile: Dockerfile.replace("COPY nothing /", "COPY base.tar /") });
      expect(last.failure).toMatchObject({ code: "step_failed", line: 14, exit: 7 });
    },
  );

  it("gives a step the 64 secrets that it mounts, and keeps no copy of them [E14]", async () => {
    const secrets = Object.fromEntries(
      Array.from({ length: CANARIES }, (_, index) => [`CANARY_${index}`, `canary-${index}-${randomUUID()}`]),
    );
    const values = Object.values(secrets);
    const names = Object.keys(secrets);
    const mounts = names.map((name) => `--mount=type=secret,id=${name}`).join(" ");
    const { request, log, root, image, failure } = await real.build(
      {
        Dockerfile: `${BASE}RUN ${mounts} cat ${names.map((name) => `/run/secrets/${name}`).join(" ")} | wc -c > /length
RUN --mount=type=secret,id=CANARY_0,target=/root/.npmrc grep -c canary /root/.npmrc > /found
RUN test ! -e /run/secrets/CANARY_0 && test ! -e /root/.npmrc/x
`,
      },
      { layerStore: "with secrets", secrets: { ...secrets, UNUSED: `unused-${randomUUID()}` } },
    );
    expect(failure).toBeNull();
    expect((await readFile(join(root, "length"), "utf8")).trim()).toBe(String(values.join("").length));
    expect((await readFile(join(root, "found"), "utf8")).trim()).toBe("1");
    const said = log + JSON.stringify(image);
    expect([...values, request.secrets["UNUSED"] ?? ""].filter((value) => said.includes(value))).toEqual([]);
    // The image, the layers, and whatever the builder keeps.
    const patterns = [...values, "unused-"].flatMap((value) => ["-e", value]);
    const found = spawnSync("grep", ["-rlaF", ...patterns, real.home], { encoding: "utf8" });
    expect([found.stdout, found.status]).toEqual(["", 1]);
    expect(await real.leftovers(request)).toEqual([]);
  });

  deepTest("cancels a build that waits for its project's layers, and not the one that has them", () =>
    Effect.gen(function* () {
      const builder = yield* EnvironmentBuilder;
      const layerStore = "waited for";
      const [first, second] = yield* Effect.promise(() =>
        Promise.all([
          real.prepare({ Dockerfile: DOCKERFILES.hang }, { layerStore }),
          real.prepare({ Dockerfile: DOCKERFILES.succeed }, { layerStore }),
        ]),
      );
      const begun = yield* Latch.make(false);
      const building = yield* Effect.forkChild(
        Stream.runForEach(builder.build(first), (event) =>
          event.kind === "log" && event.text.includes("hanging") ? begun.open : Effect.void,
        ),
      );
      yield* begun.await;
      const waiting = yield* Effect.forkChild(Stream.runDrain(builder.build(second)), {
        startImmediately: true,
      });
      yield* Fiber.interrupt(waiting);
      expect(building.pollUnsafe()).toBeUndefined();
      yield* Fiber.interrupt(building);
      // The store is free again.
      yield* Stream.runDrain(builder.build(second));
    }).pipe(Effect.provide(subject.layer), Effect.runPromise),
  );

  deepTest("leaves no run directory once it has ended", async () => {
    const options = {
      ...real.options,
      directory: join(real.home, "ended"),
      runDir: `${real.options.runDir}e`,
      installationId: "ended",
    };
    const wasThere = Effect.sync(() => existsSync(options.runDir));
    const life = Effect.andThen(EnvironmentBuilder, wasThere).pipe(Effect.provide(buildahBuilder(options)));
    expect(await Effect.runPromise(life)).toBe(true);
    expect(existsSync(options.runDir)).toBe(false);
  });

  deepTest("is not misled by a step that prints what buildah prints", async () => {
    const { failure, events } = await real.build({
      Dockerfile: `${BASE}RUN echo "STEP 9/9: RUN something"; echo "STEP 4/4: COPY a /"\nRUN echo "Error: exit status 9"; exit 5\n`,
    });
    expect(events.filter(({ kind }) => kind === "step")).toHaveLength(4);
    expect(failure).toMatchObject({ code: "step_failed", step: 4, line: 4, exit: 5 });
  });

  deepTest("says what a COPY misses, and that a Dockerfile or its context is missing", async () => {
    const copy = await real.build({ Dockerfile: `${BASE}COPY absent /\n` });
    expect(copy.failure).toMatchObject({ code: "step_failed", line: 3, exit: null });
    expect(copy.failure).toHaveProperty("tail", expect.stringContaining("/absent"));
    const other = await real.build({ Dockerfile: BASE }, { dockerfile: ".platform/Dockerfile" });
    expect(other.failure).toEqual({ code: "context_missing", path: ".platform/Dockerfile" });
    const gone = await real.build({ Dockerfile: BASE }, { contextDirectory: join(real.home, "absent") });
    expect(gone.failure).toMatchObject({ code: "context_missing" });
  });

  deepTest("reads no Dockerfile through a link that leaves the context", async () => {
    const secret = join(real.home, "secret");
    await writeFile(secret, "SECRET canary\n");
    const request = await real.prepare({ other: "" }, { dockerfile: "link/Dockerfile" });
    await symlink(real.home, join(request.contextDirectory, "link"));
    await writeFile(join(real.home, "Dockerfile"), "SECRET canary\n");
    expect((await real.run(request)).failure).toEqual({ code: "context_missing", path: "link/Dockerfile" });
    const copied = await real.prepare({ Dockerfile: `${BASE}COPY link /copied\n` });
    await symlink(secret, join(copied.contextDirectory, "link"));
    const { failure, root } = await real.run(copied);
    expect(failure === null && existsSync(join(root, "copied"))).toBe(false);
  });

  const FAULTY: readonly (readonly [string, number | null])[] = [
    ["", 1],
    ["# only a comment\n", 1],
    ["RUN true\n", 1],
    ["FROM scratch\nRUN\n", 2],
    ["FROM scratch\n\nCOPY --unknown=1 a b\n", 3],
    ["FROM scratch\nADD base.tar /\nHEALTHCHECK --nonsense CMD x\n", 3],
    ["FROM scratch\nENV\n", 2],
    ["FROM scratch\nRUN --mount=type=nonsense true\n", 2],
    ["FROM scratch\nADD base.tar /\nCOPY --from=missing-stage / /x\nRUN \u0000\n", null],
    ['FROM scratch\nADD base.tar /\nENV A="x\n', 3],
    ["FROM scratch\nADD base.tar /\nLABEL a\n", 3],
    [`FROM scratch\nADD base.tar /\nENV A=${"$".repeat(300)}{\n`, 3],
  ];
  const SAMPLE = FAULTY.filter(
    ([text]) => text === "" || text.includes("RUN \u0000") || text.includes("HEALTHCHECK"),
  );
  it.each(sampled(FAULTY, SAMPLE))(
    "refuses %j without a result, and harms no next build [E25]",
    async (Dockerfile, line) => {
      const { failure, image } = await real.build({ Dockerfile });
      expect(image).toBeNull();
      if (line === null) expect(failure).not.toBeNull();
      else expect(failure).toMatchObject({ code: "syntax", line });
      expect(await neighbour()).toBe(neighbours);
    },
  );
});
