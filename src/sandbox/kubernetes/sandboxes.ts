/**
 * The sandboxes of one service in a cluster. The cluster has the records: a Pod for each sandbox, with labels that say whose
 * it is. This process holds what a restart makes again: keys, admissions to the egress listener, and the last seen state.
 *
 *  C1 A Pod's name follows from its sandbox's id, and its keys from the installation's secret. So every step of a start may be
 *     repeated, by this service or the next.
 *  C2 A sandbox is admitted to the egress listener before it gets its keys, and dismissed before its Pod is removed.
 *  C3 The first reason for an end is the one that is reported.
 *  C4 A Pod of another installation is never touched.
 */
import type { V1Pod } from "@kubernetes/client-node";
import * as Schema from "effect/Schema";
import { poll } from "../../ground/poll.ts";
import { thrownText } from "../../ground/thrown.ts";
import type { Egress } from "../egress.ts";
import { buildOfImageName } from "../../domain/environment/image.ts";
import type { RegistryImages } from "../images/registry/images.ts";
import type { EgressPolicy } from "../egress-policy.ts";
import type { LaunchRuntime } from "../../domain/sandbox/launch.ts";
import { lacksRuntime, placeInside, startedAt, startOfAdded } from "../runtimes/added.ts";
import type { RuntimeStore } from "../runtimes/store.ts";
import { SandboxPackages } from "../packages/of-sandbox.ts";
import type { ModelDoor } from "../model-door.ts";
import type { PackageProxy } from "../packages/proxy.ts";
import {
  ABSENT_EXIT,
  type DaemonLink,
  type SandboxExit,
  type SandboxListing,
  type SandboxSpec,
} from "../port.ts";
import { NoCapacity, OneAtATime } from "../operations.ts";
import type { TellRefused } from "../refused-hosts.ts";
import { type ChannelPlace, dialChannel } from "../remote/channel.ts";
import type { EgressListener } from "../remote/egress-listener.ts";
import { type SandboxKeys, sandboxKeys, secretMark } from "../remote/keys.ts";
import { hasStarted, startOverLink } from "../remote/start.ts";
import type { Cluster } from "./cluster.ts";
import { giveSigns, signNow } from "./heard.ts";
import { pause } from "./pause.ts";
import {
  broughtRuntime,
  EGRESS_ANNOTATION,
  type EgressRecord,
  LABELS,
  LIBRARY,
  LINK_PORT,
  type PodOptions,
  type PodRuntime,
  SANDBOX_CONTAINER,
  egressText,
  podName,
  newPod,
  startKeySecret,
  podSelector,
} from "./pod.ts";
import { rethrow } from "./refusal.ts";
import { lacksProgram, type Obstacle, podExit, isLinkRunning, isStopped, podObstacle } from "./verdict.ts";

/** Pause between two looks at a Pod, in milliseconds. */
const LOOK_MS = 250;
/** How long a Pod may take to be gone: its grace, and the kubelet's word. */
const GONE_MS = 60_000;
/** How long `end` waits until the cluster has stopped a sandbox. */
const END_MS = 60_000;
const LOG_BYTES_MAX = 1024 * 1024;
/** Pause before a Pod for which the quota had no room is tried again. */
const QUOTA_AGAIN_MS = 1_000;
/** A daemon needs at least this long from its start to ready. */
const READY_MS = 5_000;

export interface SandboxesOptions extends PodOptions {
  readonly cluster: Cluster;
  readonly listener: EgressListener;
  /** Where Pods reach the listener. */
  readonly egress: ChannelPlace;
  /** The origin that platform.internal leads to. */
  readonly serviceUrl: string;
  /** The hosts of the public URL and of the node. Sandboxes reach neither. */
  readonly serviceHosts?: readonly string[];
  /** Where images of this machine are pushed. Absent: only references to registries can be used. */
  readonly images?: Pick<RegistryImages, "ensure" | "put">;
  /** The agent runtimes that an operator has added to this machine. Absent: none. */
  readonly runtimes?: Pick<RuntimeStore, "find">;
  /** The launch file for a spec. */
  readonly launchText: (spec: SandboxSpec, packages: SandboxPackages | undefined) => string;
  /** Answers requests to package registries. */
  readonly packages?: Pick<PackageProxy, "serve">;
  /** Answers calls to the account's own providers of models. Absent: nothing does. */
  readonly modelDoor?: ModelDoor;
  /** Hears of hosts that a sandbox may not reach. Absent: they are not told. */
  readonly tellRefused?: TellRefused;
}

const GONE: SandboxExit = { code: "absent", message: "the sandbox's Pod was removed from the cluster" };

const EgressRecordText = Schema.fromJsonString(
  Schema.Struct({
    allow: Schema.Array(Schema.String),
    secretNames: Schema.Array(Schema.String),
    llmUpstream: Schema.NullOr(Schema.String),
    packages: Schema.optionalKey(SandboxPackages),
  }),
);
const decodeRecord = Schema.decodeUnknownOption(EgressRecordText);
/** A record that cannot be read opens nothing. */
const CLOSED: EgressRecord = { allow: [], secretNames: [], llmUpstream: null };

const egressRecord = (pod: V1Pod): EgressRecord => {
  const read = decodeRecord(pod.metadata?.annotations?.[EGRESS_ANNOTATION]);
  return read._tag === "Some" ? read.value : CLOSED;
};

/** After a restore, for example: the secret is in no backup. */
const KEYLESS: SandboxExit = { code: "absent", message: "the service no longer has the keys of the sandbox" };

interface Entry {
  readonly id: string;
  readonly keys: SandboxKeys;
  pod: V1Pod;
  egress: Egress | null;
  readonly exit: PromiseWithResolvers<SandboxExit>;
  ended: SandboxExit | null;
}

const podSandboxId = (pod: V1Pod): string => pod.metadata?.labels?.[LABELS.sandbox] ?? "";

export class KubernetesSandboxes {
  readonly #options: SandboxesOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #order = new OneAtATime();
  readonly #closing = new AbortController();

  private constructor(options: SandboxesOptions) {
    this.#options = options;
  }

  /** Takes over the Pods of a former service. @param onFailure gets the reasons for which the cluster cannot be followed */
  static async open(
    options: SandboxesOptions,
    onFailure: (why: string) => void,
  ): Promise<KubernetesSandboxes> {
    const sandboxes = new KubernetesSandboxes(options);
    const pods = await options.cluster.listPods(podSelector(options));
    await Promise.all(pods.map((pod) => sandboxes.#adopt(pod)));
    const { signal } = sandboxes.#closing;
    const onPod = (name: string, pod: V1Pod | null): void => sandboxes.#saw(name, pod);
    void options.cluster.follow(podSelector(options), { onPod, failed: onFailure, signal });
    void giveSigns({ cluster: options.cluster, selector: podSelector(options), failed: onFailure, signal });
    return sandboxes;
  }

  /** Leaves the sandboxes running. */
  close(): void {
    this.#closing.abort();
    for (const { egress } of this.#entries.values()) egress?.close();
    this.#entries.clear();
  }

  /** @throws Error that says why the cluster does not start it */
  create(spec: SandboxSpec): Promise<void> {
    return this.#order.run(spec.id, async () => {
      const { cluster } = this.#options;
      const signal = AbortSignal.timeout(startMs(spec.bootDeadlineMs));
      const image = await this.#imageOf(spec);
      const podSpec = newPod(this.#options, { ...spec, image }, await this.#runtimeOf(spec));
      const pod = await this.#makePod(podName(spec.id), podSpec, signal);
      this.#mustBeOurs(pod);
      if (pod.metadata?.deletionTimestamp !== undefined)
        throw new Error("the sandbox's Pod is being removed from the cluster");
      const entry = await this.#adopt(pod);
      if (entry.ended !== null) return;
      await this.#start(entry, spec, signal);
      // The key in it opens nothing any more.
      await cluster.deleteSecret(podName(spec.id));
    });
  }

  /** The reference that the cluster pulls. An image of this machine is pushed first. */
  async #imageOf({ image }: SandboxSpec): Promise<string | null> {
    if (image === null) return null;
    const { images } = this.#options;
    const reference = (await images?.ensure(image).catch(notPushed)) ?? null;
    if (reference !== null) return reference;
    if (buildOfImageName(image) === null) return image;
    throw new Error(
      images === undefined
        ? "image unavailable: the image of the project's Dockerfile is on the service's machine. Name a registry for the cluster in PLATFORM_IMAGE_REGISTRY"
        : "image unavailable: the image of the project's Dockerfile is not on this machine any more. Restart the session",
    );
  }

  /** The agent runtime that the cluster brings into the Pod, pushed first. Null if the image or the bundle has its program. */
  async #runtimeOf({ runtime: { packaged } }: SandboxSpec): Promise<PodRuntime | null> {
    const { images, runtimes } = this.#options;
    if (packaged === undefined) return null;
    const { name } = packaged;
    const runtimeTree = (await runtimes?.find(name)) ?? null;
    if (runtimeTree === null) {
      if (packaged.start === null) throw lacksRuntime(packaged, "");
      return null;
    }
    if (images === undefined)
      throw new Error(
        `the runtime ${name} is on the service's machine. Name a registry for the cluster in PLATFORM_IMAGE_REGISTRY. If images bring its program, remove it there with \`platform runtimes remove ${name}\``,
      );
    const image = await images.put({ ...runtimeTree, env: {}, user: "", workdir: "" }).catch(notPushed);
    const { version, start } = runtimeTree;
    return { name, version, image, ...(start !== undefined && { start }) };
  }

  /** A quota that is used up is waited out: other sandboxes end. */
  async #makePod(name: string, pod: V1Pod, signal: AbortSignal): Promise<V1Pod> {
    const { cluster } = this.#options;
    for (;;) {
      const annotations = { ...pod.metadata?.annotations, ...signNow() };
      const body = { ...pod, metadata: { ...pod.metadata, annotations } };
      try {
        // eslint-disable-next-line no-await-in-loop -- one attempt after the other
        return await cluster.createPod(name, body).catch(rethrow);
      } catch (error) {
        if (!(error instanceof NoCapacity) || !error.mayPass || signal.aborted) throw error;
        // eslint-disable-next-line no-await-in-loop -- a pause
        await pause(QUOTA_AGAIN_MS);
      }
    }
  }

  async #start(entry: Entry, spec: SandboxSpec, signal: AbortSignal): Promise<void> {
    const { cluster, egress } = this.#options;
    const { keys } = entry;
    // The Pod may be that of a start with other settings, which was cut off.
    const launch = this.#options.launchText(
      { ...spec, runtime: runtimeIn(entry.pod, spec) },
      egressRecord(entry.pod).packages,
    );
    let obstacle: Obstacle | null = null;
    let why = "its Pod has not started";
    const attempt = async (): Promise<boolean> => {
      entry.pod = (await cluster.readPod(podName(spec.id))) ?? entry.pod;
      obstacle = podObstacle(entry.pod);
      if (obstacle?.final === true) throw toError(obstacle);
      const { packaged, command } = spec.runtime;
      if (packaged !== undefined && lacksProgram(entry.pod)) throw lacksRuntime(packaged, command[0] ?? "");
      const exit = podExit(entry.pod);
      if (exit !== null) throw new Error(`the sandbox ended at its start: ${exit.message}`);
      why = obstacle?.message ?? why;
      const link = linkPlace(entry.pod);
      if (link === null || !isLinkRunning(entry.pod)) return false;
      if (await hasStarted({ link, keys })) return true;
      const start = await startOverLink({ link, egress, keys, launch });
      if (start.kind === "refused") throw new Error(start.why);
      if (start.kind === "away") why = `its link cannot be reached (${start.why})`;
      return start.kind === "started";
    };
    await cluster.createSecret(startKeySecret(entry.pod, spec.id, keys)).catch(rethrow);
    while (!signal.aborted) {
      // eslint-disable-next-line no-await-in-loop -- one attempt after the other
      if (await attempt()) return;
      // eslint-disable-next-line no-await-in-loop -- a pause
      await pause(LOOK_MS);
    }
    if (obstacle !== null) throw toError(obstacle);
    throw new Error(
      `the cluster did not start the sandbox in ${startMs(spec.bootDeadlineMs) / 1000} s: ${why}`,
    );
  }

  awaitExit(id: string): Promise<SandboxExit> {
    return this.#entries.get(id)?.exit.promise ?? Promise.resolve(ABSENT_EXIT);
  }

  async list(): Promise<SandboxListing[]> {
    const pods = await this.#options.cluster.listPods(podSelector(this.#options));
    return pods.map((pod) => ({
      id: podSandboxId(pod),
      sessionId: pod.metadata?.labels?.[LABELS.session] ?? null,
      state: this.#podExit(pod) === null ? "running" : "exited",
    }));
  }

  async link(id: string): Promise<DaemonLink> {
    const entry = this.#known(id);
    const place = linkPlace(entry.pod);
    if (place === null) throw new Error("the sandbox has no address yet");
    const host = place.host.includes(":") ? `[${place.host}]` : place.host;
    return {
      kind: "url",
      url: `https://${host}:${place.port}`,
      connect: () => dialChannel(place, entry.keys.link),
    };
  }

  setSecretNames(id: string, secretNames: readonly string[]): Promise<void> {
    return this.#order.run(id, async () => {
      const entry = this.#known(id);
      const record = { ...egressRecord(entry.pod), secretNames };
      const patch = { metadata: { annotations: { [EGRESS_ANNOTATION]: egressText(record) } } };
      const pod = await this.#options.cluster.patchPod(podName(id), patch);
      if (pod === null) throw new Error("the sandbox does not exist");
      entry.pod = pod;
      entry.egress?.follow(this.#policy(record));
    });
  }

  async logs(id: string): Promise<string> {
    if (!this.#entries.has(id)) return "";
    const text = await this.#options.cluster.logs(podName(id), SANDBOX_CONTAINER);
    if (Buffer.byteLength(text) <= LOG_BYTES_MAX) return text;
    const log = Buffer.from(text).subarray(-LOG_BYTES_MAX).toString("utf8");
    return log.slice(log.indexOf("\n") + 1);
  }

  /** The cluster stops a Pod past its deadline, and keeps it with its logs. */
  end(id: string): Promise<void> {
    return this.#order.run(id, async () => {
      const entry = this.#entries.get(id);
      if (entry === undefined || entry.ended !== null) return;
      const { cluster } = this.#options;
      await cluster.patchPod(podName(id), { spec: { activeDeadlineSeconds: 1 } });
      await within(END_MS, "the cluster has not stopped the sandbox", async () => {
        const pod = await cluster.readPod(podName(id));
        this.#saw(podName(id), pod);
        return pod === null || isStopped(pod);
      });
    });
  }

  destroy(id: string): Promise<void> {
    return this.#order.run(id, async () => {
      const { cluster } = this.#options;
      const name = podName(id);
      const pod = await cluster.readPod(name);
      if (pod !== null) this.#mustBeOurs(pod);
      const entry = this.#entries.get(id);
      entry?.egress?.close();
      if (pod !== null) {
        const isLost = podExit(pod)?.code === "absent";
        // A lost node cannot say that its containers have ended.
        await cluster.deletePod(name, isLost ? 0 : undefined);
        await within(
          GONE_MS,
          "the cluster has not removed the sandbox's Pod",
          async () => (await cluster.readPod(name)) === null,
        );
      }
      await cluster.deleteSecret(name);
      this.#entries.delete(id);
      entry?.exit.resolve({ code: "exited", message: "the sandbox was destroyed" });
    });
  }

  #podExit(pod: V1Pod): SandboxExit | null {
    return pod.metadata?.labels?.[LABELS.keys] === secretMark(this.#options.secret) ? podExit(pod) : KEYLESS;
  }

  #known(id: string): Entry {
    const entry = this.#entries.get(id);
    if (entry === undefined) throw new Error("the sandbox does not exist");
    return entry;
  }

  #mustBeOurs({ metadata }: V1Pod): void {
    const { installationId, nodeId } = this.#options;
    const labels = metadata?.labels ?? {};
    if (labels[LABELS.installation] !== installationId || labels[LABELS.node] !== nodeId)
      throw new Error(`the Pod ${metadata?.name ?? ""} belongs to another installation`);
  }

  async #adopt(pod: V1Pod): Promise<Entry> {
    const id = podSandboxId(pod);
    const present = this.#entries.get(id);
    if (present !== undefined) return present;
    const keys = sandboxKeys(this.#options.secret, id);
    const entry: Entry = { id, keys, pod, egress: null, exit: Promise.withResolvers(), ended: null };
    this.#entries.set(id, entry);
    const { listener, packages, modelDoor, tellRefused } = this.#options;
    const policy = this.#policy(egressRecord(pod));
    const tellRefusedHost = tellRefused?.({
      sandbox: id,
      session: pod.metadata?.labels?.[LABELS.session] ?? null,
    });
    const answers = {
      packages,
      models: modelDoor?.serve(id),
      ...(tellRefusedHost && { refused: tellRefusedHost }),
    };
    if (this.#podExit(pod) === null) entry.egress = await listener.admit(keys.egress, { policy, ...answers });
    this.#judge(entry);
    return entry;
  }

  #policy({ allow, secretNames, llmUpstream, packages }: EgressRecord): EgressPolicy {
    const { serviceUrl, serviceHosts } = this.#options;
    return { allow, secretNames, llmUpstream, packages, serviceUrl, serviceHosts };
  }

  #saw(name: string, pod: V1Pod | null): void {
    const entry = [...this.#entries.values()].find(({ id }) => podName(id) === name);
    if (entry === undefined) return;
    if (pod === null) return this.#settle(entry, GONE);
    entry.pod = pod;
    this.#judge(entry);
  }

  #judge(entry: Entry): void {
    const exit = this.#podExit(entry.pod);
    if (exit !== null) this.#settle(entry, exit);
  }

  #settle(entry: Entry, exit: SandboxExit): void {
    // C3. A destroy under way reports its own end.
    if (entry.ended !== null || (exit === GONE && this.#order.isBusy(entry.id))) return;
    entry.ended = exit;
    entry.egress?.close();
    entry.exit.resolve(exit);
  }
}

/** The start of the runtime that a Pod has. */
const runtimeIn = (pod: V1Pod, { runtime }: SandboxSpec): LaunchRuntime => {
  const podRuntime = broughtRuntime(pod);
  const { packaged } = runtime;
  if (podRuntime === null || packaged === undefined) return runtime;
  const place = placeInside(packaged.name, podRuntime.version);
  return startedAt(runtime, { start: startOfAdded(packaged, podRuntime), place, node: `${LIBRARY}/node` });
};

const linkPlace = ({ status }: V1Pod): ChannelPlace | null =>
  status?.podIP === undefined || status.podIP === "" ? null : { host: status.podIP, port: LINK_PORT };

const toError = ({ message, isRoom, final }: Obstacle): Error =>
  isRoom ? new NoCapacity(message, !final) : new Error(message);

const notPushed = (error: unknown): never => {
  const why = thrownText(error);
  throw new Error(`image unavailable: the image cannot be pushed for the cluster: ${why}`, { cause: error });
};

/** How long a Pod may take to start. A later one would not be ready before the boot's deadline, and the deadline's error would hide its own. */
const startMs = (bootDeadlineMs: number): number =>
  Math.max(bootDeadlineMs - READY_MS, Math.ceil(bootDeadlineMs / 2));

/** @throws Error with `problem` if it is not done in time */
const within = async (ms: number, problem: string, isDone: () => Promise<boolean>): Promise<void> => {
  const isGone = await poll(isDone, { everyMs: LOOK_MS, withinMs: ms });
  if (isGone === null) throw new Error(`${problem} within ${ms / 1000} s`);
};
