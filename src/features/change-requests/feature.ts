/** Where the service joins the feature (services/feature.ts). */
import * as Layer from "effect/Layer";
import type { FeatureOptions } from "../../services/feature.ts";
import { DUTIES } from "../../services/duties.ts";
import { changeRequestActors } from "./actor.ts";
import { requestBranchesLayer } from "./duty.ts";
import { changeRequestsHandlers, reviewsHandlers } from "./handlers.ts";
import { proposedWorkLayer } from "./proposed-work.ts";
import { pullMirrorLayer, pullRequestsLayer } from "./pull-requests.ts";
import { triggerWishesHandlers } from "./trigger-wishes-handlers.ts";

export const changeRequests = (options: FeatureOptions) => ({
  answers: Layer.merge(proposedWorkLayer, pullMirrorLayer(options)),
  actors: changeRequestActors({ maxIdleMs: options.actorIdleMs }),
  beside: Layer.merge(
    requestBranchesLayer({ intervalMs: DUTIES.change_requests.periodMs(options) }),
    pullRequestsLayer,
  ),
  handlers: Layer.mergeAll(changeRequestsHandlers, reviewsHandlers, triggerWishesHandlers),
});
