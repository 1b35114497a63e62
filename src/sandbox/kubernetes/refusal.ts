/** The API server's reasons against a sandbox's Pod, each with its remedy. */
import { NoCapacity } from "../operations.ts";
import { ClusterFailure } from "./cluster.ts";

export interface Refusal {
  readonly kind:
    | "quota"
    | "limit_range"
    | "runtime_class"
    | "pod_security"
    | "rights"
    | "namespace"
    | "other";
  readonly message: string;
  /** The remedy. */
  readonly todo: string;
}

const REMEDIES: Readonly<Record<Refusal["kind"], string>> = {
  quota: "Raise the namespace's ResourceQuota, or wait until other sandboxes end",
  limit_range:
    "Change the namespace's LimitRange, or PLATFORM_SANDBOX_MEMORY_MB, PLATFORM_SANDBOX_CPUS and PLATFORM_SANDBOX_DISK_MB",
  runtime_class: "Create the RuntimeClass, or correct PLATFORM_KUBERNETES_RUNTIME_CLASS",
  pod_security:
    "Label the namespace pod-security.kubernetes.io/enforce=baseline: the daemon needs four capabilities, to run the agent as another user",
  rights: "Apply the Role and RoleBinding of deploy/kubernetes/base/sandboxes.yaml",
  namespace: "Create the namespace, or correct PLATFORM_KUBERNETES_NAMESPACE",
  other: "Read the message of the cluster",
};

const SAID: readonly (readonly [Refusal["kind"], string, RegExp])[] = [
  ["quota", "no capacity: the namespace's quota is used up", /exceeded quota/],
  [
    "limit_range",
    "no capacity: a LimitRange of the namespace allows no sandbox of this size",
    /usage per (Container|Pod)|ratio per (Container|Pod)/,
  ],
  ["runtime_class", "the cluster does not have the RuntimeClass", /RuntimeClass/],
  ["pod_security", "the namespace's Pod Security level forbids sandboxes", /violates PodSecurity/],
  ["rights", "the service lacks a right in the namespace", /cannot \w+ resource/],
];

/** Why a Pod was not created. */
export const podRefusal = ({ status, message }: ClusterFailure): Refusal => {
  const makeRefusal = (kind: Refusal["kind"], words: string): Refusal => ({
    kind,
    message: words === "" ? message : `${words} (${message})`,
    todo: REMEDIES[kind],
  });
  if (status === 404) return makeRefusal("namespace", "the namespace of the sandboxes does not exist");
  const entry = status === 403 ? SAID.find(([, , pattern]) => pattern.test(message)) : undefined;
  return entry === undefined ? makeRefusal("other", "") : makeRefusal(entry[0], entry[1]);
};

/** Names a refusal. @throws always: NoCapacity if the cluster has no room, which may pass if `kind` is `quota` */
export const rethrow = (error: unknown): never => {
  if (!(error instanceof ClusterFailure) || (error.status !== 403 && error.status !== 404)) throw error;
  const { kind, message, todo } = podRefusal(error);
  const text = `${message}. ${todo}`;
  throw kind === "quota" || kind === "limit_range" ? new NoCapacity(text, kind === "quota") : new Error(text);
};
