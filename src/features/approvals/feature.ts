/** Where the service joins the feature (services/feature.ts). */
import { approvalsLayer } from "./duty.ts";
import { approvalsHandlers } from "./handlers.ts";
import { callApprovalLayer } from "./waiting-calls.ts";

export const approvals = {
  answers: callApprovalLayer,
  duties: approvalsLayer,
  handlers: approvalsHandlers,
};
