/** Where the service joins the feature (services/feature.ts). */
import * as Layer from "effect/Layer";
import type { FeatureOptions } from "../../services/feature.ts";
import { baseImagesLayer } from "./base-images.ts";
import { environmentBuildActors } from "./environment-build-actor.ts";
import { environmentsHandlers } from "./handlers.ts";
import { oldImagesLayer } from "./old-images.ts";

export const environments = ({ nodeId, actorIdleMs, environmentBasesMs }: FeatureOptions) => ({
  actors: environmentBuildActors({ maxIdleMs: actorIdleMs }),
  duties: Layer.merge(oldImagesLayer({ nodeId }), baseImagesLayer({ nodeId, everyMs: environmentBasesMs })),
  handlers: environmentsHandlers,
});
