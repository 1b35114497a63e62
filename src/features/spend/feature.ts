/** Where the service joins the feature (services/feature.ts). */
import { accountSpendLayer } from "./account-spend.ts";
import { spendLayer } from "./duty.ts";
import { spendHandlers } from "./handlers.ts";

export const spend = { answers: accountSpendLayer, beside: spendLayer, handlers: spendHandlers };
