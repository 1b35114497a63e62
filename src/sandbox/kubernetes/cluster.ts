/**
 * The client of a cluster's API server: the few requests that the provider makes, in one namespace. Each has a time limit.
 * The library takes most of a second to load, so it is loaded when the provider is chosen.
 */
import { existsSync } from "node:fs";
import type {
  AuthorizationV1Api,
  CoreV1Api,
  KubeConfig,
  NetworkingV1Api,
  V1NetworkPolicy,
  V1Pod,
  V1Secret,
} from "@kubernetes/client-node";
import { thrownText } from "../../ground/thrown.ts";
import { pause } from "./pause.ts";
import type { Right } from "./rights.ts";
import { isRecord, parseJson } from "../../ground/record.ts";

/** For one request, in milliseconds. */
const REQUEST_MS = 30_000;
/** The server ends a watch after so many seconds, and the client opens the next one. */
const WATCH_S = 240;
/** Pause before a watch that failed is opened again, in milliseconds. */
const WATCH_AGAIN_MS = 1_000;
/** How many lines of a log are asked for. */
const LOG_LINES = 20_000;

/** What the API server refused. `message` is for people. */
export class ClusterFailure extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** What to patch in a Pod. */
export interface PodPatch {
  readonly metadata?: { readonly annotations: Readonly<Record<string, string>> };
  readonly spec?: { readonly activeDeadlineSeconds: number };
}

export interface ClusterOptions {
  /** The path of a kubeconfig file. Null means the service account of the Pod in which the service runs. */
  readonly kubeconfig: string | null;
  readonly namespace: string;
}

/** Gets each Pod as it is now. Null if it is gone. */
export type OnPod = (name: string, pod: V1Pod | null) => void;

const statusMessage = (body: unknown): string | null => {
  const status: unknown = typeof body === "string" ? parseJson(body) : body;
  return isRecord(status) && typeof status["message"] === "string" ? status["message"] : null;
};

const TOKEN_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/** @throws Error that names the setting */
const load = (config: KubeConfig, kubeconfig: string | null): void => {
  if (kubeconfig === null) {
    if (!existsSync(TOKEN_FILE))
      throw new Error(
        "the service does not run in a Pod with a service account. Name a kubeconfig file in PLATFORM_KUBERNETES_CONFIG",
      );
    return config.loadFromCluster();
  }
  try {
    config.loadFromFile(kubeconfig);
  } catch (error) {
    throw new Error(
      `PLATFORM_KUBERNETES_CONFIG is ${kubeconfig}, which cannot be read as a kubeconfig file: ${errorReason(error)}`,
      { cause: error },
    );
  }
  if (config.getCurrentCluster() === null)
    throw new Error(
      `PLATFORM_KUBERNETES_CONFIG is ${kubeconfig}, whose current context names no cluster. Choose one with: kubectl config use-context`,
    );
};

export class Cluster {
  readonly #api: CoreV1Api;
  readonly #authorization: AuthorizationV1Api;
  readonly #networking: NetworkingV1Api;
  readonly #config: KubeConfig;
  readonly #library: typeof import("@kubernetes/client-node");
  readonly namespace: string;

  private constructor(
    library: typeof import("@kubernetes/client-node"),
    config: KubeConfig,
    namespace: string,
  ) {
    this.#library = library;
    this.#config = config;
    this.#api = config.makeApiClient(library.CoreV1Api);
    this.#authorization = config.makeApiClient(library.AuthorizationV1Api);
    this.#networking = config.makeApiClient(library.NetworkingV1Api);
    this.namespace = namespace;
  }

  /** @throws Error that says what is wrong with the configuration */
  static async open({ kubeconfig, namespace }: ClusterOptions): Promise<Cluster> {
    const library = await import("@kubernetes/client-node");
    const config = new library.KubeConfig();
    load(config, kubeconfig);
    return new Cluster(library, config, namespace);
  }

  /** Where the API server is. */
  get server(): URL {
    return new URL(this.#config.getCurrentCluster()?.server ?? "");
  }

  /** Whether the service has a right in the namespace. */
  async may({ group, resource: path, verb }: Right): Promise<boolean> {
    const [resource = "", subresource] = path.split("/");
    const { namespace } = this;
    const attributes = {
      group,
      resource,
      verb,
      namespace,
      ...(subresource !== undefined && { subresource }),
    };
    const body = { spec: { resourceAttributes: attributes } };
    const review = await this.#ask(() => this.#authorization.createSelfSubjectAccessReview({ body }), []);
    return review?.status?.allowed === true;
  }

  /** Lets the API server check a Pod, with everything that may refuse one, and makes none. @throws ClusterFailure */
  async tryPod(body: V1Pod): Promise<void> {
    const { namespace } = this;
    await this.#ask(() => this.#api.createNamespacedPod({ namespace, body, dryRun: "All" }), []);
  }

  async networkPolicies(): Promise<readonly V1NetworkPolicy[]> {
    const { namespace } = this;
    return (
      (await this.#ask(() => this.#networking.listNamespacedNetworkPolicy({ namespace }), []))?.items ?? []
    );
  }

  /** The Pod, new or as it was. */
  async createPod(name: string, body: V1Pod): Promise<V1Pod> {
    const { namespace } = this;
    const newPod = await this.#ask(() => this.#api.createNamespacedPod({ namespace, body }), [409]);
    const pod = newPod ?? (await this.readPod(name));
    if (pod === null) throw new ClusterFailure(409, `the Pod ${name} is being removed`);
    return pod;
  }

  readPod(name: string): Promise<V1Pod | null> {
    const { namespace } = this;
    return this.#ask(() => this.#api.readNamespacedPod({ name, namespace }), [404]);
  }

  async listPods(labelSelector: string): Promise<readonly V1Pod[]> {
    return (await this.#list(labelSelector)).items;
  }

  /** Null if the Pod does not exist. */
  patchPod(name: string, body: PodPatch): Promise<V1Pod | null> {
    const { namespace } = this;
    const { PatchStrategy, setHeaderOptions } = this.#library;
    return this.#ask(
      () =>
        this.#api.patchNamespacedPod(
          { name, namespace, body },
          setHeaderOptions("Content-Type", PatchStrategy.MergePatch),
        ),
      [404],
    );
  }

  /** @param graceSeconds 0 removes the object without word of the node */
  async deletePod(name: string, graceSeconds?: number): Promise<void> {
    const { namespace } = this;
    const grace = graceSeconds === undefined ? {} : { gracePeriodSeconds: graceSeconds };
    await this.#ask(() => this.#api.deleteNamespacedPod({ name, namespace, ...grace }), [404]);
  }

  /** Removes a Pod only if it is still as it was read. @throws ClusterFailure with 409 if it is not */
  async deletePodAsSeen({ metadata }: V1Pod, graceSeconds?: number): Promise<void> {
    const { namespace } = this;
    const { name = "", uid, resourceVersion } = metadata ?? {};
    const preconditions = {
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
    };
    const grace = graceSeconds === undefined ? {} : { gracePeriodSeconds: graceSeconds };
    const body = { preconditions: preconditions, ...grace };
    await this.#ask(() => this.#api.deleteNamespacedPod({ name, namespace, body }), [404]);
  }

  async createSecret(body: V1Secret): Promise<void> {
    const { namespace } = this;
    await this.#ask(() => this.#api.createNamespacedSecret({ namespace, body }), [409]);
  }

  async deleteSecret(name: string): Promise<void> {
    const { namespace } = this;
    await this.#ask(() => this.#api.deleteNamespacedSecret({ name, namespace }), [404]);
  }

  /** The newest lines of a container's log. Empty without one. */
  async logs(name: string, container: string): Promise<string> {
    const { namespace } = this;
    const query = { name, namespace, container, tailLines: LOG_LINES };
    return (await this.#ask(() => this.#api.readNamespacedPodLog(query), [400, 404])) ?? "";
  }

  /**
   * Tells the present state of all Pods with these labels, and then every change, until the signal. After a break it lists
   * them again, so no change is lost for good.
   * @param failed gets each break's reason
   */
  async follow(
    labelSelector: string,
    { onPod, failed, signal }: { onPod: OnPod; failed: (why: string) => void; signal: AbortSignal },
  ): Promise<void> {
    const pods = new Set<string>();
    const tell = (pod: V1Pod, isGone: boolean): void => {
      const name = pod.metadata?.name ?? "";
      if (isGone) pods.delete(name);
      else pods.add(name);
      onPod(name, isGone ? null : pod);
    };
    const once = async (): Promise<void> => {
      const { items, metadata } = await this.#list(labelSelector);
      const present = new Set(items.map((pod) => pod.metadata?.name ?? ""));
      for (const name of [...pods].filter((former) => !present.has(former))) {
        pods.delete(name);
        onPod(name, null);
      }
      for (const pod of items) tell(pod, false);
      await this.#watch({ labelSelector, resourceVersion: metadata?.resourceVersion ?? "" }, tell, signal);
    };
    while (!signal.aborted) {
      // eslint-disable-next-line no-await-in-loop -- one watch at a time
      await once().catch((error: unknown) => failed(thrownText(error)));
      // eslint-disable-next-line no-await-in-loop -- a pause
      if (!signal.aborted) await pause(WATCH_AGAIN_MS, signal);
    }
  }

  #list(labelSelector: string) {
    const { namespace } = this;
    return this.#ask(() => this.#api.listNamespacedPod({ namespace, labelSelector }), []).then((list) => {
      if (list === null) throw new ClusterFailure(404, `there is no namespace ${namespace}`);
      return list;
    });
  }

  /** Returns when the server has ended the watch, also because it no longer has the version (410). */
  async #watch(
    query: { readonly labelSelector: string; readonly resourceVersion: string },
    tell: (pod: V1Pod, isGone: boolean) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const end = Promise.withResolvers<void>();
    const onEvent = (phase: string, pod: V1Pod): void => {
      if (phase === "ADDED" || phase === "MODIFIED") tell(pod, false);
      else if (phase === "DELETED") tell(pod, true);
      else if (phase === "ERROR") end.resolve();
    };
    const controller = await new this.#library.Watch(this.#config).watch(
      `/api/v1/namespaces/${encodeURIComponent(this.namespace)}/pods`,
      { ...query, allowWatchBookmarks: true, timeoutSeconds: WATCH_S },
      onEvent,
      () => end.resolve(),
    );
    const stop = (): void => end.resolve();
    signal.addEventListener("abort", stop, { once: true });
    await end.promise;
    signal.removeEventListener("abort", stop);
    controller.abort();
  }

  /** @param absent statuses that are no failure, and give null. @throws ClusterFailure */
  async #ask<A>(request: () => Promise<A>, absent: readonly number[]): Promise<A | null> {
    try {
      return await Promise.race([request(), late()]);
    } catch (error) {
      if (error instanceof this.#library.ApiException) {
        if (absent.includes(error.code)) return null;
        throw new ClusterFailure(
          error.code,
          statusMessage(error.body) ?? `the cluster answered ${error.code}`,
        );
      }
      if (error instanceof ClusterFailure) throw error;
      throw new ClusterFailure(0, `the cluster's API cannot be reached: ${errorReason(error)}`);
    }
  }
}

const errorReason = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return cause instanceof Error && cause.message !== "" ? cause.message : error.message;
};

const late = (): Promise<never> => {
  const { promise, reject } = Promise.withResolvers<never>();
  AbortSignal.timeout(REQUEST_MS).addEventListener("abort", () =>
    reject(new ClusterFailure(0, `the cluster's API did not answer within ${REQUEST_MS / 1000} s`)),
  );
  promise.catch(() => undefined);
  return promise;
};
