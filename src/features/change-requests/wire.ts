/** A change request in wire format. */
import { instant, instantOrNull } from "../../http/steps/wire.ts";
import type { ChangeRequest, ListedRequest } from "./ports/change-requests.ts";

export const changeRequestWire = (request: ChangeRequest) => ({
  id: request.id,
  project_id: request.projectId,
  number: request.number,
  session_id: request.sessionId,
  head_ref: request.headRef,
  base_ref: request.baseRef,
  title: request.title,
  description: request.description,
  status: request.status,
  created_by: request.createdBy,
  created_at: instant(request.createdAt),
  updated_at: instant(request.updatedAt),
  merged_commit: request.merged?.commit ?? null,
  merged_at: instantOrNull(request.merged?.at ?? null),
  merged_by: request.merged?.by ?? null,
  pull_request: request.pull === null || request.pull.status === "wanted" ? null : request.pull,
});

export const listedWire = ({ reviewAsked, ...request }: ListedRequest) => ({
  ...changeRequestWire(request),
  review_asked: reviewAsked && {
    by: { id: reviewAsked.by, name: reviewAsked.name },
    at: instant(reviewAsked.at),
  },
});
