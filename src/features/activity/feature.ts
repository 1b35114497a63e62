/** Where the service joins the feature (services/feature.ts). */
import { activityHandlers } from "./handlers.ts";

export const activity = { handlers: activityHandlers };
