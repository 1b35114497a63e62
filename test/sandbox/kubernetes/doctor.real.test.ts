/** `doctor` for sandboxes in a cluster, over a fake cluster with the Role and the network policies of deploy/kubernetes. */
import { createServer } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import * as Effect from "effect/Effect";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { bundleDaemon } from "../../../daemon/bundle/bundle.ts";
import { type KubernetesOptions, kubernetesDoctor } from "../../../src/sandbox/kubernetes/provider.ts";
import { SandboxProvider } from "../../../src/sandbox/port.ts";
import { rightsOf } from "../../support/cluster/api-server.ts";
import { manifestsOf, roleRules } from "../../support/cluster/manifests.ts";
import { freePort } from "../../support/machine/free-port.ts";
import { lacksCluster } from "../../support/requirements.ts";
import { specOf } from "../../conformance/sandboxes/sandbox.ts";
import { TestCluster } from "./subject.ts";
import { deepTest, onlyDeep } from "../../support/vitest/rings.ts";

const cluster = lacksCluster === null ? await TestCluster.open() : null;
const ROLE = rightsOf(roleRules);

describe.skipIf(lacksCluster !== null)(`the doctor of a cluster ${lacksCluster ?? ""}`, () => {
  const { server, kubelet, directory } = cluster ?? ({} as TestCluster);
  let daemon = "";
  let port = 0;
  beforeEach(async () => {
    if (daemon === "") daemon = (await bundleDaemon(join(directory, "daemon.cjs"))).path;
    await cluster?.setDaemon(daemon);
    port = await freePort();
    server.rights = ROLE;
    const policies = JSON.stringify(manifestsOf("NetworkPolicy", "platform-sandboxes"));
    server.policies = JSON.parse(policies.replaceAll("7444", String(port))) as readonly object[];
  });
  afterEach(() => {
    server.faults.forbidden.clear();
    server.faults.quotaUsedUp = false;
    server.faults.refusesPods = null;
    kubelet.openNetwork = false;
    expect(server.store.list("pods", "")).toEqual([]);
    expect(server.store.list("secrets", "")).toEqual([]);
  });
  afterAll(() => cluster?.close());

  const examine = (changes: Partial<KubernetesOptions> = {}) => {
    if (cluster === null) throw new Error("no cluster");
    const place = { host: "127.0.0.1", port };
    return Effect.runPromise(kubernetesDoctor(cluster.options({ listen: place, egress: place, ...changes })));
  };

  it("starts one sandbox, says what holds, and leaves nothing", async () => {
    const { usable, problem, findings } = await examine();
    expect({ usable, problem }).toEqual({ usable: true, problem: null });
    const held = findings.filter(({ how }) => how === "cluster").map(({ subject }) => subject);
    expect(held).toEqual([
      "rights",
      "admission",
      "network policies",
      "network",
      "read-only root",
      "no privileges",
      "no new privileges",
      "daemon isolated from the agent",
      "no token of the cluster",
    ]);
    // The fake node has no runtime class, no filter of system calls and no limits.
    const weak = findings.filter(({ how }) => how === "not at all").map(({ subject }) => subject);
    expect(weak.filter((subject) => subject !== "memory" && subject !== "processes")).toEqual([
      "kernel",
      "system calls",
    ]);
  });

  deepTest("uses every right of the Role, together with the service, and no other", async () => {
    server.used.clear();
    await examine();
    await Effect.runPromise(
      Effect.gen(function* () {
        const provider = yield* SandboxProvider;
        const spec = specOf(crypto.randomUUID());
        yield* provider.create(spec);
        yield* provider.setSecretNames(spec.id, []);
        yield* provider.end(spec.id);
        yield* provider.logs(spec.id);
        yield* provider.destroy(spec.id);
      }).pipe(Effect.provide(cluster?.layer() ?? expect.fail())),
    );
    expect([...server.used].toSorted()).toEqual([...ROLE].toSorted());
  });

  deepTest("names the rights that are missing", async () => {
    server.faults.forbidden.add("patch pods").add("get pods/log");
    expect((await examine()).problem).toBe(
      "in the namespace sandboxes, the service may not: patch pods, get pods/log. Apply the Role and RoleBinding of deploy/kubernetes/base/sandboxes.yaml.",
    );
  });

  onlyDeep(() => {
    it.each([
      [
        "the namespace's Pod Security level forbids sandboxes",
        "pod-security.kubernetes.io/enforce=baseline",
        'pods "platform-doctor" is forbidden: violates PodSecurity "restricted:latest": unrestricted capabilities',
      ],
      [
        "the cluster does not have the RuntimeClass",
        "PLATFORM_KUBERNETES_RUNTIME_CLASS",
        'pods "platform-doctor" is forbidden: pod rejected: RuntimeClass "gvisor" not found',
      ],
      [
        "a LimitRange of the namespace allows no sandbox of this size",
        "PLATFORM_SANDBOX_MEMORY_MB",
        'pods "platform-doctor" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2147483648',
      ],
    ])("says that %s, and what to do: %s", async (what, todo, refusal) => {
      server.faults.refusesPods = refusal;
      const { usable, problem } = await examine();
      expect(usable).toBe(false);
      expect(problem).toContain(what);
      expect(problem).toContain(todo);
    });
  });

  deepTest("says that the namespace does not exist", async () => {
    const kubeconfig = join(directory, "kubeconfig");
    const { problem } = await examine({ cluster: { kubeconfig, namespace: "elsewhere" } });
    expect(problem).toContain("the namespace of the sandboxes does not exist");
    expect(problem).toContain("PLATFORM_KUBERNETES_NAMESPACE");
  });

  deepTest("says that no policy bounds the sandboxes", async () => {
    server.policies = [];
    const { usable, problem } = await examine();
    expect(usable).toBe(true);
    expect(problem).toContain("no NetworkPolicy bounds what may leave the sandboxes");
    expect(problem).toContain("no NetworkPolicy bounds what may enter the sandboxes");
  });

  deepTest("notices that the network does not hold to the policies", async () => {
    kubelet.openNetwork = true;
    const { problem, findings } = await examine();
    expect(problem).toContain(`a sandbox reached ${new URL(server.url).host} past the egress proxy`);
    expect(findings).toContainEqual(expect.objectContaining({ subject: "network", how: "not at all" }));
  });

  deepTest("says that sandboxes do not reach the service at the given address", async () => {
    const { usable, problem } = await examine({
      egress: { host: "127.0.0.1", port },
      listen: { host: "127.0.0.1", port: await freePort() },
    });
    expect(usable).toBe(false);
    expect(problem).toContain(`the sandbox cannot reach the service at 127.0.0.1:${port}`);
  });

  deepTest("leaves the trial to the running service, which has the port", async () => {
    const other = createServer().listen(port, "127.0.0.1");
    await once(other, "listening");
    const { usable, problem } = await examine();
    other.close();
    expect(usable).toBe(false);
    expect(problem).toContain("open Service in the dashboard, then Examine");
  });

  deepTest("examines itself while it runs", async () => {
    const place = { host: "127.0.0.1", port };
    const report = await Effect.runPromise(
      Effect.flatMap(SandboxProvider, ({ doctor }) => doctor).pipe(
        Effect.provide(cluster?.layer({ listen: place, egress: place }) ?? expect.fail()),
      ),
    );
    expect(report).toMatchObject({ usable: true, problem: null });
  });

  onlyDeep(() => {
    it.each([
      ["a file that is missing", "missing", "which cannot be read as a kubeconfig file: ENOENT"],
      ["a file of another kind", "daemon.cjs", "which cannot be read as a kubeconfig file"],
    ])("names PLATFORM_KUBERNETES_CONFIG for %s", async (_, file, why) => {
      const { problem } = await examine({ cluster: { kubeconfig: join(directory, file), namespace: "x" } });
      expect(problem).toContain("PLATFORM_KUBERNETES_CONFIG is ");
      expect(problem).toContain(why);
    });
  });

  deepTest("says that the service runs in no Pod, and that a name has no address", async () => {
    expect((await examine({ cluster: { kubeconfig: null, namespace: "x" } })).problem).toContain(
      "the service does not run in a Pod with a service account",
    );
    expect((await examine({ egress: { host: "absent.invalid", port } })).problem).toContain(
      "PLATFORM_KUBERNETES_EGRESS_ADDRESS is absent.invalid, which has no address",
    );
  });
});
