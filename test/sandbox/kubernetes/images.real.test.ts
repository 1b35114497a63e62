/** Images of this machine in a cluster: pushed to a registry, pulled by digest, with their files and variables. */
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as Effect from "effect/Effect";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { bundleDaemon } from "../../../daemon/bundle/bundle.ts";
import { buildImageName } from "../../../src/domain/environment/image.ts";
import { ImageStore } from "../../../src/sandbox/images/store.ts";
import { RegistryImages } from "../../../src/sandbox/images/registry/images.ts";
import { launchText } from "../../../src/sandbox/kubernetes/launch.ts";
import { podName } from "../../../src/sandbox/kubernetes/pod.ts";
import type { KubernetesOptions } from "../../../src/sandbox/kubernetes/provider.ts";
import { SandboxProvider } from "../../../src/sandbox/port.ts";
import { CANARY, runCase, sandboxCases, specOf } from "../../conformance/sandboxes/sandbox.ts";
import { RuntimeStore } from "../../../src/sandbox/runtimes/store.ts";
import { podFaults } from "../../support/cluster/schema.ts";
import { PLAIN_RUNTIME } from "../../support/machine/plain-runtime.ts";
import { TEST_MS } from "../../support/patience.ts";
import { lacksCluster } from "../../support/requirements.ts";
import { digestOf, ImageRegistry } from "../../support/servers/image-registry.ts";
import { TestCluster, ask } from "./subject.ts";
import { deepTest } from "../../support/vitest/rings.ts";

const REPOSITORY = "team/platform";
const registry = await ImageRegistry.open();
const cluster =
  lacksCluster === null ? await TestCluster.open({ pull: (reference) => pull(reference) }) : null;

/** What an image says to its programs. The lower part would lead the daemon astray. */
const ENV = {
  GREETING: "hello from the image",
  PATH: "/opt/tools/bin:/usr/bin:/bin",
  HOME: "/root",
  NODE_OPTIONS: "--require /evil.js",
  LD_PRELOAD: "/evil.so",
  BASH_ENV: "/evil.sh",
  PLATFORM_TOKEN: "of the image",
};

/** A node's runtime: it checks every digest of what it pulls. */
const pull = async (reference: string) => {
  const [place, digest = ""] = reference.split("@");
  const manifest = registry.manifests.get(`${REPOSITORY} ${digest}`);
  if (cluster === null || place !== `${registry.host}/${REPOSITORY}` || manifest === undefined) return null;
  const blob = (wanted: string): Buffer => {
    const found = registry.blobs.get(`${REPOSITORY} ${wanted}`) ?? Buffer.from("");
    if (digestOf(found) !== wanted) throw new Error(`the registry has another ${wanted}`);
    return found;
  };
  const parsed = JSON.parse(String(manifest)) as {
    readonly config: { readonly digest: string };
    readonly layers: readonly [{ readonly digest: string }];
  };
  const root = join(cluster.directory, `pulled-${digest.slice(7, 19)}`);
  await mkdir(root);
  execFileSync("tar", ["--extract", "--gzip", `--directory=${root}`], {
    input: blob(parsed.layers[0].digest),
  });
  const { config } = JSON.parse(String(blob(parsed.config.digest))) as {
    readonly config: { readonly Env: readonly string[] };
  };
  const env = config.Env.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]);
  return { root, env: Object.fromEntries(env) as Record<string, string> };
};

afterAll(async () => {
  await cluster?.close();
  registry.close();
});

const failure = (create: Effect.Effect<void, { readonly message: string }>) =>
  Effect.map(Effect.flip(create), ({ message }) => message);

describe.skipIf(lacksCluster !== null)(`images of builds in a cluster ${lacksCluster ?? ""}`, () => {
  const buildId = randomUUID();
  const name = buildImageName(buildId);
  let images: RegistryImages;

  beforeAll(async () => {
    if (cluster === null) return;
    const store = new ImageStore(join(cluster.directory, "images"));
    await store.add(name, async (draft) => {
      const root = join(draft, "root");
      // Mount points, as a build's image has them.
      for (const place of ["opt/tools/bin", "opt/platform", "bin", "etc", "usr/local/bin", "run/platform"])
        await mkdir(join(root, place), { recursive: true });
      await writeFile(join(root, "bin/busybox"), readFileSync("/bin/busybox"), { mode: 0o755 });
      for (const applet of ["sh", "id", "ls", "cat", "sleep", "env", "grep", "touch", "rm"])
        execFileSync("ln", ["-s", "busybox", join(root, "bin", applet)]);
      await writeFile(join(root, "opt/tools/bin/hello"), "#!/bin/sh\necho $GREETING\n");
      await chmod(join(root, "opt/tools/bin/hello"), 0o755);
      const digest = digestOf(Buffer.from(name));
      return { digest, env: ENV, user: "", workdir: "", bytes: 1, files: 1 };
    });
    images = new RegistryImages({
      store,
      location: { origin: `http://${registry.host}`, repository: REPOSITORY },
      authFile: null,
      scratch: join(cluster.directory, "scratch"),
    });
  });
  afterEach(() => {
    registry.answering = () => false;
    return cluster?.setDaemon();
  });

  const service = <A>(
    body: (provider: SandboxProvider["Service"]) => Effect.Effect<A, unknown, SandboxProvider>,
    changes: Partial<KubernetesOptions> = {},
  ): Promise<A> => {
    if (cluster === null) throw new Error("no cluster");
    const layer = cluster.layer({ images, ...changes });
    return Effect.runPromise(Effect.provide(Effect.flatMap(SandboxProvider, body), layer));
  };

  for (const one of cluster === null
    ? []
    : sandboxCases(cluster.subject({ image: name, images: () => images })))
    deepTest(one.name, () => runCase(one));

  it("are named by digest in the Pod, and sent once for all sandboxes", () =>
    service((provider) =>
      Effect.gen(function* () {
        const spec = specOf(randomUUID(), { image: name });
        yield* provider.create(spec);
        const image = cluster?.server.store.find("pods", podName(spec.id))?.spec?.containers[0]?.image ?? "";
        expect(image).toMatch(new RegExp(`^${registry.host}/${REPOSITORY}@sha256:[0-9a-f]{64}$`));
        const run = (script: string) =>
          ask(spec.id, "/run", { as: "agent", argv: ["/bin/sh", "-c", script] });
        expect(yield* run("ls /opt/tools/bin")).toContain("hello");
        yield* provider.destroy(spec.id);
        const before = registry.asked.length;
        const second = specOf(randomUUID(), { image: name });
        yield* provider.create(second);
        expect(registry.asked.slice(before).filter((asked) => !asked.startsWith("HEAD"))).toEqual([]);
        yield* provider.destroy(second.id);
      }),
    ));

  deepTest(
    "give their variables to the agent alone, without those that lead the platform's programs astray [I16]",
    async () => {
      if (cluster === null) return;
      const { path } = await bundleDaemon(join(cluster.directory, "daemon.cjs"));
      await cluster.setDaemon(path);
      const launch = launchText({
        orphanMs: 600_000,
        setupTimeoutMs: 60_000,
      });
      await service(
        (provider) =>
          Effect.gen(function* () {
            const spec = specOf(randomUUID(), {
              image: name,
              runtime: {
                // It starts before there is a session.
                adapter: "opencode",
                command: [
                  "/bin/sh",
                  "-c",
                  "hello > /workspace/said; env > /workspace/environment; exec sleep 1000",
                ],
                variables: {},
                permissions: null,
              },
              sessionId: null,
              variables: { OF_THE_PROJECT: "1" },
              environment: {
                PLATFORM_TOKEN: `${CANARY}-token`,
                PLATFORM_SERVICE_PORT: "8000",
                PLATFORM_PROJECT_ID: randomUUID(),
                PLATFORM_DEFAULT_BRANCH: "main",
                PLATFORM_REPO_URL: "http://platform.internal/repository.git",
                PLATFORM_API_URL: "http://platform.internal",
              },
            });
            yield* provider.create(spec);
            const files = join(cluster.directory, podName(spec.id), "files/workspace");
            yield* Effect.promise(() =>
              expect.poll(() => existsSync(join(files, "environment")), { timeout: TEST_MS }).toBe(true),
            );
            expect(readFileSync(join(files, "said"), "utf8")).toBe("hello from the image\n");
            const said = readFileSync(join(files, "environment"), "utf8");
            const agent = new Map(said.split("\n").map((line) => [line.split("=")[0], line]));
            expect(agent.get("GREETING")).toBe("GREETING=hello from the image");
            expect(agent.get("OF_THE_PROJECT")).toBe("OF_THE_PROJECT=1");
            expect(agent.get("PATH")).toMatch(
              /^PATH=\/opt\/platform\/bin:\/opt\/tools\/bin:\/usr\/bin:\/bin:/,
            );
            expect(agent.get("HOME")).toBe("HOME=/opt/platform/home");
            for (const refused of ["NODE_OPTIONS", "LD_PRELOAD", "BASH_ENV", "KUBERNETES_SERVICE_HOST"])
              expect(agent.has(refused), refused).toBe(false);
            expect(said).not.toContain("of the image");
            // The file is gone, and PID 1 and the daemon never had the variables.
            expect(existsSync(join(cluster.directory, podName(spec.id), "run/run/image-environment"))).toBe(
              false,
            );
            const daemons = daemonsOf(podName(spec.id));
            expect(daemons.length).toBeGreaterThan(0);
            for (const text of daemons) expect(text).not.toMatch(/GREETING|evil/);
            yield* provider.destroy(spec.id);
          }),
        { launchText: launch },
      );
    },
  );

  deepTest("that cannot be pushed are named with the registry's reason, and start once it takes them", () =>
    service((provider) =>
      Effect.gen(function* () {
        registry.manifests.clear();
        registry.answering = ({ method }, response) => {
          if (method !== "PUT") return false;
          response.writeHead(403, { "content-type": "application/json" });
          response.end(JSON.stringify({ errors: [{ code: "DENIED", message: "not yours" }] }));
          return true;
        };
        const spec = specOf(randomUUID(), { image: name });
        expect(yield* failure(provider.create(spec))).toBe(
          `image unavailable: the image cannot be pushed for the cluster: ${registry.host} does not allow this in ${REPOSITORY} (403, DENIED: not yours)`,
        );
        registry.answering = () => false;
        yield* provider.create(spec);
        yield* provider.destroy(spec.id);
        expect(cluster?.leftovers(spec.id)).toEqual([]);
      }),
    ),
  );

  deepTest("need a registry, or an image that this machine still has", async () => {
    const spec = specOf(randomUUID(), { image: buildImageName(randomUUID()) });
    await service((provider) =>
      Effect.gen(function* () {
        expect(yield* failure(provider.create(spec))).toContain("is not on this machine any more");
      }),
    );
    if (cluster === null) return;
    const without = Effect.flatMap(SandboxProvider, (provider) => failure(provider.create(spec)));
    expect(await Effect.runPromise(Effect.provide(without, cluster.layer()))).toContain(
      "Name a registry for the cluster in PLATFORM_IMAGE_REGISTRY",
    );
  });
});

const specWith = (program: string) =>
  specOf(randomUUID(), {
    runtime: {
      ...PLAIN_RUNTIME,
      command: [program],
      packaged: {
        name: "one",
        start: { command: ["{node}", "{own}/one/one"], variables: { ONE: "{own}" } },
      },
    },
  });

describe.skipIf(lacksCluster !== null)(
  `runtimes that an operator has added, in a cluster ${lacksCluster ?? ""}`,
  () => {
    let runtimes: RuntimeStore;
    let images: RegistryImages;

    const add = (version: string) =>
      runtimes.add("one", async (draft) => {
        const module = join(draft, "root/own/node_modules/one");
        await mkdir(module, { recursive: true });
        await writeFile(join(module, "one"), `#!/bin/sh\necho ${version}\n`, { mode: 0o755 });
        const digest = digestOf(Buffer.from(version));
        return { digest, version, integrity: "sha512-x", packages: 1, bytes: 1 };
      });
    const launched: string[] = [];
    const service = <A>(
      body: (provider: SandboxProvider["Service"]) => Effect.Effect<A, unknown, SandboxProvider>,
      changes: Partial<KubernetesOptions> = {},
    ): Promise<A> => {
      if (cluster === null) throw new Error("no cluster");
      const { launchText: makeText } = cluster.options();
      const keeping: KubernetesOptions["launchText"] = (...asked) => {
        launched.push(makeText(...asked));
        return launched.at(-1) ?? "";
      };
      const layer = cluster.layer({ images, runtimes, launchText: keeping, ...changes });
      return Effect.runPromise(Effect.provide(Effect.flatMap(SandboxProvider, body), layer));
    };

    beforeAll(() => {
      if (cluster === null) return;
      runtimes = new RuntimeStore(join(cluster.directory, "runtimes"));
      images = new RegistryImages({
        store: new ImageStore(join(cluster.directory, "images")),
        location: { origin: `http://${registry.host}`, repository: REPOSITORY },
        authFile: null,
        scratch: join(cluster.directory, "scratch"),
      });
    });

    it("are missing until one is added, which a session is told at its start", () =>
      service((provider) =>
        Effect.gen(function* () {
          const spec = specWith("no-such-program");
          expect(yield* provider.installed(spec.runtime)).toBe(null);
          expect(yield* failure(provider.create(spec))).toBe(
            "this node has no runtime one. An operator adds it there with `platform runtimes add one@VERSION`, or the project's environment brings no-such-program",
          );
          yield* provider.destroy(spec.id);
          // The program of the image starts as before.
          const own = specWith("true");
          yield* provider.create(own);
          expect(JSON.parse(launched.at(-1) ?? "")).toMatchObject({ agentCommand: ["true"] });
          yield* provider.destroy(own.id);
        }),
      ));

    it("are pulled by digest, seen read-only at the place of their version, and kept until the sandbox ends", () =>
      service((provider) =>
        Effect.gen(function* () {
          const { digest } = yield* Effect.promise(() => add("1.0.0"));
          const spec = specWith("no-such-program");
          expect(yield* provider.installed(spec.runtime)).toBe(digest);
          yield* provider.create(spec);
          const place = "/opt/platform/runtimes/one/1.0.0";
          expect(JSON.parse(launched.at(-1) ?? "")).toMatchObject({
            agentCommand: ["/opt/platform/lib/node", `${place}/own/node_modules/one/one`],
            runtimeVariables: { ONE: `${place}/own/node_modules` },
          });
          const pod = cluster?.server.store.find("pods", podName(spec.id)) ?? {};
          const { image } = pod.spec?.initContainers?.find(({ name }) => name === "runtime") ?? {};
          expect(image).toMatch(new RegExp(`^${registry.host}/${REPOSITORY}@sha256:[0-9a-f]{64}$`));
          expect(podFaults(pod)).toEqual([]);
          const run = (script: string) =>
            ask(spec.id, "/run", { as: "agent", argv: ["/bin/sh", "-c", script] });
          expect(yield* run(`${place}/own/node_modules/one/one`)).toContain("1.0.0");
          expect(yield* run(`touch ${place}/new 2>&1`)).toContain("Read-only file system");
          yield* Effect.promise(() => add("2.0.0"));
          // A repeated start, as after a restart of the service, finds the Pod with the former version.
          yield* provider.create(spec);
          expect(launched.at(-1)).toContain(place);
          yield* provider.destroy(spec.id);
        }),
      ));

    it("need a registry, which is said at a session's start", () =>
      service(
        (provider) =>
          Effect.gen(function* () {
            expect(yield* failure(provider.create(specWith("true")))).toContain(
              "the runtime one is on the service's machine. Name a registry for the cluster in PLATFORM_IMAGE_REGISTRY",
            );
          }),
        { images: undefined } as unknown as Partial<KubernetesOptions>,
      ));
  },
);

/** The environments of PID 1 and of the daemon of a Pod. */
const daemonsOf = (pod: string): readonly string[] =>
  readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((pid) => {
      try {
        const isDaemons = statSync(`/proc/${pid}`).uid === 1000;
        const sees = isDaemons && readFileSync(`/proc/${pid}/mountinfo`, "utf8").includes(pod);
        return sees ? [readFileSync(`/proc/${pid}/environ`, "utf8")] : [];
      } catch {
        return [];
      }
    });
