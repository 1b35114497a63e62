/**
 * `doctor` for sandboxes in a cluster. It asks the API server for the service's rights, lets it check a Pod, reads the
 * network policies, and starts one sandbox. Each problem says what to do.
 */
import { lookup } from "node:dns/promises";
import { networkInterfaces } from "node:os";
import * as Effect from "effect/Effect";
import { thrownText } from "../../ground/thrown.ts";
import type { DoctorFinding, DoctorReport } from "../port.ts";
import type { ChannelPlace } from "../remote/channel.ts";
import type { EgressListener } from "../remote/egress-listener.ts";
import { type Cluster, ClusterFailure } from "./cluster.ts";
import { policyProblems } from "./policies.ts";
import { LABELS, type PodOptions, newPod } from "./pod.ts";
import { podRefusal } from "./refusal.ts";
import { RIGHTS } from "./rights.ts";
import type { SandboxesOptions } from "./sandboxes.ts";
import { sightingFindings, trialSpec, trySandbox } from "./trial.ts";

/** The parts of a report. */
export interface Examined extends Omit<SandboxesOptions, "listener" | "launchText"> {
  /** The listener that sandboxes reach at `egress`, or why it cannot listen. */
  readonly listener: EgressListener | { readonly problem: string };
}

/** What one check found. */
interface Part {
  readonly findings: readonly DoctorFinding[];
  readonly problems: readonly string[];
}

const heldPart = (subject: string, detail: string): Part => ({
  findings: [{ subject, how: "cluster", detail }],
  problems: [],
});
const problem = (...problems: readonly string[]): Part => ({ findings: [], problems });

const rightsPart = async (cluster: Cluster): Promise<Part> => {
  const has = await Promise.all(RIGHTS.map((right) => cluster.may(right)));
  const missing = RIGHTS.filter((_, at) => has[at] === false).map(
    ({ resource, verb }) => `${verb} ${resource}`,
  );
  return missing.length === 0
    ? heldPart("rights", `all ${RIGHTS.length} that the service needs in the namespace ${cluster.namespace}`)
    : problem(
        `in the namespace ${cluster.namespace}, the service may not: ${missing.join(", ")}. Apply the Role and RoleBinding of deploy/kubernetes/base/sandboxes.yaml`,
      );
};

const admissionPart = async (cluster: Cluster, options: PodOptions): Promise<Part> => {
  try {
    await cluster.tryPod(newPod(options, trialSpec("doctor", [])));
    return heldPart(
      "admission",
      "the namespace, its Pod Security level, quotas and runtime class accept a sandbox's Pod",
    );
  } catch (error) {
    if (!(error instanceof ClusterFailure) || error.status === 0) throw error;
    const { message, todo } = podRefusal(error);
    return problem(`${message}. ${todo}`);
  }
};

const policyPart = async (
  cluster: Cluster,
  { nodeId, installationId }: PodOptions,
  port: number,
): Promise<Part> => {
  const labels = {
    [LABELS.component]: "sandbox",
    [LABELS.node]: nodeId,
    [LABELS.installation]: installationId,
  };
  const problems = policyProblems(await cluster.networkPolicies(), labels, port);
  return problems.length === 0
    ? heldPart("network policies", "select the sandboxes, and open only their two ports")
    : problem(
        ...problems.map((text) => `${text}. Apply the policies of deploy/kubernetes/base/sandboxes.yaml`),
      );
};

/**
 * The API server, and the service's own API, which only the egress proxy may reach. As addresses: a sandbox has no DNS, so it would
 * not reach a name even over an open network.
 */
const forbiddenPlaces = async ({ cluster, serviceUrl }: Examined): Promise<readonly ChannelPlace[]> => {
  const { hostname, port, protocol } = cluster.server;
  const standard = protocol === "https:" ? 443 : 80;
  const { address } = await lookup(hostname.replace(/^\[|\]$/g, ""));
  const own = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ internal, family }) => !internal && family === "IPv4");
  return [
    { host: address, port: port === "" ? standard : Number(port) },
    ...(own === undefined ? [] : [{ host: own.address, port: Number(new URL(serviceUrl).port) }]),
  ];
};

const trialPart = async (options: Examined): Promise<Part & { readonly usable: boolean }> => {
  const { listener } = options;
  if ("problem" in listener) return { ...problem(listener.problem), usable: false };
  try {
    const sighting = await trySandbox({ ...options, listener }, await forbiddenPlaces(options));
    const problems =
      sighting.reached.length === 0
        ? []
        : [
            `a sandbox reached ${sighting.reached.join(" and ")} past the egress proxy. Install a network plugin that enforces NetworkPolicy, and apply the policies of deploy/kubernetes`,
          ];
    return { findings: sightingFindings(sighting, options), problems, usable: true };
  } catch (error) {
    const why = thrownText(error);
    return { ...problem(`the trial sandbox failed: ${why}`), usable: false };
  }
};

const examine = async (options: Examined): Promise<DoctorReport> => {
  const { cluster, egress } = options;
  const rights = await rightsPart(cluster);
  const parts = [rights];
  // Without a right, each further check would only say so again.
  if (rights.problems.length === 0) {
    parts.push(await admissionPart(cluster, options), await policyPart(cluster, options, egress.port));
  }
  const canTry = parts.slice(0, 2).every(({ problems }) => problems.length === 0);
  const trial = canTry ? await trialPart(options) : { ...problem(), usable: false };
  const problems = [...parts, trial].flatMap((part) => part.problems);
  return {
    provider: "kubernetes",
    usable: trial.usable,
    problem: problems.length === 0 ? null : problems.map((text) => `${text}.`).join("\n"),
    findings: [...parts, trial].flatMap(({ findings }) => findings),
  };
};

/** A report in which no check could be made. */
export const unusable = (why: string): DoctorReport => ({
  provider: "kubernetes",
  usable: false,
  problem: `${why}.`,
  findings: [],
});

/** Never fails: what is wrong is part of the report. */
export const examineCluster = (options: Examined): Effect.Effect<DoctorReport> =>
  Effect.tryPromise(() => examine(options)).pipe(
    Effect.catch((error) => Effect.succeed(unusable(thrownText(error.cause)))),
  );
