/** Where the service joins the feature (services/feature.ts). */
import { subscriptionsHandlers } from "./handlers.ts";
import { ownSubscriptionsLayer } from "./own.ts";

export const subscriptions = { answers: ownSubscriptionsLayer, handlers: subscriptionsHandlers };
