/**
 * The name of a request's route for metrics and traces: its method and pattern, such as `GET /v1/projects/:pid`. A path, a
 * query and an id are never in it. A request of no route is `other`.
 */
import * as Context from "effect/Context";
import { OTHER } from "../domain/service/metrics.ts";
import type { Route, RouteTable } from "./routes.ts";

interface Step {
  readonly literal: Map<string, Step>;
  variable: Step | null;
  /** Names by method, of a pattern that ends here, and of one that takes the rest of the path. */
  readonly here: Map<string, string>;
  readonly rest: Map<string, string>;
}

const emptyStep = (): Step => ({ literal: new Map(), variable: null, here: new Map(), rest: new Map() });

/** `*` is every method, which the name calls `ANY`. */
export const routeName = ({ method, pattern }: Pick<Route, "method" | "pattern">): string =>
  `${method === "*" ? "ANY" : method} ${pattern}`;

const add = (root: Step, route: Route): void => {
  let step = root;
  for (const part of route.pattern.split("/").slice(1)) {
    if (part === "*") {
      step.rest.set(route.method, routeName(route));
      return;
    }
    if (part.startsWith(":")) {
      step.variable ??= emptyStep();
      step = step.variable;
      continue;
    }
    const next = step.literal.get(part) ?? emptyStep();
    step.literal.set(part, next);
    step = next;
  }
  step.here.set(route.method, routeName(route));
};

const nameFor = (names: ReadonlyMap<string, string>, method: string): string | undefined =>
  names.get(method) ?? names.get("*");

interface RouteQuery {
  readonly parts: readonly string[];
  readonly method: string;
}

/** One look into a map for each part of the path. A literal part comes before a variable one, as in the router. */
const find = (step: Step, query: RouteQuery, at: number): string | undefined => {
  const { parts, method } = query;
  const part = parts[at];
  if (part === undefined) return nameFor(step.here, method);
  const literal = step.literal.get(part);
  return (
    (literal === undefined ? undefined : find(literal, query, at + 1)) ??
    (step.variable === null || part === "" ? undefined : find(step.variable, query, at + 1)) ??
    nameFor(step.rest, method)
  );
};

/** Longer paths belong to no route but those that take the rest. It bounds the work of one look. */
const PARTS_MAX = 12;

export const routeNames = (routes: readonly Route[]): RouteTable["name"] => {
  const root = emptyStep();
  for (const route of routes) add(root, route);
  return (method, target) => {
    const query = target.indexOf("?");
    const path = query < 0 ? target : target.slice(0, query);
    // The first part is the empty text before the first slash.
    return find(root, { parts: path.split("/", PARTS_MAX + 1), method }, 1) ?? OTHER;
  };
};

/** How routes are named here. Without the service, none has a name. */
export const RouteNames = Context.Reference<RouteTable["name"]>("platform/http/RouteNames", {
  defaultValue: () => () => OTHER,
});
