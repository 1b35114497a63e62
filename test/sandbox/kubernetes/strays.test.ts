/** Pods whose service gives no sign of life: which ones they are, and how the operator's command removes them. */
import { execFile } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import type { V1PodStatus } from "@kubernetes/client-node";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { Cluster } from "../../../src/sandbox/kubernetes/cluster.ts";
import { SILENT_MS } from "../../../src/sandbox/kubernetes/heard.ts";
import {
  HEARD_ANNOTATION,
  LABELS,
  podName,
  newPod,
  startKeySecret,
} from "../../../src/sandbox/kubernetes/pod.ts";
import { strayPods } from "../../../src/sandbox/kubernetes/strays.ts";
import { sandboxKeys } from "../../../src/sandbox/remote/keys.ts";
import { specOf } from "../../conformance/sandboxes/sandbox.ts";
import { FakeApiServer, NAMESPACE } from "../../support/cluster/api-server.ts";
import type { Stored } from "../../support/cluster/store.ts";
import { TEST_MS } from "../../support/patience.ts";

const CLI = path.join(import.meta.dirname, "../../../src/operator.ts");
const DAY_MS = 86_400_000;
const NOW = Date.parse("2026-11-20T12:00:00Z");
const secret = randomBytes(32);
const directory = mkdtempSync(path.join(tmpdir(), "strays-"));
const place = { kubeconfig: path.join(directory, "kubeconfig"), namespace: NAMESPACE };
let server: FakeApiServer;
/** The node: it removes what is marked as deleted. */
let stopNode: () => void;

beforeAll(async () => {
  server = await FakeApiServer.open();
  writeFileSync(place.kubeconfig, server.kubeconfig);
});
afterAll(() => {
  server.close();
  rmSync(directory, { recursive: true });
});
beforeEach(() => {
  stopNode = server.store.watch(Number(server.store.version), ({ type, kind, object }) => {
    const { deletionTimestamp, name = "" } = object.metadata ?? {};
    if (type === "MODIFIED" && kind === "pods" && deletionTimestamp !== undefined)
      queueMicrotask(() => server.store.remove(kind, name));
  });
});
afterEach(() => {
  stopNode();
  for (const kind of ["pods", "secrets"] as const)
    for (const { metadata } of server.store.list(kind, "")) server.store.remove(kind, metadata?.name ?? "");
});

interface Wish {
  readonly installationId?: string;
  /** When the service gave its last sign. Null: never. */
  readonly heardMs: number | null;
  readonly madeMs?: number;
  readonly status?: V1PodStatus;
  readonly name?: string;
}

/** A Pod with its Secret, as a service leaves it. @returns its name */
const leave = ({ heardMs, installationId = randomUUID(), madeMs, status, name }: Wish): string => {
  const spec = specOf(randomUUID());
  const pod = newPod(
    {
      secret,
      installationId,
      nodeId: randomUUID(),
      runtimeImage: "registry.test/runtime:1",
      image: "registry.test/tools:1",
      runtimeClass: null,
      limits: { memoryBytes: 1, cpus: 1, diskBytes: 1 },
    },
    spec,
  );
  const annotations = heardMs === null ? {} : { [HEARD_ANNOTATION]: new Date(heardMs).toISOString() };
  const metadata = { ...pod.metadata, annotations, name: name ?? podName(spec.id) };
  const made = server.store.create("pods", { ...pod, metadata } as Stored);
  server.store.create("secrets", startKeySecret(made, spec.id, sandboxKeys(secret, spec.id)) as Stored);
  server.store.update(
    "pods",
    metadata.name,
    (object) =>
      ({
        ...object,
        metadata: {
          ...object.metadata,
          ...(madeMs !== undefined && { creationTimestamp: new Date(madeMs) }),
        },
        status: status ?? { phase: "Running" },
      }) as Stored,
  );
  return metadata.name;
};

const names = (kind: "pods" | "secrets"): readonly (string | undefined)[] =>
  server.store.list(kind, "").map(({ metadata }) => metadata?.name);
const sign = (name: string): unknown =>
  server.store.update("pods", name, (pod) => ({
    ...pod,
    metadata: { ...pod.metadata, annotations: { [HEARD_ANNOTATION]: new Date().toISOString() } },
  }));
const ended = (atMs: number): V1PodStatus => ({
  phase: "Failed",
  containerStatuses: [
    {
      name: "sandbox",
      image: "",
      imageID: "",
      ready: false,
      restartCount: 0,
      state: { terminated: { exitCode: 1, finishedAt: new Date(atMs) } },
    },
  ],
});

it("finds the Pods of every installation whose service was silent for an hour", async () => {
  const silent = [
    leave({ heardMs: NOW - SILENT_MS - 1000 }),
    leave({ heardMs: NOW - 30 * DAY_MS, status: ended(NOW - DAY_MS) }),
  ];
  leave({ heardMs: NOW });
  leave({ heardMs: NOW - SILENT_MS + 1000 });
  // Its clock is ahead of ours.
  leave({ heardMs: NOW + DAY_MS });
  expect((await strayPods(place, NOW)).map(({ name }) => name)).toEqual(silent);
});

it("takes a Pod without any sign only if it ended a day ago: its service may be of a release that gave none", async () => {
  const madeMs = NOW - 30 * DAY_MS;
  const gone = [
    leave({ heardMs: null, madeMs, status: ended(NOW - DAY_MS - 1000) }),
    leave({ heardMs: null, madeMs, status: { phase: "Failed", reason: "Evicted" } }),
  ];
  leave({ heardMs: null, madeMs });
  leave({ heardMs: null, madeMs, status: { phase: "Pending" } });
  leave({ heardMs: null, madeMs, status: ended(NOW - DAY_MS + 60_000) });
  expect((await strayPods(place, NOW)).map(({ name }) => name)).toEqual(gone);
});

it("leaves Pods alone that only look like a sandbox", async () => {
  const name = leave({ heardMs: 0, name: "of-another-program" });
  server.store.update("pods", leave({ heardMs: 0 }), (pod) => ({
    ...pod,
    metadata: { ...pod.metadata, labels: { ...pod.metadata?.labels, [LABELS.component]: "database" } },
  }));
  expect(await strayPods(place, NOW)).toEqual([]);
  expect(names("pods")).toContain(name);
});

it("does not remove a Pod whose service comes back after the list was made", async () => {
  const name = leave({ heardMs: 0 });
  const [stray] = await strayPods(place, NOW);
  sign(name);
  await expect(stray?.remove()).rejects.toThrow("its service gives signs again");
  // Nor between the last look and the removal.
  const cluster = await Cluster.open(place);
  const seen = await cluster.readPod(name);
  sign(name);
  await expect(cluster.deletePodAsSeen(seen ?? {})).rejects.toMatchObject({ status: 409 });
  expect(names("pods")).toEqual([name]);
});

it("says what the cluster refuses", async () => {
  const name = leave({ heardMs: 0 });
  const [stray] = await strayPods(place, NOW);
  server.faults.forbidden.add("delete pods");
  await expect(stray?.remove()).rejects.toThrow('cannot delete resource "pods"');
  server.faults.forbidden.clear();
  expect(names("pods")).toEqual([name]);
});

it(
  "is a part of `platform doctor --orphans` for the cluster of the settings",
  async () => {
    const [installationId, other] = [randomUUID(), randomUUID()];
    const now = new Date().getTime();
    const own = [leave({ heardMs: 0, installationId }), leave({ heardMs: 0, installationId })];
    const living = leave({ heardMs: now, installationId });
    const elsewhere = leave({ heardMs: 0, installationId: other });
    const doctor = async (of: string | null, ...more: readonly string[]) => {
      const args = [CLI, "doctor", "--orphans", "--json", ...(of === null ? [] : ["--of", of]), ...more];
      const env = {
        ...process.env,
        PLATFORM_DATA_DIR: directory,
        PLATFORM_SANDBOX_PROVIDER: "kubernetes",
        PLATFORM_KUBERNETES_CONFIG: place.kubeconfig,
        PLATFORM_KUBERNETES_NAMESPACE: NAMESPACE,
        PLATFORM_KUBERNETES_RUNTIME_IMAGE: "registry.test/runtime:1",
        PLATFORM_KUBERNETES_IMAGE: "registry.test/tools:1",
        PLATFORM_KUBERNETES_EGRESS_ADDRESS: "192.0.2.1",
      };
      const { stdout } = await promisify(execFile)(process.execPath, args, { env });
      return (JSON.parse(stdout) as { orphans: readonly object[] }).orphans;
    };
    const expected = own.map((what) => ({
      kind: "pod",
      what,
      data_dir: null,
      installation_id: installationId,
      pids: [],
      problem: null,
    }));
    expect(await doctor(installationId)).toEqual(expected);
    expect(names("pods")).toHaveLength(4);
    // The data directory of a service names its installation.
    writeFileSync(path.join(directory, "installation-id"), `${installationId}\n`);
    await expect(doctor(null, "--end")).rejects.toThrow("Add --yes");
    expect(names("pods")).toHaveLength(4);
    // Without --of: those of its own installation alone.
    expect(await doctor(null, "--end", "--yes")).toEqual(expected);
    expect([names("pods"), names("secrets")]).toEqual([
      [living, elsewhere],
      [living, elsewhere],
    ]);
    expect(await doctor(installationId, "--end", "--yes")).toEqual([]);
  },
  TEST_MS,
);
