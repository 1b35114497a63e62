/** `docker` and its engine: what the engine knows, what it refuses, how it fails, and what it is left with. */
import { randomUUID } from "node:crypto";
import { readdirSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import * as Effect from "effect/Effect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findOrphans } from "../../../src/installation/operator/orphans.ts";
import { dockerKind } from "../../../src/sandbox/docker/docker.ts";
import { engineAt } from "../../../src/sandbox/containers/engine.ts";
import { findTools } from "../../../src/sandbox/machine/tools.ts";
import { SandboxProvider } from "../../../src/sandbox/port.ts";
import { CANARY, specOf } from "../../conformance/sandboxes/sandbox.ts";
import { TestEngine, lacksEngine } from "../../support/machine/container-engine.ts";
import { processesOfSandbox } from "../../support/machine/processes-seeing.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import {
  type MachineSetup,
  ask,
  machineOptions,
  machineSubject,
  providerOf,
  runIn,
} from "../machine/machine-subject.ts";
import { deepTest, onlyDeep } from "../../support/vitest/rings.ts";

const lacks = lacksEngine ?? (sandboxesStartHere ? null : "(needs bubblewrap)");

const create = (spec: ReturnType<typeof specOf>) =>
  Effect.flatMap(SandboxProvider, (provider) => provider.create(spec));
const destroy = (id: string) => Effect.flatMap(SandboxProvider, (provider) => provider.destroy(id));

/** An engine makes the place of a mount that is missing, on this machine if its directory is. */
const ownDirectories = () =>
  ["/", "/etc", "/usr", "/usr/local", "/usr/local/bin", "/opt"].map((name) => readdirSync(name));

describe.skipIf(lacks !== null)(`sandboxes in a container engine ${lacks ?? ""}`, () => {
  let engine: TestEngine;
  let runDir = "";

  beforeAll(async () => {
    engine = await TestEngine.open();
    runDir = await mkdtemp("/tmp/platform-de-");
    await chmod(runDir, 0o711);
  });
  afterAll(async () => {
    await engine.close();
    await rm(runDir, { recursive: true, force: true });
  });

  const setup = (form: MachineSetup["form"] = "docker"): MachineSetup => ({
    runDir,
    nodePath: process.execPath,
    daemon: fileURLToPath(new URL("../stand-in-daemon.mjs", import.meta.url)),
    form,
    runsc: null,
    socket: engine.socket,
    path: process.env["PATH"] ?? "",
    planted: [],
    image: null,
    imagesDir: `${runDir}/images`,
  });
  /** One life of a service. */
  const serviceOf = <A>(body: Effect.Effect<A, unknown, SandboxProvider>, form?: MachineSetup["form"]) =>
    Effect.runPromise(
      Effect.provide(body, providerOf(setup(form), machineOptions(setup(form), "http://127.0.0.1:1"))),
    );
  const leftovers = (id: string) =>
    Effect.runPromise(machineSubject(setup(), "http://127.0.0.1:1").leftovers(id));
  const containers = () => engine.docker("ps", "--all", "--format", "{{.Names}}").split("\n").filter(Boolean);

  deepTest(
    "leaves this machine's own directories as they were, though files are mounted over them",
    async () => {
      const spec = specOf(randomUUID());
      const before = ownDirectories();
      await serviceOf(
        Effect.gen(function* () {
          yield* create(spec);
          expect((yield* runIn(spec.id, "agent", "ls /usr/local/bin")).stdout).toContain("platform");
          expect(ownDirectories()).toEqual(before);
          yield* destroy(spec.id);
        }),
      );
      expect(ownDirectories()).toEqual(before);
    },
  );

  it("tells the engine no token and no secret: not in its description, its log or its image [I16]", async () => {
    const spec = specOf(randomUUID());
    await serviceOf(
      Effect.gen(function* () {
        yield* create(spec);
        const seen = yield* ask(spec.id, "/environment");
        expect(seen).toContain(`${CANARY}-token`);
        const told = yield* runIn(spec.id, "daemon", "ls /run/platform; echo line >> /proc/1/fd/1");
        expect(told.stdout).not.toContain("environment");
        const [name = ""] = containers();
        expect(name).toContain(spec.id);
        const inspected = engine.docker("inspect", name);
        expect(inspected).toContain(spec.id);
        expect(inspected).not.toContain(CANARY);
        expect(
          engine.docker("history", "--no-trunc", engine.docker("images", "--quiet").trim()),
        ).not.toContain(CANARY);
        expect(() => engine.docker("logs", name)).toThrow();
        yield* destroy(spec.id);
      }),
    );
    expect(containers()).toEqual([]);
  });

  it("removes, at a service's start, containers of sandboxes that are gone, and no other container [I9]", async () => {
    const spec = specOf(randomUUID());
    await serviceOf(create(spec));
    const image = engine.docker("images", "--quiet").trim();
    engine.docker("create", "--name", "other", "--network", "none", image, "/bin/true");
    const label = [
      "--label",
      "platform.run-directory=/elsewhere",
      "--label",
      `platform.sandbox=${randomUUID()}`,
    ];
    engine.docker("create", "--name", "elsewhere", "--network", "none", ...label, image, "/bin/true");
    for (const pid of processesOfSandbox(spec.id)) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It ended together with the one before it.
      }
    }
    await rm(`${runDir}/s/${spec.id}`, { recursive: true });
    expect(containers()).toHaveLength(3);
    await serviceOf(Effect.void);
    expect(containers().toSorted()).toEqual(["elsewhere", "other"]);
    const orphans = () =>
      Effect.runPromise(findOrphans({ end: true, of: "/elsewhere", engine: engine.socket, cluster: null }));
    expect(await orphans()).toEqual([
      { kind: "container", what: "elsewhere", data_dir: null, pids: [], problem: null },
    ]);
    expect(await orphans()).toEqual([]);
    expect(containers()).toEqual(["other"]);
    engine.docker("rm", "other");
  });

  onlyDeep(() => {
    it.each([
      ["docker", "bubblewrap"],
      ["bubblewrap", "docker"],
    ] as const)(
      "leaves a sandbox of %s to a service with %s, which destroys it [I10]",
      async (first, later) => {
        const spec = specOf(randomUUID());
        await serviceOf(create(spec), first);
        await serviceOf(
          Effect.gen(function* () {
            const provider = yield* SandboxProvider;
            expect((yield* provider.list).map(({ id, state }) => [id, state])).toEqual([
              [spec.id, "running"],
            ]);
            yield* ask(spec.id, "/platform/health");
            yield* destroy(spec.id);
          }),
          later,
        );
        expect(await leftovers(spec.id)).toEqual([]);
        expect(containers()).toEqual([]);
      },
    );
  });

  deepTest(
    "reports the end of its sandboxes when the engine stops, and destroys them once it is back",
    async () => {
      const spec = specOf(randomUUID());
      await serviceOf(
        Effect.gen(function* () {
          const provider = yield* SandboxProvider;
          yield* create(spec);
          yield* ask(spec.id, "/platform/health");
          yield* Effect.promise(() => engine.stop());
          expect(yield* provider.awaitExit(spec.id)).toMatchObject({ code: "exited" });
          expect((yield* Effect.flip(provider.destroy(spec.id))).message).toContain(
            `the container engine at ${engine.socket} does not answer. Start it`,
          );
          const unmade = specOf(randomUUID());
          expect((yield* Effect.flip(create(unmade))).message).toContain("does not answer");
          yield* Effect.promise(() => engine.start());
          // The failed start has left a record, for its caller's `destroy`.
          expect((yield* provider.list).map(({ state }) => state)).toEqual(["exited", "exited"]);
          for (const { id } of [spec, unmade]) yield* destroy(id);
          expect(yield* provider.list).toEqual([]);
        }),
      );
      expect(await leftovers(spec.id)).toEqual([]);
      expect(containers()).toEqual([]);
    },
  );

  deepTest("refuses a runtime that the engine does not have, and names those that it has", async () => {
    const kind = dockerKind({ socket: engine.socket, runtime: "kata" });
    const options = machineOptions(setup(), "http://127.0.0.1:1");
    const preparation = { options, tools: findTools(options.path), ownUids: true };
    await expect(kind.prepare(preparation)).rejects.toThrow(
      /no runtime kata \(PLATFORM_DOCKER_RUNTIME\).*runc/,
    );
  });

  deepTest("names the engine's answer where a container cannot be made", async () => {
    const asked = engineAt(engine.socket).create("unmakeable", { Image: "platform-sandbox-root:none" });
    await expect(asked).rejects.toMatchObject({ reason: "missing" });
  });
});
