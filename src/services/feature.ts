/**
 * What a feature hands to the service in its `feature.ts`: a record of the slots that it fills. The service has
 * one line a feature, and joins each slot of all of them.
 */
import * as Layer from "effect/Layer";

/** What features ask of the settings and of this process. Times in ms. */
export interface FeatureOptions {
  readonly nodeId: string;
  readonly publicUrl: string;
  /** PLATFORM_ACTOR_IDLE_MS. */
  readonly actorIdleMs: number;
  /** PLATFORM_ENVIRONMENT_BASES_MS. */
  readonly environmentBasesMs: number;
  /** PLATFORM_MANIFEST_SYNC_MS. */
  readonly manifestSyncMs: number;
}

/**
 * - `answers`: ports of the core that the feature fulfils.
 * - `actors`, `duties`: they run with the core's.
 * - `beside`: what only the whole service runs, over all of these.
 * - `handlers`, `routes`: the endpoints of the API, and the pages beside it.
 */
type Slot = "answers" | "actors" | "duties" | "beside" | "handlers" | "routes";

type Filled<F, S extends Slot> = F extends { readonly [K in S]: infer L extends Layer.Any } ? L : never;

/** One slot of all features. */
export const slot = <F extends object, S extends Slot>(features: readonly F[], name: S) => {
  const parts = features.flatMap((feature) => (name in feature ? [feature[name as never]] : []));
  type L = Filled<F, S>;
  return Layer.mergeAll(Layer.empty, ...parts) as unknown as Layer.Layer<
    Layer.Success<L>,
    Layer.Error<L>,
    Layer.Services<L>
  >;
};
