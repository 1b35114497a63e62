/**
 * The suite of every provider on a cluster of your own. It runs only if PLATFORM_TEST_KUBECONFIG names a kubeconfig file
 * (test/real.config.ts), with a namespace that has the objects of deploy/kubernetes/base/sandboxes.yaml. This machine must reach
 * the Pods, and the Pods this machine at PLATFORM_TEST_KUBERNETES_EGRESS_ADDRESS, on port 7444.
 */
import { randomBytes, randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { describe, it } from "vitest";
import { Cluster } from "../../../src/sandbox/kubernetes/cluster.ts";
import { launchText } from "../../../src/sandbox/kubernetes/launch.ts";
import { podName } from "../../../src/sandbox/kubernetes/pod.ts";
import { kubernetesProvider } from "../../../src/sandbox/kubernetes/provider.ts";
import { runCase, sandboxCases, type Subject } from "../../conformance/sandboxes/sandbox.ts";
import { ask } from "./subject.ts";

const MIB = 1024 ** 2;

const given = (name: string): string => {
  const value = process.env[name];
  if (value === undefined || value === "") throw new Error(`set ${name}`);
  return value;
};

const clusterOptions = {
  kubeconfig: given("PLATFORM_TEST_KUBECONFIG"),
  namespace: given("PLATFORM_TEST_KUBERNETES_NAMESPACE"),
};
const cluster = await Cluster.open(clusterOptions);

const subject: Subject = {
  layer: kubernetesProvider({
    cluster: clusterOptions,
    listen: { host: "0.0.0.0", port: 7444 },
    egress: { host: given("PLATFORM_TEST_KUBERNETES_EGRESS_ADDRESS"), port: 7444 },
    secret: randomBytes(32),
    serviceUrl: "http://127.0.0.1:1",
    installationId: randomUUID(),
    nodeId: randomUUID(),
    // Built from what write-runtime.ts writes.
    runtimeImage: given("PLATFORM_TEST_KUBERNETES_RUNTIME_IMAGE"),
    image: given("PLATFORM_TEST_KUBERNETES_IMAGE"),
    runtimeClass: process.env["PLATFORM_TEST_KUBERNETES_RUNTIME_CLASS"] ?? null,
    limits: { memoryBytes: 1024 * MIB, cpus: 1, diskBytes: 2048 * MIB },
    launchText: launchText({
      orphanMs: 600_000,
      setupTimeoutMs: 60_000,
    }),
  }),
  end: (id) => Effect.asVoid(Effect.andThen(ask(id, "/platform/health"), ask(id, "/exit/7"))),
  leftovers: (id) =>
    Effect.promise(async () => ((await cluster.readPod(podName(id))) === null ? [] : [podName(id)])),
  image: null,
  persistent: true,
};

describe("Pods of a cluster of one's own as sandboxes", () => {
  for (const one of sandboxCases(subject)) it(one.name, () => runCase(one));
});
