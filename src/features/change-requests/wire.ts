/** A change request in wire format. */
import { instant, wireForm } from "../../http/steps/wire.ts";
import { ChangeRequestSummary } from "./api.ts";
import type { ChangeRequest, ListedRequest } from "./ports/change-requests.ts";

const changeRequestForm = wireForm(ChangeRequestSummary);

export const changeRequestWire = ({ merged, pull, ...request }: ChangeRequest) =>
  changeRequestForm({
    ...request,
    mergedCommit: merged?.commit ?? null,
    mergedAt: merged?.at ?? null,
    mergedBy: merged?.by ?? null,
    pullRequest: pull === null || pull.status === "wanted" ? null : pull,
  });

export const listedWire = ({ reviewAsked, ...request }: ListedRequest) => ({
  ...changeRequestWire(request),
  review_asked: reviewAsked && {
    by: { id: reviewAsked.by, name: reviewAsked.name },
    at: instant(reviewAsked.at),
  },
});
