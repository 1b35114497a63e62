/** Reads the manifests whose branch has moved. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { runDuty } from "../services/duty.ts";
import { Manifests } from "../services/projects/manifests.ts";

export interface ReconcileOptions {
  /** PLATFORM_MANIFEST_SYNC_MS. */
  readonly intervalMs: number;
}

/**
 * Notices changes that no merge, push or request reported: a branch that moved from outside, or a reading that was lost
 * with its process.
 */
export const reconcileLayer = ({ intervalMs }: ReconcileOptions) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { reconcile } = yield* Manifests;
      yield* runDuty("manifests", { round: reconcile, first: "a period", periodMs: intervalMs });
    }),
  );
