/** Instants of cron triggers that are skipped (threats.md C13). */
import type { TableSet } from "../../twins/store/tables.ts";
import type { Admissions } from "../../../src/store/ports/triggers/admissions.ts";

/** The argument of `skip`. */
export type Skipped = Parameters<(typeof Admissions)["Service"]["skip"]>[0];

/** One call of `skip`. */
export interface SkipCall {
  readonly skipped: Skipped;
  /** The caller's clock, ms. */
  readonly now: number;
  /** Did this call write the fire? A node with a late clock may skip again what another node has skipped before. */
  readonly isNew: (fireId: string) => boolean;
}

/** An instant that is handled within this time, ms, is not missed. */
const IN_TIME_MS = 2_000;

/** C13: in calm times an instant that is handled in time is not skipped as missed. */
export const skippedInTime = ({ fires }: TableSet, { skipped, now, isNew }: SkipCall): readonly string[] => {
  const { projectId, triggerSlug, reason, instants } = skipped;
  if (reason !== "missed") return [];
  const inTime = new Set(
    instants.map(({ dueAt }) => dueAt).filter((at) => now >= at && now - at < IN_TIME_MS),
  );
  if (inTime.size === 0) return [];
  return [...fires.values()].flatMap((fire) =>
    fire.projectId === projectId &&
    fire.triggerSlug === triggerSlug &&
    fire.scheduledFor !== null &&
    inTime.has(fire.scheduledFor) &&
    fire.status === "skipped" &&
    isNew(fire.id)
      ? [
          `C13 the instant ${new Date(fire.scheduledFor).toISOString()} of ${projectId}/${triggerSlug} is skipped in time`,
        ]
      : [],
  );
};
