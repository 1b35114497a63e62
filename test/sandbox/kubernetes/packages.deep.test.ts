/** The package cache for sandboxes in a cluster. The registry is on loopback, which its operator allows. */
import { randomBytes, randomUUID } from "node:crypto";
import { join } from "node:path";
import * as Effect from "effect/Effect";
import { afterAll, describe, expect, it } from "vitest";
import { kubernetesProvider } from "../../../src/sandbox/kubernetes/provider.ts";
import { type SandboxError, SandboxProvider } from "../../../src/sandbox/port.ts";
import { specOf } from "../../conformance/sandboxes/sandbox.ts";
import { freePort } from "../../support/machine/free-port.ts";
import { lacksCluster } from "../../support/requirements.ts";
import { npmTarball } from "../../support/servers/package-files.ts";
import { PackageRegistry } from "../../support/servers/package-registry.ts";
import { TestCluster, ask } from "./subject.ts";

/** An address of loopback that sandboxes ask through the proxy. */
const HOST = "127.0.0.2";
const TARBALL = "/alpha/-/alpha-1.0.0.tgz";

describe.skipIf(lacksCluster !== null)(`a sandbox in a cluster ${lacksCluster ?? ""}`, () => {
  const opened: { cluster?: TestCluster; registry?: PackageRegistry } = {};
  afterAll(async () => {
    await opened.cluster?.close();
    opened.registry?.close();
  });

  it("gets package files from the node of its service, also after the service's restart", async () => {
    const cluster = (opened.cluster = await TestCluster.open());
    const registry = (opened.registry = await PackageRegistry.open(HOST));
    registry.publicUrl = `http://${HOST}:${registry.port}`;
    registry.addNpm("alpha", "1.0.0", npmTarball("alpha", "1.0.0", randomBytes(100_000)));
    // The same in each life of the service: the Pod keeps the address.
    const listen = { host: "127.0.0.1", port: await freePort() };
    const npm = `http://${HOST}:${registry.port}`;
    const cache = { directory: join(cluster.directory, "packages"), bytes: 2 ** 26, allowHosts: [HOST] };
    /** One life of a service. @param changed its registry */
    const service = <A>(
      body: (
        provider: SandboxProvider["Service"],
      ) => Effect.Effect<A, SandboxError | "silent", SandboxProvider>,
      changed: string | null = npm,
    ): Promise<A> => {
      const packageSources = { npm: changed, pypi: null };
      const options = cluster.options({ packageSources, listen, egress: listen });
      const layer = kubernetesProvider(options, cache);
      return Effect.runPromise(Effect.provide(Effect.flatMap(SandboxProvider, body), layer));
    };
    const spec = {
      ...specOf(randomUUID()),
      egressAllow: [HOST],
      environment: { ...specOf(randomUUID()).environment, PLATFORM_PROJECT_ID: randomUUID() },
    };
    /** What npm asks: the version, whose checksum it then knows, and the file. @returns the file's size */
    const download = Effect.gen(function* () {
      const script = `curl -sf "${npm}/alpha" > /dev/null; curl -sf "${npm}${TARBALL}" | wc -c`;
      const argv = ["sh", "-c", script];
      const text = yield* ask(spec.id, "/run", { as: "agent", argv });
      return Number((JSON.parse(text) as { readonly stdout: string }).stdout);
    });
    const files = () => registry.paths().filter((path) => path === TARBALL).length;

    const size = await service((provider) =>
      Effect.gen(function* () {
        yield* provider.create(spec);
        const settings = JSON.parse(yield* ask(spec.id, "/settings")) as { readonly packages: unknown };
        expect(settings.packages).toEqual({ npm: `${npm}/`, pypi: null });
        return yield* download;
      }),
    );
    expect(size).toBeGreaterThan(100_000);
    expect(files()).toBe(1);
    // Its registries are in its Pod. Other settings are for other sandboxes.
    expect(await service(() => download, "https://packages.example.com")).toBe(size);
    expect(files()).toBe(1);
    await service((provider) => provider.destroy(spec.id));
  });
});
