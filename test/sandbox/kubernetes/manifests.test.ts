/** The manifests of deploy/kubernetes: what an API server would check, and what has to fit together. */
import {
  type V1ConfigMap,
  type V1Deployment,
  type V1NetworkPolicy,
  type V1Service,
} from "@kubernetes/client-node";
import { expect, it } from "vitest";
import { readConfig } from "../../../src/settings/config.ts";
import { LABELS, LINK_PORT } from "../../../src/sandbox/kubernetes/pod.ts";
import { policyProblems } from "../../../src/sandbox/kubernetes/policies.ts";
import { RIGHTS } from "../../../src/sandbox/kubernetes/rights.ts";
import { rightsOf } from "../../support/cluster/api-server.ts";
import { files, manifests, manifestsOf, roleRules } from "../../support/cluster/manifests.ts";
import { faultsOf } from "../../support/cluster/schema.ts";

const one = <A>(kind: string): A => {
  const [found, ...others] = manifestsOf(kind, "platform");
  expect(others).toEqual([]);
  return found as A;
};
const [settings] = [one<V1ConfigMap>("ConfigMap").data ?? {}];
const pod = one<V1Deployment>("Deployment").spec?.template;

/** As the client library has them: its name for the field `from` is another. */
const policies = JSON.parse(
  JSON.stringify(manifestsOf("NetworkPolicy", "platform-sandboxes")).replaceAll('"from":', '"_from":'),
) as readonly V1NetworkPolicy[];
const LABELS_OF_ONE = { [LABELS.component]: "sandbox", [LABELS.node]: "n", [LABELS.sandbox]: "s" };

it("has every file in the list that is applied", () => {
  expect(files.present.toSorted()).toEqual(files.applied.toSorted());
});

it.each(manifests.map((object) => [object.kind, object.metadata?.name, object] as const))(
  "has only fields of the API in %s %s",
  (kind = "", _name, object) => {
    expect(faultsOf(object, `V1${kind}`, kind)).toEqual([]);
  },
);

it("would notice a field that the API does not have", () => {
  expect(faultsOf({ spec: { replica: 1 } }, "V1Deployment", "Deployment")).toEqual([
    'unknown field "Deployment.spec.replica"',
  ]);
});

it("grants exactly the rights that the service uses", () => {
  const used = RIGHTS.map(
    ({ verb, group, resource }) => `${verb} ${group === "" ? "" : `${group}/`}${resource}`,
  );
  expect([...rightsOf(roleRules)].toSorted()).toEqual(used.toSorted());
  expect(manifests.filter(({ kind }) => kind?.startsWith("Cluster"))).toEqual([]);
});

it("opens the two ports of a sandbox, and nothing else", () => {
  const egressPort = Number(settings["PLATFORM_KUBERNETES_EGRESS_PORT"]);
  expect(policyProblems(policies, LABELS_OF_ONE, egressPort)).toEqual([]);
  expect(policies.some(({ spec }) => JSON.stringify(spec?.ingress ?? []).includes(`${LINK_PORT}`))).toBe(
    true,
  );
  // Each of them is needed: without the one, everything is closed or open.
  expect(policyProblems([], LABELS_OF_ONE, egressPort)).toHaveLength(2);
  expect(policyProblems(policies, LABELS_OF_ONE, egressPort + 1)).toEqual([
    `the NetworkPolicy sandboxes lets more than port ${egressPort + 1} leave the sandboxes`,
  ]);
});

it("has settings that the service accepts, with the names and ports of the other objects", () => {
  const config = readConfig(settings, "/");
  expect(config.sandboxProvider).toBe("kubernetes");
  const services = manifestsOf("Service", "platform") as readonly V1Service[];
  const at = (name: string) => services.find(({ metadata }) => metadata?.name === name)?.spec;
  const { address = "", port } = config.kubernetes?.egress ?? {};
  const egress = at(address.replace(".platform.svc", ""));
  expect(egress?.ports).toMatchObject([{ port, targetPort: "egress" }]);
  // A start reaches the service before it is ready.
  expect(egress?.publishNotReadyAddresses).toBe(true);
  expect(at("platform")?.ports).toMatchObject([{ port: config.port, targetPort: "http" }]);
  for (const { spec } of services)
    expect(pod?.metadata?.labels).toMatchObject(spec?.selector ?? { none: "" });
  expect(pod?.spec?.containers[0]?.ports).toEqual([
    { name: "http", containerPort: config.port },
    { name: "egress", containerPort: port },
  ]);
  expect(
    manifests.some(
      ({ kind, metadata }) => kind === "Namespace" && metadata?.name === config.kubernetes?.namespace,
    ),
  ).toBe(true);
});

it("keeps the cluster's variables for Services from the service's settings", () => {
  // The Service `platform` would set PLATFORM_PORT to a URL.
  expect(pod?.spec?.enableServiceLinks).toBe(false);
});

it("runs the service within the Pod Security level `restricted`", () => {
  expect(pod?.spec?.securityContext).toMatchObject({
    runAsNonRoot: true,
    seccompProfile: { type: "RuntimeDefault" },
  });
  for (const { securityContext } of pod?.spec?.containers ?? [])
    expect(securityContext).toMatchObject({
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"] },
    });
});
