/** The settings of sandboxes in a cluster: what is needed, and what cannot be right. */
import { expect, it } from "vitest";
import { readConfig } from "../../../src/settings/config.ts";
import { isObjectName } from "../../../src/domain/sandbox/kubernetes.ts";
import { settingProblems } from "../../support/settings.ts";

const COMPLETE = {
  PLATFORM_SANDBOX_PROVIDER: "kubernetes",
  PLATFORM_KUBERNETES_RUNTIME_IMAGE: "images.example.com/platform/runtime:1",
  PLATFORM_KUBERNETES_IMAGE: `images.example.com:5000/platform/tools@sha256:${"a".repeat(64)}`,
  PLATFORM_KUBERNETES_EGRESS_ADDRESS: "platform-egress.platform.svc",
};

it("reads what a cluster needs", () => {
  const given = {
    ...COMPLETE,
    PLATFORM_KUBERNETES_CONFIG: "cluster/config",
    PLATFORM_KUBERNETES_RUNTIME_CLASS: "gvisor",
    PLATFORM_KUBERNETES_PULL_SECRETS: "registry, other.registry",
  };
  expect(readConfig(given, "/srv").kubernetes).toEqual({
    kubeconfig: "/srv/cluster/config",
    namespace: "platform-sandboxes",
    runtimeImage: COMPLETE.PLATFORM_KUBERNETES_RUNTIME_IMAGE,
    image: COMPLETE.PLATFORM_KUBERNETES_IMAGE,
    runtimeClass: "gvisor",
    pullSecrets: ["registry", "other.registry"],
    egress: { host: "0.0.0.0", address: "platform-egress.platform.svc", port: 7444 },
  });
});

it("needs nothing for another provider, and then has nothing", () => {
  expect(readConfig({}, "/srv").kubernetes).toBeNull();
  expect(readConfig({ ...COMPLETE, PLATFORM_SANDBOX_PROVIDER: "local" }, "/srv").kubernetes).toBeNull();
});

it("names each setting that is missing", () => {
  expect(settingProblems({ PLATFORM_SANDBOX_PROVIDER: "kubernetes" })).toEqual(
    ["RUNTIME_IMAGE", "IMAGE", "EGRESS_ADDRESS"].map(
      (name) => `PLATFORM_KUBERNETES_${name} is not set; PLATFORM_SANDBOX_PROVIDER=kubernetes needs it`,
    ),
  );
});

it.each([
  ["NAMESPACE", "Sandboxes", "the name of a namespace: at most 63 lower-case letters, digits and -"],
  ["NAMESPACE", "a.b", "the name of a namespace: at most 63 lower-case letters, digits and -"],
  [
    "RUNTIME_IMAGE",
    "https://images.example.com/runtime",
    "a reference to an image in a registry, for example images.example.com/team/tools:3",
  ],
  [
    "IMAGE",
    "tools@sha256:abc",
    "a reference to an image in a registry, for example images.example.com/team/tools:3",
  ],
  ["RUNTIME_CLASS", "gVisor", "the name of a RuntimeClass: lower-case letters, digits, - and ."],
  ["PULL_SECRETS", "my_secret", "names of Secrets"],
  ["EGRESS_ADDRESS", "0.0.0.0", "an IP address or a host name that sandboxes can reach, without a port"],
  [
    "EGRESS_ADDRESS",
    "10.0.0.1:7444",
    "an IP address or a host name that sandboxes can reach, without a port",
  ],
  ["EGRESS_HOST", "localhost", "an IP address"],
  ["EGRESS_PORT", "0", "a whole number from 1 to 65535"],
])("refuses PLATFORM_KUBERNETES_%s=%j: expected %s", (name, value, expected) => {
  const setting = `PLATFORM_KUBERNETES_${name}`;
  expect(settingProblems({ ...COMPLETE, [setting]: value })).toEqual([
    `${setting} is ${JSON.stringify(value)}; expected ${expected}`,
  ]);
});

it("knows the names that the API server accepts", () => {
  for (const name of ["a", "pull-secret", "registry.v2", "a".repeat(63), `${"a".repeat(63)}.b`])
    expect(isObjectName(name), name).toBe(true);
  for (const name of [
    "",
    "-a",
    "a-",
    "A",
    "a_b",
    "a..b",
    "a.",
    "a/b",
    "a".repeat(64),
    "a.".repeat(126) + "ab",
  ])
    expect(isObjectName(name), name).toBe(false);
});
