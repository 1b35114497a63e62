/** What config.ts needs of PLATFORM_KUBERNETES_*. */
import {
  type KubernetesSettings,
  isObjectName,
  parseDialHost,
  parseListenAddress,
  parseNamespace,
  parseRegistryImage,
  parseRuntimeClass,
} from "../domain/sandbox/kubernetes.ts";
import type { SettingReader } from "./setting-reader.ts";
import type { ProviderName } from "./settings.ts";

/** Reads the settings of a cluster. They are required only if the cluster has the sandboxes. */
export const readCluster = (
  read: SettingReader,
  provider: ProviderName,
  kubeconfig: string | null,
): KubernetesSettings | null => {
  const secrets = "PLATFORM_KUBERNETES_PULL_SECRETS";
  const pullSecrets = read.list(secrets);
  const wrong = pullSecrets.find((name) => !isObjectName(name));
  if (wrong !== undefined) read.problem(secrets, wrong, "names of Secrets");
  const namespace = read.parsed("PLATFORM_KUBERNETES_NAMESPACE", parseNamespace);
  const runtimeClass = read.parsed("PLATFORM_KUBERNETES_RUNTIME_CLASS", parseRuntimeClass);
  const host = read.parsed("PLATFORM_KUBERNETES_EGRESS_HOST", parseListenAddress);
  const port = read.integer("PLATFORM_KUBERNETES_EGRESS_PORT");
  const parts = {
    PLATFORM_KUBERNETES_RUNTIME_IMAGE: read.parsed("PLATFORM_KUBERNETES_RUNTIME_IMAGE", parseRegistryImage),
    PLATFORM_KUBERNETES_IMAGE: read.parsed("PLATFORM_KUBERNETES_IMAGE", parseRegistryImage),
    PLATFORM_KUBERNETES_EGRESS_ADDRESS: read.parsed("PLATFORM_KUBERNETES_EGRESS_ADDRESS", parseDialHost),
  };
  if (provider !== "kubernetes") return null;
  const requirements = read.together({ "PLATFORM_SANDBOX_PROVIDER=kubernetes": provider, ...parts });
  if (requirements === null) return null;
  const egress = { host, port, address: requirements.PLATFORM_KUBERNETES_EGRESS_ADDRESS };
  const image = requirements.PLATFORM_KUBERNETES_IMAGE;
  const runtimeImage = requirements.PLATFORM_KUBERNETES_RUNTIME_IMAGE;
  return { kubeconfig, namespace, runtimeImage, image, runtimeClass, pullSecrets, egress };
};
