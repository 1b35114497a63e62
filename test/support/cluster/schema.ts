/**
 * Checks objects as an API server does. Names and types of fields are those of the published OpenAPI document, in the form of
 * `@kubernetes/client-node`'s generated types. The rules of a Pod's parts are written here, after the API reference.
 */
import * as kubernetes from "@kubernetes/client-node";
import { isRecord } from "../../../src/ground/record.ts";

interface Attribute {
  readonly baseName: string;
  readonly type: string;
}

const typed = kubernetes as unknown as Readonly<
  Record<string, { readonly getAttributeTypeMap?: () => readonly Attribute[] } | undefined>
>;

/** Faults of a value, each with its path. */
export const faultsOf = (value: unknown, type: string, path: string): readonly string[] => {
  if (value === undefined) return [];
  const list = /^Array<(.+)>$/.exec(type)?.[1];
  if (list !== undefined)
    return Array.isArray(value)
      ? value.flatMap((item, at) => faultsOf(item, list, `${path}[${at}]`))
      : [`${path}: must be a list`];
  const map = /^\{ \[key: string\]: (.+); \}$/.exec(type)?.[1];
  if (map !== undefined)
    return isRecord(value)
      ? Object.entries(value).flatMap(([key, item]) => faultsOf(item, map, `${path}.${key}`))
      : [`${path}: must be an object`];
  if (["string", "number", "boolean"].includes(type))
    return typeof value === type ? [] : [`${path}: must be a ${type}`];
  const attributes = typed[type]?.getAttributeTypeMap?.();
  if (attributes === undefined) return [];
  if (!isRecord(value)) return [`${path}: must be an object`];
  return Object.entries(value).flatMap(([name, item]) => {
    const attribute = attributes.find(({ baseName }) => baseName === name);
    return attribute === undefined
      ? [`unknown field "${path}.${name}"`]
      : faultsOf(item, attribute.type, `${path}.${name}`);
  });
};

const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const LABEL = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/;
const QUANTITY = /^[0-9]+(\.[0-9]+)?(m|[KMGTPE]i?|)$/;

const rule = (holds: boolean | undefined, fault: string): readonly string[] =>
  holds === true ? [] : [fault];

const containerFaults = (
  container: kubernetes.V1Container,
  volumes: ReadonlySet<string>,
): readonly string[] => {
  const at = `spec.containers[${container.name}]`;
  const { securityContext: security, resources } = container;
  return [
    ...rule(container.image !== undefined && container.image !== "", `${at}.image: Required value`),
    ...rule(
      container.volumeMounts?.every(({ name }) => volumes.has(name)),
      `${at}.volumeMounts: Not found`,
    ),
    ...rule(
      container.volumeMounts?.every(
        ({ subPath = "" }) => !subPath.startsWith("/") && !subPath.includes(".."),
      ),
      `${at}.volumeMounts.subPath: must be relative`,
    ),
    ...rule(
      new Set(container.volumeMounts?.map(({ mountPath }) => mountPath)).size ===
        container.volumeMounts?.length,
      `${at}.volumeMounts: must be unique`,
    ),
    ...rule(
      !(security?.runAsNonRoot === true && security.runAsUser === 0),
      `${at}: runAsNonRoot with user 0`,
    ),
    ...rule(
      [...Object.values(resources?.limits ?? {}), ...Object.values(resources?.requests ?? {})].every(
        (given) => QUANTITY.test(given),
      ),
      `${at}.resources: quantities must match`,
    ),
  ];
};

/** What the API server's own validation and the Pod Security level `baseline` say of a new Pod. */
export const podFaults = (pod: kubernetes.V1Pod): readonly string[] => {
  const { metadata, spec } = pod;
  const containers = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])];
  const volumes = new Set(spec?.volumes?.map(({ name }) => name));
  const allowed = new Set([
    "CHOWN",
    "FOWNER",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "SETFCAP",
    "SYS_CHROOT",
  ]);
  return [
    ...faultsOf(pod, "V1Pod", "Pod"),
    ...rule(
      NAME.test(metadata?.name ?? "") && (metadata?.name ?? "").length <= 253,
      "metadata.name: Invalid value",
    ),
    ...rule(
      Object.values(metadata?.labels ?? {}).every((value) => LABEL.test(value) && value.length <= 63),
      "metadata.labels: Invalid value",
    ),
    ...rule(
      new Set(containers.map(({ name }) => name)).size === containers.length,
      "spec.containers: Duplicate",
    ),
    ...rule(
      spec?.dnsPolicy !== "None" || (spec.dnsConfig?.nameservers ?? []).length > 0,
      "spec.dnsConfig.nameservers: must provide at least one DNS nameserver when `dnsPolicy` is None",
    ),
    ...containers.flatMap((container) => containerFaults(container, volumes)),
    ...rule(
      containers.every(
        ({ securityContext: security }) =>
          security?.capabilities?.add?.every((name) => allowed.has(name)) ?? true,
      ) && spec?.securityContext?.seccompProfile?.type === "RuntimeDefault",
      'violates PodSecurity "baseline:latest"',
    ),
  ];
};
