/** Refusals, ends and secrets of sandboxes in a cluster: over a fake cluster whose Pods are real processes. */
import { randomBytes, randomUUID } from "node:crypto";
import { join } from "node:path";
import * as Effect from "effect/Effect";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { bundleDaemon } from "../../../daemon/bundle/bundle.ts";
import { findOrphans } from "../../../src/installation/operator/orphans.ts";
import { HEARD_ANNOTATION, podName } from "../../../src/sandbox/kubernetes/pod.ts";
import { SandboxProvider } from "../../../src/sandbox/port.ts";
import { CANARY, specOf } from "../../conformance/sandboxes/sandbox.ts";
import { WAIT_MS } from "../../support/patience.ts";
import { lacksCluster } from "../../support/requirements.ts";
import { TestCluster, ask } from "./subject.ts";
import { deepTest, onlyDeep } from "../../support/vitest/rings.ts";

const cluster = lacksCluster === null ? await TestCluster.open() : null;

/** One life of a service. */
const service = <A>(
  body: (provider: SandboxProvider["Service"]) => Effect.Effect<A, unknown, SandboxProvider>,
  changes: Parameters<TestCluster["layer"]>[0] = {},
): Promise<A> => {
  if (cluster === null) throw new Error("no cluster");
  return Effect.runPromise(Effect.provide(Effect.flatMap(SandboxProvider, body), cluster.layer(changes)));
};

const failure = (create: Effect.Effect<void, { readonly message: string }>) =>
  Effect.map(Effect.flip(create), ({ message }) => message);

describe.skipIf(lacksCluster !== null)(`a cluster with sandboxes ${lacksCluster ?? ""}`, () => {
  const { server, kubelet } = cluster ?? ({} as TestCluster);
  afterEach(async () => {
    await cluster?.setDaemon();
    server.faults.forbidden.clear();
    server.faults.quotaUsedUp = false;
    kubelet.unschedulable = false;
  });
  afterAll(() => cluster?.close());

  it("tells the cluster no token and no secret, and removes the start key [I16]", () =>
    service((provider) =>
      Effect.gen(function* () {
        const spec = specOf(randomUUID());
        server.sent.length = 0;
        yield* provider.create(spec);
        expect(server.sent.map(({ method, kind }) => `${method} ${kind}`)).toEqual([
          "POST pods",
          "POST secrets",
          "DELETE secrets",
        ]);
        expect(JSON.stringify(server.sent)).not.toContain(CANARY);
        expect(server.store.list("secrets", "")).toEqual([]);
        // The daemon has them all the same.
        expect(yield* ask(spec.id, "/settings")).toContain(`${CANARY}-token`);
        expect(yield* ask(spec.id, "/environment")).not.toContain(CANARY);
        yield* provider.destroy(spec.id);
      }),
    ));

  deepTest("runs the agent as another user, who reads neither keys nor the platform's files", () =>
    service((provider) =>
      Effect.gen(function* () {
        const spec = specOf(randomUUID());
        yield* provider.create(spec);
        const run = (script: string) =>
          Effect.map(
            ask(spec.id, "/run", { as: "agent", argv: ["sh", "-c", script] }),
            (text) => JSON.parse(text) as { readonly code: number; readonly stdout: string },
          );
        expect(yield* run("id -u; grep CapEff /proc/self/status; touch /workspace/mine")).toMatchObject({
          code: 0,
          stdout: "1001\nCapEff:\t0000000000000000\n",
        });
        for (const attempt of [
          "ls /run/platform",
          "ls /run/platform-key",
          "touch /run/platform/x",
          "rm /run/platform/d.sock",
          "touch /opt/platform/lib/node",
          "cat /proc/1/environ",
        ])
          expect((yield* run(attempt)).code, attempt).not.toBe(0);
        yield* provider.destroy(spec.id);
      }),
    ),
  );

  it("starts the real daemon, which answers over the link", async () => {
    if (cluster === null) return;
    const { path } = await bundleDaemon(join(cluster.directory, "daemon.cjs"));
    await cluster.setDaemon(path);
    await service((provider) =>
      Effect.gen(function* () {
        const sessionId = randomUUID();
        const spec = specOf(randomUUID(), {
          sessionId,
          environment: {
            PLATFORM_TOKEN: `${CANARY}-token`,
            PLATFORM_SERVICE_PORT: "8000",
            PLATFORM_PROJECT_ID: randomUUID(),
            PLATFORM_SESSION_ID: sessionId,
            PLATFORM_BRANCH_NAME: sessionId,
            PLATFORM_DEFAULT_BRANCH: "main",
            PLATFORM_REPO_URL: "http://platform.internal/repository.git",
            PLATFORM_API_URL: "http://platform.internal",
            PLATFORM_AGENT_NAME: "default",
          },
        });
        yield* provider.create(spec);
        expect(JSON.parse(yield* ask(spec.id, "/platform/health"))).toMatchObject({
          status: "starting",
          repo: { url: "http://platform.internal/repository.git" },
        });
        expect(JSON.parse(yield* ask(spec.id, "/platform/logs"))).toMatchObject({
          code: "invalid_user_context",
        });
        yield* provider.end(spec.id);
        expect(yield* provider.logs(spec.id)).not.toContain(CANARY);
        yield* provider.destroy(spec.id);
      }),
    );
  });

  onlyDeep(() => {
    it.each([
      [
        "memory_exceeded",
        {
          containerStatuses: [
            {
              name: "sandbox",
              image: "",
              imageID: "",
              ready: false,
              restartCount: 0,
              state: { terminated: { exitCode: 137, reason: "OOMKilled" } },
            },
          ],
        },
      ],
      [
        "disk_exceeded",
        { phase: "Failed", reason: "Evicted", message: 'Usage of EmptyDir volume "files" exceeds the limit' },
      ],
      ["exited", { phase: "Failed", reason: "Evicted", message: "The node was low on resource: memory." }],
      ["absent", { phase: "Unknown", reason: "NodeLost" }],
    ] as const)(
      "reports %s as the cluster reports it, also to the next service [R06]",
      async (code, status) => {
        const spec = specOf(randomUUID());
        await service((provider) =>
          Effect.gen(function* () {
            yield* provider.create(spec);
            kubelet.setStatus(
              podName(spec.id),
              (old) => ({ ...old, ...structuredClone(status) }) as typeof old,
            );
            expect((yield* provider.awaitExit(spec.id)).code).toBe(code);
          }),
        );
        await service((provider) =>
          Effect.gen(function* () {
            expect((yield* provider.awaitExit(spec.id)).code).toBe(code);
            yield* provider.destroy(spec.id);
          }),
        );
        if (code !== "absent") expect(cluster?.leftovers(spec.id)).toEqual([]);
      },
    );
  });

  it("reports the end of a sandbox whose Pod another removed", () =>
    service((provider) =>
      Effect.gen(function* () {
        const spec = specOf(randomUUID());
        yield* provider.create(spec);
        server.store.delete("pods", podName(spec.id), 10);
        expect((yield* provider.awaitExit(spec.id)).code).toMatch(/absent|exited/);
        yield* provider.destroy(spec.id);
      }),
    ));

  onlyDeep(() => {
    it.each([
      ["no capacity: the namespace's quota is used up", (): void => void (server.faults.quotaUsedUp = true)],
      [
        "the service lacks a right in the namespace",
        (): void => void server.faults.forbidden.add("create pods"),
      ],
      [
        "no capacity: a LimitRange of the namespace allows no sandbox of this size",
        (): void =>
          void (server.faults.refusesPods =
            'pods "x" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2147483648'),
      ],
      ["no capacity: the cluster has no node", (): void => void (kubelet.unschedulable = true)],
    ] as const)('says "%s", and starts the sandbox once the cluster allows it', async (why, fault) => {
      const spec = specOf(randomUUID(), { bootDeadlineMs: 1501 });
      await service((provider) =>
        Effect.gen(function* () {
          fault();
          const { code, message } = yield* Effect.flip(provider.create(spec));
          expect(message).toContain(why);
          expect(code).toBe(why.startsWith("no capacity") ? "no_capacity" : undefined);
          yield* provider.destroy(spec.id);
          server.faults.forbidden.clear();
          server.faults.quotaUsedUp = false;
          server.faults.refusesPods = null;
          kubelet.unschedulable = false;
          yield* provider.create({ ...spec, bootDeadlineMs: 60_000 });
          yield* provider.destroy(spec.id);
        }),
      );
      expect(cluster?.leftovers(spec.id)).toEqual([]);
    });
  });

  deepTest("names an image that cannot be pulled, at once", () =>
    service((provider) =>
      Effect.gen(function* () {
        const spec = specOf(randomUUID(), { image: "registry.test/missing:1" });
        expect(yield* failure(provider.create(spec))).toContain(
          "image unavailable: the cluster cannot pull registry.test/missing:1",
        );
        yield* provider.destroy(spec.id);
        expect(cluster?.leftovers(spec.id)).toEqual([]);
      }),
    ),
  );

  deepTest("continues a start that was cut off between its steps [R02]", () =>
    service((provider) =>
      Effect.gen(function* () {
        const spec = specOf(randomUUID());
        server.faults.forbidden.add("create secrets");
        expect(yield* failure(provider.create(spec))).toContain("forbidden");
        expect((yield* provider.list).map(({ id }) => id)).toContain(spec.id);
        server.faults.forbidden.clear();
        yield* provider.create(spec);
        expect(JSON.parse(yield* ask(spec.id, "/platform/health"))).toMatchObject({ status: "ready" });
        yield* provider.destroy(spec.id);
      }),
    ),
  );

  deepTest("sees an end that came while its watch was broken and the versions were compacted", () =>
    service((provider) =>
      Effect.gen(function* () {
        const spec = specOf(randomUUID());
        yield* provider.create(spec);
        server.store.compact();
        server.breakConnections();
        kubelet.killContainer(podName(spec.id), "sandbox");
        expect((yield* provider.awaitExit(spec.id)).code).toBe("exited");
        yield* provider.destroy(spec.id);
      }),
    ),
  );

  deepTest("gives up a sandbox whose keys it no longer has, and removes it", async () => {
    const spec = specOf(randomUUID());
    await service((provider) => provider.create(spec));
    await service(
      (provider) =>
        Effect.gen(function* () {
          expect(yield* provider.list).toMatchObject([{ id: spec.id, state: "exited" }]);
          expect((yield* provider.awaitExit(spec.id)).message).toContain("no longer has the keys");
          yield* provider.destroy(spec.id);
        }),
      { secret: randomBytes(32) },
    );
    expect(cluster?.leftovers(spec.id)).toEqual([]);
  });

  deepTest("gives signs of life, so that only Pods without a service are orphans", async () => {
    const spec = specOf(randomUUID());
    const name = podName(spec.id);
    const { installationId, cluster: place } = (cluster ?? ({} as TestCluster)).options();
    const sign = () =>
      Date.parse(server.store.get("pods", name).metadata?.annotations?.[HEARD_ANNOTATION] ?? "");
    const orphans = (end: boolean) =>
      Effect.runPromise(findOrphans({ end, of: installationId, engine: null, cluster: place }));
    const begun = new Date().getTime() - 1000;
    await service((provider) => provider.create(spec));
    expect(sign()).toBeGreaterThan(begun);
    expect(await orphans(true)).toEqual([]);
    const silence = () =>
      server.store.update("pods", name, (pod) => ({
        ...pod,
        metadata: {
          ...pod.metadata,
          annotations: { ...pod.metadata?.annotations, [HEARD_ANNOTATION]: "2026-01-01T00:00:00Z" },
        },
      }));
    silence();
    expect(await orphans(false)).toMatchObject([
      { kind: "pod", what: name, installation_id: installationId },
    ]);
    await service(() => Effect.promise(() => expect.poll(sign, { timeout: WAIT_MS }).toBeGreaterThan(begun)));
    expect(await orphans(true)).toEqual([]);
    await service((provider) =>
      Effect.gen(function* () {
        expect(yield* provider.list).toMatchObject([{ id: spec.id, state: "running" }]);
        expect(JSON.parse(yield* ask(spec.id, "/platform/health"))).toMatchObject({ status: "ready" });
      }),
    );
    silence();
    expect(await orphans(true)).toMatchObject([{ what: name, problem: null }]);
    expect(cluster?.leftovers(spec.id)).toEqual([]);
  });

  deepTest("never touches a Pod of another installation", async () => {
    const spec = specOf(randomUUID());
    await service((provider) => provider.create(spec));
    await service(
      (provider) =>
        Effect.gen(function* () {
          expect(yield* provider.list).toEqual([]);
          expect(yield* failure(provider.create(spec))).toContain("belongs to another installation");
          expect(yield* failure(provider.destroy(spec.id))).toContain("belongs to another installation");
        }),
      { installationId: randomUUID() },
    );
    await service((provider) => provider.destroy(spec.id));
  });
});
