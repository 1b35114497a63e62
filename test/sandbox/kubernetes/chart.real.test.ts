/** The Helm chart of deploy/kubernetes/chart, rendered by Helm itself: it is the manifests, with values. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { readConfig } from "../../../src/settings/config.ts";
import { type Manifest, manifests } from "../../support/cluster/manifests.ts";
import { faultsOf } from "../../support/cluster/schema.ts";
import { helmProgram } from "../../support/requirements.ts";

const CHART = path.join(import.meta.dirname, "../../../deploy/kubernetes/chart");
const HELM = helmProgram ?? "helm";

/** The values with which the chart gives the manifests. */
const NEEDED = {
  publicUrl: "https://agents.example.com",
  image: "images.example.com/platform/service:1",
  sandboxes: {
    runtimeImage: "images.example.com/platform/runtime:1",
    image: "images.example.com/platform/tools:1",
  },
};

interface Rendered {
  readonly status: number | null;
  readonly objects: readonly Manifest[];
  readonly problem: string;
}

/** @param values a file of values, as people write it */
const render = (values: unknown, { release = "platform", namespace = "platform" } = {}): Rendered => {
  const directory = mkdtempSync(path.join(tmpdir(), "platform-chart-"));
  try {
    const file = path.join(directory, "values.yaml");
    // JSON is YAML.
    writeFileSync(file, JSON.stringify(values));
    const args = ["template", release, CHART, "--namespace", namespace, "--values", file];
    const { status, stdout, stderr } = spawnSync(HELM, args, {
      encoding: "utf8",
      env: { PATH: process.env["PATH"], HOME: directory },
    });
    const objects = parseAllDocuments(stdout).map((document) => document.toJS() as Manifest | null);
    return { status, objects: objects.filter((object) => object !== null), problem: stderr };
  } finally {
    rmSync(directory, { recursive: true });
  }
};

// eslint-disable-next-line typescript/no-explicit-any -- each test looks into another kind of object
type Rendering = any;

const rendered = (values: unknown, where?: { release?: string; namespace?: string }): readonly Manifest[] => {
  const { status, objects, problem } = render(values, where);
  expect(problem).toBe("");
  expect(status).toBe(0);
  return objects;
};

const named = (objects: readonly Manifest[], kind: string, name?: string): Rendering => {
  const found = objects.filter(
    (object) => object.kind === kind && (name === undefined || object.metadata?.name === name),
  );
  expect(found).toHaveLength(1);
  return found[0] as unknown as Rendering;
};

/** Additions of a chart to each object: who manages it, and why a Pod starts anew. */
const OF_HELM = new Set([
  "app.kubernetes.io/instance",
  "app.kubernetes.io/managed-by",
  "helm.sh/chart",
  "helm.sh/resource-policy",
  "checksum/settings",
]);

const isEmpty = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length === 0;

/** Without the chart's additions. The label of the service's name is on each object of a chart, not only on its Pod. */
const plain = (object: Manifest): unknown => {
  const { kind } = object;
  const walk = (value: unknown, at: string): unknown => {
    if (Array.isArray(value)) return value.map((one) => walk(one, at));
    if (typeof value !== "object" || value === null) return value;
    const entries = Object.entries(value).flatMap(([name, inner]): [string, unknown][] => {
      const isOfObject =
        at === "metadata.labels" && name === "app.kubernetes.io/name" && kind !== "Deployment";
      if (OF_HELM.has(name) || isOfObject) return [];
      const here = walk(inner, at === "" ? name : `${at}.${name}`);
      return isEmpty(here) && !isEmpty(inner) ? [] : [[name, here]];
    });
    return Object.fromEntries(entries);
  };
  return walk(object, "");
};

const sum = (values: unknown): string =>
  named(rendered(values), "Deployment").spec.template.metadata.annotations["checksum/settings"];

const keyOf = ({ kind, metadata }: Manifest): string =>
  `${kind} ${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`;
const byKey = (objects: readonly Manifest[]) =>
  new Map(objects.map((object) => [keyOf(object), plain(object)] as const));

const title =
  helmProgram === undefined ? "the Helm chart (helm is missing: .ci/helm fetches it)" : "the Helm chart";
describe.skipIf(helmProgram === undefined)(title, () => {
  it("is what the manifests are, and passes Helm's own examination", () => {
    const expected = byKey(manifests);
    // The release's own namespace is not an object of the chart.
    expected.delete("Namespace /platform");
    expect(byKey(rendered(NEEDED))).toEqual(expected);
    const lint = ["lint", "--strict", CHART, "--set-json", `sandboxes=${JSON.stringify(NEEDED.sandboxes)}`];
    lint.push("--set", `publicUrl=${NEEDED.publicUrl},image=${NEEDED.image}`);
    expect(execFileSync(HELM, lint, { encoding: "utf8" })).toContain("0 chart(s) failed");
  });

  it("has only fields of the API, with every value set", () => {
    const objects = rendered({
      ...NEEDED,
      imagePullSecrets: ["pull"],
      secret: "own",
      settings: { PLATFORM_SESSION_CAP: 20 },
      sandboxes: { ...NEEDED.sandboxes, runtimeClass: "gvisor", pullSecrets: ["a", "b"] },
      persistence: { size: "100Gi", storageClass: "fast" },
      ingress: {
        enabled: true,
        className: "nginx",
        annotations: { "nginx.ingress.kubernetes.io/proxy-read-timeout": "3600" },
        tlsSecret: "agents-tls",
      },
      apiPeers: [{ podSelector: { matchLabels: { app: "proxy" } } }],
      podAnnotations: { "example.com/team": "tools" },
      nodeSelector: { "kubernetes.io/arch": "amd64" },
      tolerations: [{ key: "dedicated", operator: "Exists" }],
      affinity: { nodeAffinity: {} },
    });
    for (const object of objects)
      expect(faultsOf(object, `V1${object.kind ?? ""}`, keyOf(object))).toEqual([]);
    expect(named(objects, "Ingress").spec).toMatchObject({
      ingressClassName: "nginx",
      rules: [{ host: "agents.example.com" }],
      tls: [{ hosts: ["agents.example.com"], secretName: "agents-tls" }],
    });
    expect(named(objects, "NetworkPolicy", "platform").spec.ingress[0].from).toHaveLength(1);
    expect(named(objects, "ConfigMap").data).toMatchObject({
      PLATFORM_KUBERNETES_RUNTIME_CLASS: "gvisor",
      PLATFORM_KUBERNETES_PULL_SECRETS: "a,b",
      PLATFORM_SESSION_CAP: "20",
    });
    expect(named(objects, "PersistentVolumeClaim").spec.storageClassName).toBe("fast");
    expect(named(objects, "Deployment").spec.template.spec).toMatchObject({
      imagePullSecrets: [{ name: "pull" }],
      nodeSelector: { "kubernetes.io/arch": "amd64" },
      containers: [{ envFrom: [{ configMapRef: { name: "platform" } }, { secretRef: { name: "own" } }] }],
    });
  });

  it("fits together under every name of release and namespace, with settings that the service accepts", () => {
    const objects = rendered(NEEDED, { release: "agents", namespace: "tools" });
    for (const { metadata } of objects)
      expect(["tools", "tools-sandboxes", undefined]).toContain(metadata?.namespace);
    const config = readConfig(named(objects, "ConfigMap").data, "/");
    expect(config.kubernetes?.namespace).toBe("tools-sandboxes");
    expect(named(objects, "Namespace").metadata.name).toBe("tools-sandboxes");
    expect(config.kubernetes?.egress.address).toBe("agents-egress.tools.svc");
    const labels = named(objects, "Deployment").spec.template.metadata.labels;
    for (const name of ["agents", "agents-egress"])
      expect(labels).toMatchObject(named(objects, "Service", name).spec.selector);
    const sandboxes = named(objects, "NetworkPolicy", "sandboxes").spec;
    for (const peer of [sandboxes.ingress[0].from[0], sandboxes.egress[0].to[0]]) {
      expect(peer.namespaceSelector.matchLabels).toEqual({ "kubernetes.io/metadata.name": "tools" });
      expect(labels).toMatchObject(peer.podSelector.matchLabels);
    }
    expect(named(objects, "RoleBinding").subjects).toEqual([
      { kind: "ServiceAccount", name: "agents", namespace: "tools" },
    ]);
    const long = rendered(NEEDED, { release: "a".repeat(53) });
    for (const { metadata } of long) expect(metadata?.name?.length).toBeLessThanOrEqual(63);
  });

  it("uses what the operator has: a claim, a namespace", () => {
    const objects = rendered({
      ...NEEDED,
      sandboxes: { ...NEEDED.sandboxes, namespace: "agents", createNamespace: false },
      persistence: { existingClaim: "mine" },
    });
    expect(objects.map(({ kind }) => kind)).not.toContain("Namespace");
    expect(objects.map(({ kind }) => kind)).not.toContain("PersistentVolumeClaim");
    expect(named(objects, "Role").metadata.namespace).toBe("agents");
    expect(JSON.stringify(named(objects, "Deployment"))).toContain('"claimName":"mine"');
  });

  it("keeps the values of settings as they are written", () => {
    const settings = {
      PLATFORM_SESSION_CAP: 20_000_000,
      PLATFORM_LOG_LEVEL: 'a "b": {{ c }}\n# d',
      PLATFORM_SANDBOX_CPUS: 0.5,
      PLATFORM_PREVIEW: true,
    };
    const { data } = named(rendered({ ...NEEDED, settings }), "ConfigMap");
    expect(data).toMatchObject({
      PLATFORM_SESSION_CAP: "20000000",
      PLATFORM_LOG_LEVEL: 'a "b": {{ c }}\n# d',
      PLATFORM_SANDBOX_CPUS: "0.5",
      PLATFORM_PREVIEW: "true",
    });
  });

  it("starts the Pod anew when a setting changes", () => {
    expect(sum(NEEDED)).toBe(sum(NEEDED));
    expect(sum(NEEDED)).not.toBe(sum({ ...NEEDED, settings: { PLATFORM_SESSION_CAP: "7" } }));
  });

  it.each([
    [{ publicUrl: "" }, "Set publicUrl: where people reach the service"],
    [{ publicUrl: "agents.example.com" }, "publicUrl"],
    [{ publicUrl: "https://agents.example.com/path" }, "publicUrl"],
    [{ image: "" }, "Set image: the service's image"],
    [{ sandboxes: { image: "x:1" } }, "Set sandboxes.runtimeImage"],
    [{ sandboxes: { runtimeImage: "x:1" } }, "Set sandboxes.image"],
    [
      { sandboxes: { ...NEEDED.sandboxes, namespace: "platform" } },
      "Give the sandboxes a namespace of their own",
    ],
    [{ replicas: 2 }, "additional properties 'replicas' not allowed"],
    [{ settings: { PLATFORM_PORT: "1" } }, "The chart sets PLATFORM_PORT itself"],
    [{ settings: { platform_port: "1" } }, "platform_port"],
    [{ secret: "" }, "secret"],
  ])("refuses %j, and says what to set", (values, problem) => {
    const found = render({ ...NEEDED, ...values });
    expect(found.status).not.toBe(0);
    expect(found.problem).toContain(problem);
  });
});
