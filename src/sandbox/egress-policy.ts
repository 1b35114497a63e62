/**
 * The hosts to which a sandbox may connect (api.md 8), decided by name. The proxy checks the address behind a name.
 *
 *  E1 `platform.internal` is this service, on port 80 only, without the doors that are closed inside (domain/person/privileges.ts). The name never means another machine, and the service's other names are closed.
 *  E2 `llm.platform.internal` is the account's own providers of models, by the first part of the path (model-door.ts), and otherwise the
 *     managed model gateway, if the account has one: what the API of a model needs below the configured path, and nothing else of that host.
 *  E3 A request over plain HTTP to a package registry of the sandbox goes to the package proxy, if E4 allows the registry's own host and
 *     the path is below the registry's. No setting opens the rest of a registry's host.
 *  E4 Other hosts: port 80 or 443, if they are on the allow list, or belong to a model provider whose key is among the
 *     project's secrets. The list is the operator's, with the maker's hosts of a person's own subscription (actors/sandboxes/spec.ts).
 *  E5 The addresses behind the service's own names, such as a load balancer's, are closed as these names are. A host that shares one
 *     of them, as at a content network, is open if the list has its own name and not a wildcard alone.
 */
import { dialAddress } from "../domain/service/address.ts";
import { MODEL_HOST } from "../domain/sandbox/account-provider.ts";
import type { PreviewAddress } from "../domain/session/preview.ts";
import { MODEL_PROVIDERS } from "../domain/sandbox/model.ts";
import { isBelow } from "../ground/net/path.ts";
import {
  type PackageKind,
  PYPI_HOST,
  type PackageSources,
  npmAddress,
} from "../domain/environment/packages.ts";

export interface EgressPolicy {
  /** Host names, `*.example.org` for all subdomains, `*` for every public host. */
  readonly allow: readonly string[];
  readonly secretNames: readonly string[];
  /** The origin of the service's own listener. Null if unreachable. */
  readonly serviceUrl: string | null;
  /** The hosts by which others reach the service, its nodes and its previews; `*.example.org` for all subdomains. */
  readonly serviceHosts?: readonly string[] | undefined;
  /** The address of the managed model gateway, with its path. */
  readonly llmUpstream: string | null;
  /** Registries that the package proxy answers for, and the project that asks. Absent: none. */
  readonly packages?: (PackageSources & { readonly projectId: string }) | undefined;
}

interface Named extends Readonly<Record<"publicUrl" | "nodeUrl", string | null>> {
  readonly previewUrl: PreviewAddress | null;
}

/** The names by which others reach the service. */
export const namesOfService = ({ publicUrl, nodeUrl, previewUrl }: Named): readonly string[] => [
  ...[publicUrl, nodeUrl].flatMap((url) => (url === null ? [] : [new URL(url).hostname])),
  // The listener looks at the Host header, whatever name leads to it.
  ...(previewUrl === null ? [] : [`*${previewUrl.suffix}`]),
];

/** How sandboxes and others reach the service. @param port of its listener */
export const serviceAddresses = (settings: Named & { readonly host: string }, port: number) => ({
  serviceUrl: `http://${dialAddress(settings.host)}:${port}`,
  serviceHosts: namesOfService(settings),
});

export type EgressDecision =
  /** Trusted and set by the operator: dialled without checks. `name`: the Host header; null: the client's. */
  | {
      readonly kind: "origin";
      readonly privilege: "reach_service" | "reach_model";
      readonly origin: URL;
      readonly name: string | null;
      readonly rule: RequestRule;
      /** The proxy refuses a tunnel there, or reads the requests in it, as the rule needs. */
      readonly tunnel: "refused" | "read";
    }
  /** Public: resolved, checked, then dialled. `isNamed`: it is open by its own name, and not by a wildcard alone. */
  | {
      readonly kind: "public";
      readonly privilege: "reach_host";
      readonly host: string;
      readonly port: number;
      readonly isNamed: boolean;
    }
  | { readonly kind: "refused"; readonly reason: string };

/** Why a request is refused. Null if it is not. @param path as the client wrote it */
export type RequestRule = (method: string, path: string) => string | null;

interface Opening {
  readonly methods: ReadonlySet<string>;
  /** The path below which everything must be. */
  readonly below: string;
}

const admits = ({ methods, below }: Opening, method: string, path: string): boolean =>
  methods.has(method) && isBelow(below, path);

const onlyOpen =
  (host: string, opening: Opening): RequestRule =>
  (method, path) =>
    admits(opening, method, path)
      ? null
      : `${host} is open to sandboxes for ${[...opening.methods].join(" and ")} below ${opening.below} only`;

/** Where the doors are that domain/person/privileges.ts closes inside (`closedInside`). */
const CLOSED_INSIDE = [
  { below: "/v1/webhooks/", reason: "webhooks come from outside: a sandbox cannot send one" },
  { below: "/v1/nodes/", reason: "only nodes ask each other: a sandbox cannot" },
] as const;

/** The service reads exactly one spelling of a path (threats.md W28). */
const onlyInside: RequestRule = (_method, path) =>
  CLOSED_INSIDE.find(({ below }) => path.startsWith(below))?.reason ?? null;

/** What clients of a model's API use. */
const MODEL_METHODS: ReadonlySet<string> = new Set(["GET", "POST"]);
/** What npm uses to install, to audit and to publish. */
const NPM_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT"]);

export const SERVICE_HOST = "platform.internal";
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
  const canonicalPattern = canonical(pattern);
  if (canonicalPattern === "*") return true;
  return canonicalPattern.startsWith("*.")
    ? host.endsWith(canonicalPattern.slice(1))
    : host === canonicalPattern;
};

const internal = (policy: EgressPolicy, host: string, port: number): EgressDecision => {
  if (port !== 80) return { kind: "refused", reason: `${host} answers plain HTTP on port 80 only` };
  if (host === SERVICE_HOST && policy.serviceUrl !== null)
    return {
      kind: "origin",
      privilege: "reach_service",
      origin: new URL(policy.serviceUrl),
      name: null,
      rule: onlyInside,
      tunnel: "read",
    };
  if (host === MODEL_HOST && policy.llmUpstream !== null) {
    const origin = new URL(policy.llmUpstream);
    const rule = onlyOpen(host, { methods: MODEL_METHODS, below: origin.pathname });
    return { kind: "origin", privilege: "reach_model", origin, name: origin.host, rule, tunnel: "refused" };
  }
  if (host === MODEL_HOST)
    return { kind: "refused", reason: `${host} has no model provider of this name for this session` };
  return { kind: "refused", reason: `${host} is not available` };
};

/** @param name as the client wrote it; an IPv6 address with or without brackets */
export const decideEgress = (policy: EgressPolicy, name: string, port: number): EgressDecision => {
  const host = canonical(name);
  if (host === SERVICE_HOST || host.endsWith(`.${SERVICE_HOST}`)) return internal(policy, host, port);
  if (policy.serviceHosts?.some((own) => matches(own, host)) === true)
    return { kind: "refused", reason: `${host} is this service: sandboxes use http://${SERVICE_HOST}` };
  if (!PORTS.has(port)) return { kind: "refused", reason: `port ${port} is not open to sandboxes` };
  const models = policy.secretNames.flatMap((secret) => MODEL_HOSTS.get(secret) ?? []);
  const patterns = [...policy.allow, ...models].filter((pattern) => matches(pattern, host));
  const isNamed = patterns.some((pattern) => canonical(pattern) === host);
  return patterns.length > 0
    ? { kind: "public", privilege: "reach_host", host, port, isNamed }
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

/** A plain request, as the sandbox wrote it. */
export interface PlainRequest {
  readonly url: URL;
  readonly method: string;
  /** With the query, not normalised. */
  readonly path: string;
}

/**
 * The registry that a plain request is for (E3).
 * @returns null if the request is for another host, or for another part of the registry's
 */
export const registryAsked = (
  policy: EgressPolicy,
  { url, method, path }: PlainRequest,
): RegistryAsked | null => {
  const { packages } = policy;
  if (packages === undefined) return null;
  const { npm, pypi, projectId } = packages;
  const rule = npm === null ? null : { methods: NPM_METHODS, below: new URL(npm).pathname };
  if (
    npm !== null &&
    rule !== null &&
    new URL(npmAddress(npm)).host === url.host &&
    admits(rule, method, path) &&
    mayUse(policy, npm)
  )
    return { kind: "npm", source: new URL(npm), projectId };
  if (pypi !== null && url.host === PYPI_HOST && mayUse(policy, pypi))
    return { kind: "pypi", source: new URL(pypi), projectId };
  return null;
};
