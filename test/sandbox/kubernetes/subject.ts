/** The provider `kubernetes` over a fake cluster whose Pods are real processes. */
import { randomBytes, randomUUID } from "node:crypto";
import { chmod, copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import * as Layer from "effect/Layer";
import type { RegistryImages } from "../../../src/sandbox/images/registry/images.ts";
import { launchText } from "../../../src/sandbox/kubernetes/launch.ts";
import { podName } from "../../../src/sandbox/kubernetes/pod.ts";
import { type KubernetesOptions, kubernetesProvider } from "../../../src/sandbox/kubernetes/provider.ts";
import {
  type DaemonLink,
  type SandboxError,
  SandboxProvider,
  linkTarget,
} from "../../../src/sandbox/port.ts";
import type { Subject } from "../../conformance/sandboxes/sandbox.ts";
import { FakeApiServer, NAMESPACE } from "../../support/cluster/api-server.ts";
import { FakeKubelet, type KubeletOptions } from "../../support/cluster/kubelet.ts";
import { STAND_IN, writeStandInRuntime } from "./runtime.ts";

const MIB = 1024 ** 2;

/** One request to the daemon over the provider's link. Null: it broke off. */
const once = (link: DaemonLink, path: string, body: string | null): Promise<string | null> => {
  const { promise, resolve } = Promise.withResolvers<string | null>();
  const call = request({ ...linkTarget(link), path, method: body === null ? "GET" : "POST" }, (answer) => {
    let text = "";
    answer.on("data", (chunk) => (text += chunk));
    answer.on("error", () => resolve(null));
    answer.on("end", () => resolve(text));
  });
  call.on("error", () => resolve(null));
  call.end(body);
  return promise;
};

/** Asks the daemon. Until it listens, and at `/exit`, a connection breaks off. */
export const ask = (id: string, path: string, body: unknown = null) =>
  Effect.gen(function* () {
    const provider = yield* SandboxProvider;
    const link = yield* provider.link(id);
    const text = body === null ? null : JSON.stringify(body);
    const answer = yield* Effect.promise(() => once(link, path, text));
    if (answer === null && !path.startsWith("/exit")) return yield* Effect.fail("silent" as const);
    return answer ?? "";
  }).pipe(Effect.retry(Schedule.spaced("50 millis")));

export class TestCluster {
  readonly server: FakeApiServer;
  readonly kubelet: FakeKubelet;
  readonly directory: string;
  readonly #secret = randomBytes(32);
  readonly #installationId = randomUUID();
  readonly #nodeId = randomUUID();

  private constructor(server: FakeApiServer, kubelet: FakeKubelet, directory: string) {
    this.server = server;
    this.kubelet = kubelet;
    this.directory = directory;
  }

  static async open({ pull }: Pick<KubeletOptions, "pull"> = {}): Promise<TestCluster> {
    const directory = await mkdtemp("/tmp/platform-k8s-");
    await chmod(directory, 0o755);
    const runtime = join(directory, "runtime");
    await writeStandInRuntime(runtime);
    const server = await FakeApiServer.open();
    await writeFile(join(directory, "kubeconfig"), server.kubeconfig);
    const kubelet = new FakeKubelet({
      server,
      directory,
      images: { "registry.test/runtime:1": { root: runtime }, "registry.test/tools:1": "host" },
      ...(pull !== undefined && { pull }),
    });
    return new TestCluster(server, kubelet, directory);
  }

  async close(): Promise<void> {
    await this.kubelet.close();
    this.server.close();
    await rm(this.directory, { recursive: true, force: true });
  }

  options(changes: Partial<KubernetesOptions> = {}): KubernetesOptions {
    return {
      cluster: { kubeconfig: join(this.directory, "kubeconfig"), namespace: NAMESPACE },
      listen: { host: "127.0.0.1", port: 0 },
      egress: { host: "127.0.0.1", port: 0 },
      secret: this.#secret,
      serviceUrl: "http://127.0.0.1:1",
      installationId: this.#installationId,
      nodeId: this.#nodeId,
      runtimeImage: "registry.test/runtime:1",
      image: "registry.test/tools:1",
      runtimeClass: null,
      limits: { memoryBytes: 2048 * MIB, cpus: 4, diskBytes: 8192 * MIB },
      launchText: launchText({
        orphanMs: 600_000,
        setupTimeoutMs: 60_000,
      }),
      ...changes,
    };
  }

  layer(changes: Partial<KubernetesOptions> = {}): Layer.Layer<SandboxProvider, SandboxError> {
    return kubernetesProvider(this.options(changes));
  }

  /** @param wish an image of this machine, and where it is pushed */
  subject({
    image = null,
    images,
  }: { readonly image?: string | null; readonly images?: () => RegistryImages } = {}): Subject {
    const layer = Layer.unwrap(
      Effect.sync(() => this.layer(images === undefined ? {} : { images: images() })),
    );
    return {
      layer,
      end: (id) => Effect.asVoid(Effect.andThen(ask(id, "/platform/health"), ask(id, "/exit/7"))),
      leftovers: (id) => Effect.sync(() => this.leftovers(id)),
      image,
      persistent: true,
    };
  }

  /** Another program in the daemon's place, for Pods from now on. */
  setDaemon(file: string = STAND_IN): Promise<void> {
    return copyFile(file, join(this.directory, "runtime/opt/platform/bin-own/platform-agent"));
  }

  leftovers(id: string): readonly string[] {
    const name = podName(id);
    const { store } = this.server;
    return [
      ...this.kubelet.leftovers(name),
      ...(["pods", "secrets"] as const).filter((kind) => store.find(kind, name) !== null),
    ];
  }
}
