/** What a sandbox's Pod and the network policies around it say. */
import { randomBytes, randomUUID } from "node:crypto";
import type { V1NetworkPolicy, V1NetworkPolicySpec } from "@kubernetes/client-node";
import { describe, expect, it } from "vitest";
import { broughtRuntime, type PodOptions, newPod } from "../../../src/sandbox/kubernetes/pod.ts";
import { policyProblems } from "../../../src/sandbox/kubernetes/policies.ts";
import { podObstacle } from "../../../src/sandbox/kubernetes/verdict.ts";
import { secretMark } from "../../../src/sandbox/remote/keys.ts";
import { specOf } from "../../conformance/sandboxes/sandbox.ts";
import { podFaults } from "../../support/cluster/schema.ts";

const OPTIONS: PodOptions = {
  secret: randomBytes(32),
  installationId: randomUUID(),
  nodeId: randomUUID(),
  runtimeImage: "images.test/runtime:1",
  image: "images.test/tools:1",
  runtimeClass: null,
  limits: { memoryBytes: 2 ** 31, cpus: 4, diskBytes: 2 ** 33 },
};

describe("a sandbox's Pod", () => {
  it("names the runtime class and the pull secrets, if the operator does", () => {
    const spec = specOf(randomUUID());
    const plain = newPod(OPTIONS, spec).spec ?? {};
    expect(plain).not.toHaveProperty("runtimeClassName");
    expect(plain).not.toHaveProperty("imagePullSecrets");
    const pod = newPod({ ...OPTIONS, runtimeClass: "gvisor", pullSecrets: ["one", "two"] }, spec);
    expect(pod.spec).toMatchObject({
      runtimeClassName: "gvisor",
      imagePullSecrets: [{ name: "one" }, { name: "two" }],
    });
    expect(podFaults(pod)).toEqual([]);
  });

  it("knows the runtime that it was brought, and what starts it where only the files say that", () => {
    const spec = specOf(randomUUID());
    const runtime = { name: "one", version: "1.2.3", image: "images.test/one@sha256:1" };
    const start = { command: ["{place}/own/one"], variables: { ONE: "1" } };
    expect(broughtRuntime(newPod(OPTIONS, spec))).toBe(null);
    expect(broughtRuntime(newPod(OPTIONS, spec, runtime))).toEqual({ version: "1.2.3" });
    const pod = newPod(OPTIONS, spec, { ...runtime, start });
    expect(broughtRuntime(pod)).toEqual({ version: "1.2.3", start });
    expect(podFaults(pod)).toEqual([]);
  });

  it("has a mark of the secret, which differs from secret to secret and does not contain it", () => {
    const { secret } = OPTIONS;
    expect(secretMark(secret)).toMatch(/^[0-9a-f]{16}$/);
    expect(secretMark(secret)).toBe(secretMark(Buffer.from(secret)));
    expect(secretMark(randomBytes(32))).not.toBe(secretMark(secret));
    expect(Buffer.from(secret).toString("hex")).not.toContain(secretMark(secret));
  });

  it.each([
    ["OutOfmemory", "Node didn't have enough resource: memory", true],
    ["OutOfpods", "Node didn't have enough resource: pods", true],
  ])("has no room at a node that says %s", (reason, message, isRoom) => {
    const pod = { ...newPod(OPTIONS, specOf(randomUUID())), status: { phase: "Failed", reason, message } };
    expect(podObstacle(pod)).toMatchObject({ isRoom, message: expect.stringContaining(message) });
  });
});

describe("network policies", () => {
  const labels = { "platform/component": "sandbox", tier: "a" };
  const service = { podSelector: { matchLabels: { "app.kubernetes.io/name": "platform" } } };
  const narrow: V1NetworkPolicySpec = {
    podSelector: { matchLabels: { "platform/component": "sandbox" } },
    policyTypes: ["Ingress", "Egress"],
    ingress: [{ ["_from"]: [service], ports: [{ port: 7443 }] }],
    egress: [{ to: [service], ports: [{ port: 7444 }] }],
  };
  const problems = (...specs: readonly V1NetworkPolicySpec[]) =>
    policyProblems(
      specs.map((spec, at): V1NetworkPolicy => ({ metadata: { name: `p${at}` }, spec })),
      labels,
      7444,
    );

  it("bound a sandbox if they open its two ports alone", () => {
    expect(problems(narrow)).toEqual([]);
    expect(problems(narrow, { podSelector: {}, policyTypes: ["Ingress", "Egress"] })).toEqual([]);
    const outside = { to: [{ ipBlock: { cidr: "192.0.2.1/32" } }], ports: [{ port: 7444 }] };
    expect(problems({ ...narrow, egress: [outside] })).toEqual([]);
  });

  it.each<readonly [string, V1NetworkPolicySpec["egress"] & object]>([
    ["every destination", [{ ports: [{ port: 7444 }] }]],
    ["every port", [{ to: [service] }]],
    ["DNS", [{ to: [service], ports: [{ port: 7444 }, { port: 53, protocol: "UDP" }] }]],
    ["a range of ports", [{ to: [service], ports: [{ port: 7444, endPort: 9000 }] }]],
    ["every address", [{ to: [{ ipBlock: { cidr: "0.0.0.0/0" } }], ports: [{ port: 7444 }] }]],
  ])("open too much with %s, also beside a narrow one", (_, egress) => {
    expect(problems(narrow, { ...narrow, egress })).toEqual([
      "the NetworkPolicy p1 lets more than port 7444 leave the sandboxes",
    ]);
  });

  it.each<readonly [string, V1NetworkPolicySpec["podSelector"] & object]>([
    ["another label", { matchLabels: { "platform/component": "other" } }],
    ["an expression", { matchExpressions: [{ key: "tier", operator: "NotIn", values: ["a"] }] }],
    ["an absent label", { matchExpressions: [{ key: "tier", operator: "DoesNotExist" }] }],
  ])("do not bound a sandbox that they do not select: %s", (_, podSelector) => {
    expect(problems({ ...narrow, podSelector })).toHaveLength(2);
  });

  it("bound only incoming traffic if they say nothing about types and have no rule for outgoing traffic", () => {
    const { policyTypes: _types, egress: _egress, ...incoming } = narrow;
    expect(problems(incoming)).toEqual([
      "no NetworkPolicy bounds what may leave the sandboxes, so they can reach everything",
    ]);
  });
});
