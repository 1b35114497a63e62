/** Settings of sandboxes in a cluster. They count only with PLATFORM_SANDBOX_PROVIDER=kubernetes. */
import { define } from "./setting.ts";

export const KUBERNETES_SETTINGS = define({
  PLATFORM_KUBERNETES_CONFIG: {
    group: "Kubernetes",
    kind: "text",
    fallback: null,
    shown: "the service account of the service's own Pod",
    about:
      "The path of a kubeconfig file. Its current context is used. Set it if the service runs outside the cluster.",
  },
  PLATFORM_KUBERNETES_NAMESPACE: {
    group: "Kubernetes",
    kind: "structured",
    fallback: "platform-sandboxes",
    expects: "name of a namespace",
    about: "The namespace of the sandboxes. It must exist, and have no other use.",
  },
  PLATFORM_KUBERNETES_RUNTIME_IMAGE: {
    group: "Kubernetes",
    kind: "structured",
    fallback: null,
    expects: "reference to an image in a registry",
    shown: "none; needed",
    about: "The image with the platform's own programs, which `platform images runtime` prepares.",
  },
  PLATFORM_KUBERNETES_IMAGE: {
    group: "Kubernetes",
    kind: "structured",
    fallback: null,
    expects: "reference to an image in a registry",
    shown: "none; needed",
    about: "The image of sandboxes whose project names none. Any Linux image for x86-64.",
  },
  PLATFORM_KUBERNETES_RUNTIME_CLASS: {
    group: "Kubernetes",
    kind: "structured",
    fallback: null,
    expects: "name of a RuntimeClass",
    shown: "the cluster's default",
    about: "The RuntimeClass of the sandboxes, for example of gVisor or Kata Containers.",
  },
  PLATFORM_KUBERNETES_PULL_SECRETS: {
    group: "Kubernetes",
    kind: "list",
    separator: ",",
    about: "Secrets in the namespace by which nodes pull the images (`imagePullSecrets`).",
  },
  PLATFORM_KUBERNETES_EGRESS_ADDRESS: {
    group: "Kubernetes",
    kind: "structured",
    fallback: null,
    expects: "IP address or host name",
    shown: "none; needed",
    about:
      "Where sandboxes reach the egress listener of this node, on PLATFORM_KUBERNETES_EGRESS_PORT. It must stay the same when the service restarts. The service " +
      "resolves a name at its start, because sandboxes have no DNS.",
  },
  PLATFORM_KUBERNETES_EGRESS_HOST: {
    group: "Kubernetes",
    kind: "structured",
    fallback: "0.0.0.0",
    expects: "IP address",
    about:
      "The address on which the egress listener listens. It answers only sandboxes of this node, by their keys.",
  },
  PLATFORM_KUBERNETES_EGRESS_PORT: {
    group: "Kubernetes",
    kind: "integer",
    fallback: 7444,
    min: 1,
    max: 65_535,
    about: "The port of the egress listener.",
  },
});
