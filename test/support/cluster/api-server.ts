/**
 * A stateful fake of a cluster's API server over HTTP, for one namespace: the requests that the provider makes. The caller has the
 * rights of a Role. Objects are checked (schema.ts) before they are stored (store.ts). A kubelet (kubelet.ts) runs the Pods.
 */
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import type { V1DeleteOptions, V1SelfSubjectAccessReview } from "@kubernetes/client-node";
import { faultsOf, podFaults } from "./schema.ts";
import { ClusterStore, type Kind, Refused, type Stored } from "./store.ts";

export const NAMESPACE = "sandboxes";
const BOOKMARK_MS = 500;
const PATH = /^\/api\/v1\/namespaces\/([^/]+)\/(pods|secrets)(?:\/([^/]+))?(?:\/(log))?$/;
const POLICIES = /^\/apis\/networking\.k8s\.io\/v1\/namespaces\/([^/]+)\/networkpolicies$/;
const REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/** What the cluster refuses. */
export interface ClusterFaults {
  /** Verbs on kinds that the caller may not use, as `create pods`. */
  forbidden: Set<string>;
  /** Whether the namespace's quota is used up. */
  quotaUsedUp: boolean;
  /** The message with which an admission plugin refuses each Pod, in the words of a real cluster. Null: none does. */
  refusesPods: string | null;
}

/** A rule of a Role. */
export interface RoleRule {
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly verbs: readonly string[];
}

/** Every request with a body, as text. */
export interface Sent {
  readonly method: string;
  readonly kind: Kind;
  readonly body: string;
}

/** A right as text, for example `get pods/log`, with the group before the resource if it is not the core group. */
const rightOf = (verb: string, group: string, resource: string): string =>
  `${verb} ${group === "" ? "" : `${group}/`}${resource}`;

/** The rights of a Role's rules. */
export const rightsOf = (rules: readonly RoleRule[]): ReadonlySet<string> =>
  new Set(
    rules.flatMap(({ apiGroups = [], resources = [], verbs }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((resource) => verbs.map((verb) => rightOf(verb, group, resource))),
      ),
    ),
  );

const VERBS: Readonly<Record<string, string>> = {
  GET: "get",
  POST: "create",
  PATCH: "patch",
  DELETE: "delete",
};

export class FakeApiServer {
  readonly store = new ClusterStore();
  readonly faults: ClusterFaults = { forbidden: new Set(), quotaUsedUp: false, refusesPods: null };
  readonly sent: Sent[] = [];
  /** The caller's rights. Null: all. */
  rights: ReadonlySet<string> | null = null;
  /** The rights that requests have used. */
  readonly used = new Set<string>();
  /** NetworkPolicies, as JSON. */
  policies: readonly object[] = [];
  logOf: (pod: string, container: string) => string | null = () => null;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch((error: unknown) => refuse(response, error));
    });
  }

  static async open(): Promise<FakeApiServer> {
    const opened = new FakeApiServer();
    opened.#server.listen(0, "127.0.0.1");
    await once(opened.#server, "listening");
    return opened;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The content of a kubeconfig file. */
  get kubeconfig(): string {
    return JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: "fake", cluster: { server: this.url, "insecure-skip-tls-verify": true } }],
      users: [{ name: "service", user: { token: "token" } }],
      contexts: [{ name: "fake", context: { cluster: "fake", user: "service", namespace: NAMESPACE } }],
      "current-context": "fake",
    });
  }

  /** Breaks all connections, as a restart of the server does. */
  breakConnections(): void {
    this.#server.closeAllConnections();
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "", "http://cluster");
    const method = request.method ?? "GET";
    if (url.pathname === REVIEWS) return this.#review(response, await textOf(request));
    if (POLICIES.test(url.pathname)) {
      this.#mustHave("list", "networking.k8s.io", "networkpolicies");
      return json(response, 200, { kind: "NetworkPolicyList", items: this.policies });
    }
    const [, namespace, kind, name, sub] = PATH.exec(url.pathname) ?? [];
    if (kind !== "pods" && kind !== "secrets")
      throw new Refused(404, "NotFound", "the server could not find the resource");
    this.#mustHave(verbOf(method, name, url), "", sub === undefined ? kind : `${kind}/${sub}`);
    // As a real one does, it lists a missing namespace as empty.
    if (namespace !== NAMESPACE && method !== "GET")
      throw new Refused(404, "NotFound", `namespaces "${namespace}" not found`);
    const text = await textOf(request);
    if (method !== "GET") this.sent.push({ method, kind, body: text });
    if (sub === "log") return this.#log(response, name ?? "", url.searchParams.get("container") ?? "");
    if (method === "GET" && name === undefined) {
      const selector = url.searchParams.get("labelSelector") ?? "";
      if (url.searchParams.get("watch") === "true") return this.#watch(response, kind, url.searchParams);
      const items = this.store.list(kind, selector);
      return json(response, 200, {
        kind: "List",
        apiVersion: "v1",
        metadata: { resourceVersion: this.store.version },
        items,
      });
    }
    const body: unknown = text === "" ? null : JSON.parse(text);
    if (method === "POST")
      return json(
        response,
        201,
        this.#create(kind, body as Stored, url.searchParams.get("dryRun") === "All"),
      );
    if (method === "PATCH")
      return json(response, 200, this.#patch(kind, name ?? "", { request, body: body as Stored }));
    if (method === "DELETE") {
      const grace = url.searchParams.get("gracePeriodSeconds");
      return json(response, 200, this.#delete(kind, name ?? "", { grace, options: body as V1DeleteOptions }));
    }
    return json(response, 200, this.store.get(kind, name ?? ""));
  }

  #mustHave(verb: string, group: string, resource: string): void {
    const right = rightOf(verb, group, resource);
    this.used.add(right);
    if (!this.#allows(right))
      throw new Refused(
        403,
        "Forbidden",
        `${resource} is forbidden: User "service" cannot ${verb} resource "${resource}" in API group "${group}" in the namespace "${NAMESPACE}"`,
      );
  }

  #allows(right: string): boolean {
    return !this.faults.forbidden.has(right) && (this.rights === null || this.rights.has(right));
  }

  /** Everyone may ask for their own rights. */
  #review(response: ServerResponse, text: string): void {
    const review = JSON.parse(text) as V1SelfSubjectAccessReview;
    const faults = faultsOf(review, "V1SelfSubjectAccessReview", "SelfSubjectAccessReview");
    if (faults.length > 0) throw new Refused(422, "Invalid", faults.join(", "));
    const { verb = "", group = "", resource = "", subresource } = review.spec.resourceAttributes ?? {};
    const path = subresource === undefined ? resource : `${resource}/${subresource}`;
    const allowed = this.#allows(rightOf(verb, group, path));
    json(response, 201, { ...review, status: { allowed } });
  }

  #create(kind: Kind, object: Stored, isTrial: boolean): Stored {
    const faults = kind === "pods" ? podFaults(object) : faultsOf(object, "V1Secret", "Secret");
    if (faults.length > 0) throw new Refused(422, "Invalid", `${kind} is invalid: ${faults.join(", ")}`);
    if (kind === "pods" && this.faults.quotaUsedUp)
      throw new Refused(
        403,
        "Forbidden",
        `pods "${object.metadata?.name}" is forbidden: exceeded quota: sandboxes, requested: pods=1, used: pods=2, limited: pods=2`,
      );
    if (kind === "pods" && this.faults.refusesPods !== null)
      throw new Refused(403, "Forbidden", this.faults.refusesPods);
    if (isTrial) return object;
    return this.store.create(kind, kind === "pods" ? { ...object, status: { phase: "Pending" } } : object);
  }

  #patch(kind: Kind, name: string, { request, body }: { request: IncomingMessage; body: Stored }): Stored {
    if (request.headers["content-type"] !== "application/merge-patch+json")
      throw new Refused(415, "UnsupportedMediaType", "the body of the request was in an unknown format");
    const faults = faultsOf(body, kind === "pods" ? "V1Pod" : "V1Secret", kind);
    if (faults.length > 0) throw new Refused(422, "Invalid", faults.join(", "));
    const fixed = Object.keys(body.spec ?? {}).filter((field) => field !== "activeDeadlineSeconds");
    if (fixed.length > 0) throw new Refused(422, "Invalid", "pod updates may not change fields other than …");
    return this.store.update(
      kind,
      name,
      (object) => merged(object, body) as Stored,
      body.metadata?.resourceVersion,
    );
  }

  #delete(
    kind: Kind,
    name: string,
    asked: { grace: string | null; options: V1DeleteOptions | null },
  ): Stored {
    const { gracePeriodSeconds, preconditions = {} } = asked.options ?? {};
    const faults = faultsOf(asked.options ?? {}, "V1DeleteOptions", "DeleteOptions");
    if (faults.length > 0) throw new Refused(422, "Invalid", faults.join(", "));
    const { spec, metadata } = this.store.get(kind, name);
    for (const field of ["uid", "resourceVersion"] as const)
      if (preconditions[field] !== undefined && preconditions[field] !== metadata?.[field])
        throw new Refused(409, "Conflict", `the ${field} in the precondition does not match`);
    const grace = asked.grace ?? gracePeriodSeconds ?? spec?.terminationGracePeriodSeconds ?? 0;
    return this.store.delete(kind, name, Number(grace));
  }

  #log(response: ServerResponse, name: string, container: string): void {
    this.store.get("pods", name);
    const text = this.logOf(name, container);
    if (text === null)
      throw new Refused(400, "BadRequest", `container "${container}" in pod "${name}" is waiting to start`);
    response.writeHead(200, { "content-type": "text/plain" });
    response.end(text);
  }

  #watch(response: ServerResponse, kind: Kind, asked: URLSearchParams): void {
    const selector = asked.get("labelSelector") ?? "";
    const line = (type: string, object: unknown) => response.write(`${JSON.stringify({ type, object })}\n`);
    const isWanted = (object: Stored) =>
      selector.split(",").every((term) => {
        const [label = "", value] = term.split("=");
        return object.metadata?.labels?.[label] === value;
      });
    const from = Number(asked.get("resourceVersion") ?? 0);
    // Refused before the answer begins.
    this.store.mustHave(from);
    response.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders();
    const stop = this.store.watch(from, (event) => {
      if (event.kind === kind && isWanted(event.object)) line(event.type, event.object);
    });
    const bookmarks = setInterval(
      () =>
        line("BOOKMARK", {
          kind: "Pod",
          apiVersion: "v1",
          metadata: { resourceVersion: this.store.version },
        }),
      BOOKMARK_MS,
    );
    response.on("close", () => {
      clearInterval(bookmarks);
      stop();
    });
  }
}

/** The verb of a Role for a request. */
const verbOf = (method: string, name: string | undefined, url: URL): string => {
  if (method !== "GET" || name !== undefined) return VERBS[method] ?? "";
  return url.searchParams.get("watch") === "true" ? "watch" : "list";
};

/** RFC 7386. */
const merged = (target: unknown, patch: unknown): unknown => {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const result: Record<string, unknown> = typeof target === "object" && target !== null ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = merged(result[key], value);
  }
  return result;
};

const textOf = async (request: IncomingMessage): Promise<string> => {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return text;
};

const json = (response: ServerResponse, status: number, body: unknown): void => {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
};

const refuse = (response: ServerResponse, error: unknown): void => {
  const { code, reason, message } =
    error instanceof Refused ? error : { code: 500, reason: "InternalError", message: String(error) };
  json(response, code, { kind: "Status", apiVersion: "v1", status: "Failure", code, reason, message });
};
