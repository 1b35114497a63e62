/** Where the service joins the feature (services/feature.ts). */
import { connectorsLayer } from "./duty.ts";
import { connectorsHandlers } from "./handlers.ts";
import { connectorSignInRoutes } from "./sign-in-page.ts";

export const connectors = {
  duties: connectorsLayer,
  handlers: connectorsHandlers,
  routes: connectorSignInRoutes,
};
