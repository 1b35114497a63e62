/**
 * Signs of life: a service writes into each of its Pods when it last ran. They show an operator
 * which Pods have lost their service, also those of other installations. It needs no right that a service lacks otherwise.
 */
import type { V1Pod } from "@kubernetes/client-node";
import { thrownText } from "../../ground/thrown.ts";
import type { Cluster } from "./cluster.ts";
import { pause } from "./pause.ts";
import { HEARD_ANNOTATION } from "./pod.ts";
import { podExit } from "./verdict.ts";

/** Between two signs, in milliseconds. A change of each Pod, so seldom. */
const SIGN_EVERY_MS = 10 * 60_000;
/** A service that gave no sign for this long does not run. Clocks may differ, and a cluster's API may be away for some time. */
export const SILENT_MS = 60 * 60_000;
/** A Pod without a sign may be of a release that gave none. A service of that release also removes an ended Pod within minutes. */
const UNSIGNED_ENDED_MS = 24 * 60 * 60_000;

/** The annotation of a sign at this moment. */
export const signNow = (): Record<string, string> => ({
  // oxlint-disable-next-line no-restricted-properties -- compared with the clocks of other machines, which no test drives
  [HEARD_ANNOTATION]: new Date(Date.now()).toISOString(),
});

/** When the Pod's service gave its last sign, ms since the epoch. Null if never, or it cannot be read. */
export const lastSign = ({ metadata }: V1Pod): number | null => {
  const at = Date.parse(metadata?.annotations?.[HEARD_ANNOTATION] ?? "");
  return Number.isNaN(at) ? null : at;
};

/** When the last of a Pod's containers ended, or when the Pod was made if the cluster does not say it. */
const endedMs = ({ metadata, status }: V1Pod): number => {
  const ends = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].map(
    ({ state }) => new Date(state?.terminated?.finishedAt ?? 0).getTime(),
  );
  return Math.max(new Date(metadata?.creationTimestamp ?? 0).getTime(), ...ends);
};

/** Whether no service has given a sign that it owns this Pod. */
export const isForsaken = (pod: V1Pod, nowMs: number): boolean => {
  const sign = lastSign(pod);
  if (sign !== null) return nowMs - sign > SILENT_MS;
  return podExit(pod) !== null && nowMs - endedMs(pod) > UNSIGNED_ENDED_MS;
};

export interface SignsOptions {
  readonly cluster: Cluster;
  /** Selects the service's Pods. */
  readonly selector: string;
  /** Gets the reasons for which a round broke off. */
  readonly failed: (why: string) => void;
  readonly signal: AbortSignal;
}

/** Gives signs until the signal. The first round is at once: Pods of a service that was away for long are its own again. */
export const giveSigns = async ({ cluster, selector, failed, signal }: SignsOptions): Promise<void> => {
  const round = async (): Promise<void> => {
    for (const { metadata } of await cluster.listPods(selector)) {
      if (signal.aborted) return;
      // eslint-disable-next-line no-await-in-loop -- one after the other
      await cluster.patchPod(metadata?.name ?? "", { metadata: { annotations: signNow() } });
    }
  };
  while (!signal.aborted) {
    // eslint-disable-next-line no-await-in-loop -- one round after the other
    await round().catch((error: unknown) => failed(thrownText(error)));
    // eslint-disable-next-line no-await-in-loop -- a pause
    if (!signal.aborted) await pause(SIGN_EVERY_MS, signal);
  }
};
