/**
 * The hosts to which a sandbox may connect (api.md 8), decided by name. The proxy checks the address behind a name.
 *
 *  E1 `platform.internal` is this service, on port 80 only. The name never means another machine.
 *  E2 `llm.platform.internal` is the managed model gateway, if the account has one.
 *  E3 A request over plain HTTP to a package registry of the sandbox goes to the package proxy, if E4 allows the registry's own host.
 *  E4 Other hosts: port 80 or 443, if they are on the allow list, or belong to a model provider whose key is among the
 *     project's secrets.
 */
import { MODEL_PROVIDERS } from "../domain/model.ts";
import { type PackageKind, PYPI_HOST, type PackageSources, npmAddress } from "../domain/packages.ts";

export interface EgressPolicy {
  /** Host names, `*.example.org` for all subdomains, `*` for every public host. */
  readonly allow: readonly string[];
  readonly secretNames: readonly string[];
  /** The origin of the service's own listener. Null: unreachable. */
  readonly serviceUrl: string | null;
  readonly llmUpstream: string | null;
  /** Registries that the package proxy answers for, and the project that asks. Absent: none. */
  readonly packages?: (PackageSources & { readonly projectId: string }) | undefined;
}

export type EgressDecision =
  /** Trusted and set by the operator: dialled without checks. `name`: the Host header; null: the client's. */
  | { readonly kind: "origin"; readonly origin: URL; readonly name: string | null }
  /** Public: resolved, checked, then dialled. */
  | { readonly kind: "public"; readonly host: string; readonly port: number }
  | { readonly kind: "refused"; readonly reason: string };

export const SERVICE_HOST = "platform.internal";
export const MODEL_GATEWAY_HOST = "llm.platform.internal";
const PORTS = new Set([80, 443]);

/** Hosts of model providers. They are open while a secret with one of their keys is set (api.md 8). */
const MODEL_HOSTS: ReadonlyMap<string, string> = new Map(
  MODEL_PROVIDERS.flatMap(({ keys, host }) => keys.map((key) => [key, host] as const)),
);

const canonical = (host: string): string =>
  host
    .toLowerCase()
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "");

const matches = (pattern: string, host: string): boolean => {
  const wanted = canonical(pattern);
  if (wanted === "*") return true;
  return wanted.startsWith("*.") ? host.endsWith(wanted.slice(1)) : host === wanted;
};

const internal = (policy: EgressPolicy, host: string, port: number): EgressDecision => {
  if (port !== 80) return { kind: "refused", reason: `${host} answers plain HTTP on port 80 only` };
  if (host === SERVICE_HOST && policy.serviceUrl !== null)
    return { kind: "origin", origin: new URL(policy.serviceUrl), name: null };
  if (host === MODEL_GATEWAY_HOST && policy.llmUpstream !== null) {
    const origin = new URL(policy.llmUpstream);
    return { kind: "origin", origin, name: origin.host };
  }
  return { kind: "refused", reason: `${host} is not available` };
};

/** @param name as the client wrote it; an IPv6 address with or without brackets */
export const decideEgress = (policy: EgressPolicy, name: string, port: number): EgressDecision => {
  const host = canonical(name);
  if (host === SERVICE_HOST || host.endsWith(`.${SERVICE_HOST}`)) return internal(policy, host, port);
  if (!PORTS.has(port)) return { kind: "refused", reason: `port ${port} is not open to sandboxes` };
  const models = policy.secretNames.flatMap((secret) => MODEL_HOSTS.get(secret) ?? []);
  return [...policy.allow, ...models].some((pattern) => matches(pattern, host))
    ? { kind: "public", host, port }
    : { kind: "refused", reason: `${host} is not on the list of allowed hosts` };
};

/** Whether a policy lets a sandbox connect to the host and port of a URL. The address behind the name is checked by who connects. */
export const mayReach = (policy: EgressPolicy, url: URL): boolean => {
  const standard = url.protocol === "https:" ? 443 : 80;
  return decideEgress(policy, url.hostname, url.port === "" ? standard : Number(url.port)).kind === "public";
};

/** A request that the package proxy answers. */
export interface RegistryAsked {
  readonly kind: PackageKind;
  /** The upstream registry or index, without a slash at the end. */
  readonly source: URL;
  readonly projectId: string;
}

/** Whether a sandbox may use a registry: by its host, since the operator has chosen its port. */
export const mayUse = (policy: EgressPolicy, source: string): boolean =>
  decideEgress(policy, new URL(source).hostname, 443).kind === "public";

/**
 * The registry that a plain request is for (E3).
 * @param url as the sandbox wrote it, with the scheme http
 * @returns null if the request is for another host
 */
export const registryAsked = (policy: EgressPolicy, url: URL): RegistryAsked | null => {
  const { packages } = policy;
  if (packages === undefined) return null;
  const { npm, pypi, projectId } = packages;
  if (npm !== null && new URL(npmAddress(npm)).host === url.host && mayUse(policy, npm))
    return { kind: "npm", source: new URL(npm), projectId };
  if (pypi !== null && url.host === PYPI_HOST && mayUse(policy, pypi))
    return { kind: "pypi", source: new URL(pypi), projectId };
  return null;
};
