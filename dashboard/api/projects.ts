/** The account's projects, to choose from. */
import { queryOptions } from "@tanstack/react-query";
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "./client.ts";

export type Project = Answer<"GET /v1/projects/:pid">;

export const projectsQuery = queryOptions({
  queryKey: ["projects"],
  queryFn: async () => (await request("GET /v1/projects", { query: { limit: 200 } })).projects,
});
