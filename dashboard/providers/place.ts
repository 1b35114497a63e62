/** Whose providers of models a list shows, with the calls for them. */
import { queryOptions } from "@tanstack/react-query";
import type { Answer, Request } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";

export type Provider = Answer<"GET /v1/model-providers">["model_providers"][number];
type Wish = Request<"POST /v1/model-providers">["payload"];
type Change = NonNullable<Request<"PATCH /v1/model-providers/:id">["payload"]>;

export interface Place {
  /** In the names of queries. */
  readonly key: string;
  readonly list: () => Promise<{ readonly model_providers: readonly Provider[] }>;
  readonly add: (payload: Wish) => Promise<Provider>;
  readonly change: (id: string, payload: Change) => Promise<Provider>;
  readonly remove: (id: string) => Promise<unknown>;
}

export const ACCOUNT: Place = {
  key: "account",
  list: () => request("GET /v1/model-providers", {}),
  add: (payload) => request("POST /v1/model-providers", { payload }),
  change: (id, payload) => request("PATCH /v1/model-providers/:id", { params: { id }, payload }),
  remove: (id) => request("DELETE /v1/model-providers/:id", { params: { id } }),
};

/** The reader's own. */
export const OWN: Place = {
  key: "own",
  list: () => request("GET /v1/me/model-providers", {}),
  add: (payload) => request("POST /v1/me/model-providers", { payload }),
  change: (id, payload) => request("PATCH /v1/me/model-providers/:id", { params: { id }, payload }),
  remove: (id) => request("DELETE /v1/me/model-providers/:id", { params: { id } }),
};

export const ofProject = (pid: string): Place => ({
  key: pid,
  list: () => request("GET /v1/projects/:pid/model-providers", { params: { pid } }),
  add: (payload) => request("POST /v1/projects/:pid/model-providers", { params: { pid }, payload }),
  change: (id, payload) =>
    request("PATCH /v1/projects/:pid/model-providers/:id", { params: { pid, id }, payload }),
  remove: (id) => request("DELETE /v1/projects/:pid/model-providers/:id", { params: { pid, id } }),
});

export const providersQuery = ({ key, list }: Place) =>
  queryOptions({
    queryKey: ["model-providers", key],
    queryFn: async () => (await list()).model_providers,
  });

/** The models of which no price is known, as `provider/model`. */
export const unpricedNames = (providers: readonly Provider[]): readonly string[] =>
  providers.flatMap(({ name, unpriced }) => unpriced.map((model) => `${name}/${model}`));
