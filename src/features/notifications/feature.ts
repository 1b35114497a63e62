/** Where the service joins the feature (services/feature.ts). */
import * as Layer from "effect/Layer";
import type { FeatureOptions } from "../../services/feature.ts";
import { outboundWebhooksLayer } from "./duty.ts";
import { outboundWebhooksHandlers } from "./handlers.ts";
import { outboundLayer } from "./outbound.ts";
import { ownNoticesHandlers } from "./own-handlers.ts";

export const notifications = (options: FeatureOptions) => ({
  beside: outboundWebhooksLayer(options).pipe(Layer.provideMerge(outboundLayer)),
  handlers: Layer.merge(outboundWebhooksHandlers, ownNoticesHandlers),
});
