/** The account's projects, to choose from. */
import { queryOptions } from "@tanstack/react-query";
import { request } from "./client.ts";

export const projectsQuery = queryOptions({
  queryKey: ["projects"],
  queryFn: async () => (await request("GET /v1/projects", { query: { limit: 200 } })).projects,
});
