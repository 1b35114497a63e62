/** Pods of sandboxes whose service gives no sign of life (heard.ts), of any installation that uses the namespace. */
import type { V1Pod } from "@kubernetes/client-node";
import { poll } from "../../ground/poll.ts";
import { Cluster, ClusterFailure, type ClusterOptions } from "./cluster.ts";
import { isForsaken } from "./heard.ts";
import { LABELS, podName } from "./pod.ts";
import { podExit } from "./verdict.ts";

/** How long a Pod may take to be gone: its grace, and the kubelet's word. */
const GONE_MS = 60_000;
const LOOK_MS = 250;

/** A Pod without a service. */
export interface StrayPod {
  readonly name: string;
  readonly installationId: string;
  /** Removes it. @throws Error if its service gives signs again, or the cluster does not remove it */
  readonly remove: () => Promise<void>;
}

/** Whether it is one of ours: another program's Pod could have the label. */
const isSandbox = ({ metadata }: V1Pod): boolean => {
  const id = metadata?.labels?.[LABELS.sandbox];
  return id !== undefined && metadata?.name === podName(id);
};

const remove = async (cluster: Cluster, name: string, nowMs: number): Promise<void> => {
  const pod = await cluster.readPod(name);
  if (pod === null) return;
  if (!isForsaken(pod, nowMs)) throw new Error("its service gives signs again");
  // A sign since this look changes the version, and the cluster then refuses.
  await cluster.deletePodAsSeen(pod, podExit(pod)?.code === "absent" ? 0 : undefined).catch(heardAgain);
  const uid = pod.metadata?.uid;
  const isGone = async (): Promise<boolean> => {
    const left = await cluster.readPod(name);
    return left === null || left.metadata?.uid !== uid;
  };
  if ((await poll(isGone, { everyMs: LOOK_MS, withinMs: GONE_MS })) === null)
    throw new Error(`the cluster has not removed it within ${GONE_MS / 1000} s. Is its node lost?`);
};

const heardAgain = (error: unknown): never => {
  if (error instanceof ClusterFailure && error.status === 409)
    throw new Error("it changed at this moment. Its service may be starting: list again", { cause: error });
  throw error;
};

/** The strays in the namespace. @throws Error if the cluster does not answer */
export const strayPods = async (options: ClusterOptions, nowMs: number): Promise<readonly StrayPod[]> => {
  const cluster = await Cluster.open(options);
  const pods = await cluster.listPods(`${LABELS.component}=sandbox`);
  return pods
    .filter((pod) => isSandbox(pod) && isForsaken(pod, nowMs))
    .map(({ metadata }) => {
      const name = metadata?.name ?? "";
      return {
        name,
        installationId: metadata?.labels?.[LABELS.installation] ?? "",
        remove: () => remove(cluster, name, nowMs),
      };
    });
};
