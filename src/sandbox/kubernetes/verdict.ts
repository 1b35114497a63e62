/** What a Pod's status says: why its sandbox ended, or why it does not start. */
import type { V1ContainerStatus, V1Pod } from "@kubernetes/client-node";
import type { SandboxExit } from "../port.ts";
import { LACKS_PROGRAM, SANDBOX_CONTAINER } from "./pod.ts";

const containerStatuses = ({ status }: V1Pod): readonly V1ContainerStatus[] => [
  ...(status?.initContainerStatuses ?? []),
  ...(status?.containerStatuses ?? []),
];

const sandboxStatus = ({ status }: V1Pod) =>
  status?.containerStatuses?.find(({ name }) => name === SANDBOX_CONTAINER);

const exit = (code: SandboxExit["code"], message: string): SandboxExit => ({ code, message });

const isLost = ({ status }: V1Pod): boolean =>
  status?.reason === "NodeLost" ||
  status?.phase === "Unknown" ||
  status?.conditions?.some(
    ({ type, reason }) =>
      type === "DisruptionTarget" && (reason === "DeletionByTaintManager" || reason === "DeletionByPodGC"),
  ) === true;

/** Null if it has not ended. */
export const podExit = (pod: V1Pod): SandboxExit | null => {
  const { status } = pod;
  if (isLost(pod)) return exit("absent", "the cluster lost the node of the sandbox");
  if (status?.reason === "Evicted") {
    const message = status.message ?? "the cluster evicted it";
    return exit(/ephemeral|emptyDir/i.test(message) ? "disk_exceeded" : "exited", message);
  }
  if (status?.reason === "DeadlineExceeded") return exit("exited", "it was stopped");
  const termination = sandboxStatus(pod)?.state?.terminated;
  if (termination?.reason === "OOMKilled")
    return exit("memory_exceeded", "the sandbox used more memory than it may");
  if (termination) return exit("exited", `its PID 1 ended with code ${termination.exitCode}`);
  const failure = containerStatuses(pod).find(({ state }) => (state?.terminated?.exitCode ?? 0) !== 0);
  if (failure !== undefined) {
    const { exitCode, reason = "no reason" } = failure.state?.terminated ?? {};
    return exit("exited", `its container ${failure.name} ended with code ${exitCode} (${reason})`);
  }
  return status?.phase === "Failed" || status?.phase === "Succeeded"
    ? exit("exited", status.message ?? `the Pod is ${status.phase}`)
    : null;
};

/** Whether it ended because nothing in it is its agent's program. */
export const lacksProgram = ({ status }: V1Pod): boolean =>
  status?.initContainerStatuses?.some(
    ({ name, state }) =>
      name === LACKS_PROGRAM.container && state?.terminated?.exitCode === LACKS_PROGRAM.code,
  ) === true;

/** Whether it has ended, and its log is complete: the cluster may say the one before the other. */
export const isStopped = (pod: V1Pod): boolean =>
  podExit(pod) !== null && !sandboxStatus(pod)?.state?.running;

/** Reasons to wait that no time will end. */
const FINAL = new Set([
  "InvalidImageName",
  "ErrImageNeverPull",
  "CreateContainerConfigError",
  "CreateContainerError",
]);
/** The kubelet has tried more than once. */
const PULLING = new Set(["ImagePullBackOff", "ErrImagePull"]);

export interface Obstacle {
  readonly message: string;
  /** Whether waiting is of no use. */
  readonly final: boolean;
  /** Whether the cluster lacks room. */
  readonly isRoom: boolean;
}

/** Why a Pod does not start. Null if nothing is known that keeps it. */
export const podObstacle = (pod: V1Pod): Obstacle | null => {
  // The node that the scheduler chose had less room than it thought: OutOfcpu, OutOfmemory, OutOfpods.
  if (pod.status?.reason?.startsWith("OutOf") === true)
    return {
      final: true,
      isRoom: true,
      message: `no capacity: the node has no room for the sandbox (${pod.status.message ?? pod.status.reason})`,
    };
  const scheduling = pod.status?.conditions?.find(({ type }) => type === "PodScheduled");
  if (scheduling?.reason === "Unschedulable")
    return {
      final: false,
      isRoom: true,
      message: `no capacity: the cluster has no node for the sandbox (${scheduling.message ?? ""})`,
    };
  for (const { image, state } of containerStatuses(pod)) {
    const { reason = "", message = "" } = state?.waiting ?? {};
    if (PULLING.has(reason) || reason === "InvalidImageName" || reason === "ErrImageNeverPull")
      return {
        final: reason !== "ErrImagePull",
        isRoom: false,
        message: `image unavailable: the cluster cannot pull ${image} (${message || reason})`,
      };
    if (FINAL.has(reason))
      return {
        final: true,
        isRoom: false,
        message: `the cluster cannot start the sandbox: ${message || reason}`,
      };
  }
  return null;
};

export const isLinkRunning = ({ status }: V1Pod): boolean =>
  status?.containerStatuses?.find(({ name }) => name === "link")?.state?.running !== undefined;
