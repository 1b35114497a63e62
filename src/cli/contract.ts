/**
 * The API's definitions as types: its routes, with their parameters and answers. They are not loaded: a program that
 * starts for every call has no time for schemas, and the server checks its input.
 */
import type { HttpApi, HttpApiEndpoint, HttpApiGroup } from "effect/http-api";

/** assembly/api.ts adds the type of the service's API here as `api`. So a client does not import it. */
export interface Contract {}

type Api = Contract extends { readonly api: infer Definitions } ? Definitions : never;

type Endpoints =
  Api extends HttpApi.HttpApi<string, infer Groups>
    ? Groups extends HttpApiGroup.HttpApiGroup<string, infer Members, boolean>
      ? Members
      : never
    : never;

/** A group's own path is `/`, which its prefix already contains. */
type Path<Written extends string> = Written extends `${infer Prefix}/` ? Prefix : Written;

type RouteOf<Endpoint> = Endpoint extends {
  readonly method: infer M extends string;
  readonly path: infer P extends string;
}
  ? `${M} ${Path<P>}`
  : never;

/** Every endpoint, e.g. `GET /v1/projects/:pid`. */
export type Route = RouteOf<Endpoints>;

type EndpointAt<R extends Route, Endpoint = Endpoints> = Endpoint extends unknown
  ? RouteOf<Endpoint> extends R
    ? Endpoint
    : never
  : never;

/** The wire types are the schemas' decoded types, except for numbers in paths and queries. */
type Wire<S> = [S] extends [never] ? never : S extends { readonly Type: infer T } ? T : never;
type Part<Name extends string, Value> = [Value] extends [never]
  ? { readonly [K in Name]?: never }
  : object extends Value
    ? { readonly [K in Name]?: Value }
    : { readonly [K in Name]: Value };

/** A route's parameters: the variables of its path, its query, its body. */
export type Request<R extends Route> = Part<"params", Wire<HttpApiEndpoint.Params<EndpointAt<R>>>> &
  Part<"query", Wire<HttpApiEndpoint.Query<EndpointAt<R>>>> &
  Part<"payload", Wire<HttpApiEndpoint.Payload<EndpointAt<R>>>>;

/** A route's answer. */
export type Answer<R extends Route> = Wire<HttpApiEndpoint.Success<EndpointAt<R>>>;
