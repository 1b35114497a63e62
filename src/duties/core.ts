/** The core's duties that run with its actors (services/duties.ts). A feature's are in its folder. */
import type * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { DUTIES, type DutySettings } from "../services/duties.ts";
import { deletionsLayer } from "./deletions.ts";
import { reconcileLayer } from "./manifests.ts";
import { orphansLayer } from "./orphans.ts";
import { peopleLayer } from "./people.ts";
import { recoveryLayer } from "./recovery.ts";
import { type RetentionOptions, retentionLayer } from "./retention.ts";
import { savesLayer } from "./saves.ts";
import { schedulerLayer } from "./scheduler.ts";
import { secretsLayer } from "./secrets.ts";
import { type SweeperOptions, sweeperLayer } from "./sweeper.ts";
import { unclaimedLayer } from "./unclaimed.ts";
import { warmPoolDuty, type WarmPoolDutyOptions } from "./warm-pool.ts";

export interface CoreDutiesOptions<R>
  extends DutySettings, RetentionOptions<R>, SweeperOptions, WarmPoolDutyOptions {
  /** Completes when the service answers. */
  readonly ready: Effect.Effect<void>;
}

export const coreDuties = <R>(options: CoreDutiesOptions<R>) =>
  Layer.mergeAll(
    recoveryLayer({ intervalMs: DUTIES.recovery.periodMs(options), ready: options.ready }),
    schedulerLayer({ intervalMs: DUTIES.scheduler.periodMs(options) }),
    reconcileLayer({ intervalMs: DUTIES.manifests.periodMs(options) }),
    retentionLayer(options),
    orphansLayer,
    peopleLayer,
    deletionsLayer,
    unclaimedLayer,
    savesLayer,
    warmPoolDuty(options),
    sweeperLayer(options),
    secretsLayer(options),
  );
