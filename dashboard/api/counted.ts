/** What a session's calls of models cost, as the service counted them. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import type { Session } from "../wire.d.ts";
import { request } from "./client.ts";

type Counted = Pick<Session, "project_id" | "id" | "updated_at" | "usage">;

/** By model, what passed the service to a provider of the account. It is read again with each change of the session. */
export const countedQuery = ({ project_id: pid, id: sid, updated_at: at, usage }: Counted) =>
  queryOptions({
    queryKey: ["counted", sid, at, usage.output_tokens],
    queryFn: async () =>
      (await request("GET /v1/projects/:pid/sessions/:sid/model-usage", { params: { pid, sid } })).models,
    placeholderData: keepPreviousData,
  });
