/**
 * A service whose sandboxes are Pods of a fake cluster with real processes, chosen by its settings, with the real agent
 * runtime: the agent clones, commits and pushes; a service that was killed finds its Pod again; sessions wait for room; and
 * the running service examines itself.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync } from "node:fs";
import { chmod, mkdir, rm, utimes, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ImageStore } from "../../src/sandbox/images/store.ts";
import { FakeApiServer, NAMESPACE, rightsOf } from "../support/cluster/api-server.ts";
import { FakeKubelet } from "../support/cluster/kubelet.ts";
import { manifestsOf, roleRules } from "../support/cluster/manifests.ts";
import { freePort } from "../support/machine/free-port.ts";
import { TEST_MS } from "../support/patience.ts";
import { lacksCluster } from "../support/requirements.ts";
import { POLL } from "../support/service/sessions/live-session.ts";
import { Installation, type Life } from "../support/service/process-service.ts";
import { useRunDatabase } from "../support/service/run-database.ts";
import { deepTest } from "../support/vitest/rings.ts";
import { worksThroughKill } from "./each-provider.ts";

const CLI = path.join(import.meta.dirname, "../../src/operator.ts");

/** Two old images, as a former release leaves them: one has a name. */
const leaveImages = async (images: string): Promise<void> => {
  const store = new ImageStore(images);
  const add = async (digit: string) => {
    const { root } = await store.add(digit, async (draft) => {
      await mkdir(path.join(draft, "root"));
      return { digest: `sha256:${digit.repeat(64)}`, env: {}, user: "", workdir: "", bytes: 1, files: 1 };
    });
    await utimes(path.dirname(root), new Date(0), new Date(0));
  };
  await add("1");
  await add("2");
  await store.remove("2");
};

describe.skipIf(lacksCluster !== null)(`a session in a Pod ${lacksCluster ?? ""}`, () => {
  const database = useRunDatabase();
  let installation: Installation;
  let server: FakeApiServer;
  let kubelet: FakeKubelet;
  let life: Life;
  let directory = "";
  let egressPort = "";

  const settings = (): Record<string, string> => ({
    ...database(),
    PLATFORM_SANDBOX_PROVIDER: "kubernetes",
    PLATFORM_BUILDER: "none",
    PLATFORM_IMAGES_DIR: path.join(directory, "images"),
    PLATFORM_KUBERNETES_CONFIG: path.join(directory, "kubeconfig"),
    PLATFORM_KUBERNETES_NAMESPACE: NAMESPACE,
    PLATFORM_KUBERNETES_RUNTIME_IMAGE: "registry.test/runtime:1",
    PLATFORM_KUBERNETES_IMAGE: "registry.test/tools:1",
    PLATFORM_KUBERNETES_EGRESS_ADDRESS: "localhost",
    PLATFORM_KUBERNETES_EGRESS_HOST: "127.0.0.1",
    PLATFORM_KUBERNETES_EGRESS_PORT: egressPort,
  });
  const platform = (...args: readonly string[]) => {
    const { DATABASE_URL: _ours, ...environment } = process.env;
    return promisify(execFile)(process.execPath, [CLI, ...args, "--json"], {
      env: { ...environment, ...settings(), PLATFORM_DATA_DIR: installation.dataDir },
    });
  };
  const pods = () => server.store.list("pods", "").map(({ metadata }) => metadata?.name ?? "");

  beforeAll(async () => {
    directory = mkdtempSync("/tmp/platform-e2e-k8s-");
    await chmod(directory, 0o755);
    egressPort = String(await freePort());
    server = await FakeApiServer.open();
    server.rights = rightsOf(roleRules);
    const policies = JSON.stringify(manifestsOf("NetworkPolicy", "platform-sandboxes"));
    server.policies = JSON.parse(policies.replaceAll("7444", egressPort)) as readonly object[];
    await writeFile(path.join(directory, "kubeconfig"), server.kubeconfig);
    installation = await Installation.open();
    // What an operator builds the runtime image from.
    await platform("images", "runtime", path.join(directory, "runtime"));
    kubelet = new FakeKubelet({
      server,
      directory,
      images: {
        "registry.test/runtime:1": { root: path.join(directory, "runtime") },
        "registry.test/tools:1": "host",
      },
    });
    await leaveImages(path.join(directory, "images"));
    life = await installation.start(settings());
  }, TEST_MS);
  afterAll(async () => {
    await life?.end("SIGTERM");
    await kubelet?.close();
    server?.close();
    await installation?.close();
    if (directory !== "") await rm(directory, { recursive: true, force: true });
  }, TEST_MS);

  deepTest("removes images that nothing uses, though no sandbox is on this machine", () => {
    expect(readdirSync(path.join(directory, "images")).toSorted()).toEqual([
      "names",
      `sha256-${"1".repeat(64)}`,
    ]);
  });

  it(
    "clones, commits and pushes, also after its service was killed, and brings back what was not pushed",
    { timeout: TEST_MS },
    async () => {
      const begin = () => installation.start(settings());
      life = await worksThroughKill({ installation, life, provider: "kubernetes" }, begin, (id) =>
        expect(pods()).toEqual([`platform-${id}`]),
      );
      await expect.poll(pods, POLL).toEqual([]);
      expect(server.store.list("secrets", "")).toEqual([]);
    },
  );

  deepTest("waits while the namespace's quota is used up, and then starts", async () => {
    server.faults.quotaUsedUp = true;
    server.sent.length = 0;
    const pid = await life.project(installation.sample);
    const { id } = await life.call("POST", `/v1/projects/${pid}/sessions`, {});
    // It has tried twice.
    const tries = () => server.sent.filter(({ method, kind }) => method === "POST" && kind === "pods").length;
    await expect.poll(tries, POLL).toBeGreaterThan(1);
    server.faults.quotaUsedUp = false;
    await life.session(pid, String(id), ["running"]);
    await life.call("POST", `/v1/projects/${pid}/sessions/${String(id)}/stop`);
    await expect.poll(pods, POLL).toEqual([]);
  });

  deepTest("examines itself, which its command leaves to it while it runs", async () => {
    expect(await life.call("POST", "/v1/operator/doctor", {})).toMatchObject({
      provider: "kubernetes",
      usable: true,
      problem: null,
    });
    expect(pods()).toEqual([]);
    const failed = await platform("doctor").catch((error: unknown) => error as { readonly stdout: string });
    expect(JSON.parse(failed.stdout)).toMatchObject({
      usable: false,
      problem: expect.stringContaining("open Service in the dashboard, then Examine"),
    });
  });

  deepTest("fails with no_capacity if no node has room in time", async () => {
    await life.end("SIGTERM");
    // The doctor has the port now.
    expect(JSON.parse((await platform("doctor")).stdout)).toMatchObject({ usable: true, problem: null });
    life = await installation.start({ ...settings(), PLATFORM_BOOT_TIMEOUT_MS: "8000" });
    kubelet.unschedulable = true;
    const pid = await life.project(installation.sample);
    const { id } = await life.call("POST", `/v1/projects/${pid}/sessions`, {});
    const session = await life.session(pid, String(id), ["running", "failed"]);
    expect(session["failure"]).toMatchObject({
      code: "no_capacity",
      message: expect.stringContaining("0/3 nodes are available: 3 Insufficient memory."),
    });
    kubelet.unschedulable = false;
    await expect.poll(pods, POLL).toEqual([]);
  });

  deepTest("refuses to start without the cluster, and says why", async () => {
    await life.end("SIGTERM");
    const gone = { ...settings(), PLATFORM_KUBERNETES_CONFIG: path.join(directory, "gone") };
    const text = server.kubeconfig.replace(server.url, `http://127.0.0.1:${await freePort()}`);
    await writeFile(gone.PLATFORM_KUBERNETES_CONFIG, text);
    await expect(installation.start(gone)).rejects.toThrow(/the cluster's API cannot be reached/);
    server.faults.forbidden.add("list pods");
    await expect(installation.start(settings())).rejects.toThrow(/cannot list resource "pods"/);
    server.faults.forbidden.clear();
    life = await installation.start(settings());
  });
});
