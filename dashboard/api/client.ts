/** The API, typed by the service's own definitions: a field, a parameter or a path that is renamed there does not compile here. */
import type { Answer, Request, Route } from "../../src/cli/contract.ts";
import { ApiError, call } from "./api.ts";

/** A route's parameters: the variables of its path, its query, its body. */
interface Parts {
  readonly params?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly payload?: unknown;
}

const searchOf = (query: Parts["query"] = {}): string => {
  const pairs = Object.entries(query).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return pairs.length === 0 ? "" : `?${new URLSearchParams(pairs)}`;
};

/** Throws an `ApiError` for a refusal, and with status 0 if the service does not respond. @param timeoutMs if not that of all requests */
export const request = async <R extends Route>(
  route: R,
  parts: Request<R>,
  timeoutMs?: number,
): Promise<Answer<R>> => {
  const { params = {}, query, payload } = parts as Parts;
  const [method = "", template = ""] = route.split(" ");
  const path = template.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(String(params[name])));
  const text = await call(method, path + searchOf(query), {
    body: payload,
    ...(timeoutMs !== undefined && { timeoutMs }),
  });
  return JSON.parse(text === "" ? "null" : text);
};

/** The answer to `GET` at a path that is at hand, such as a session's. @param path with its query. The caller names its route. */
export const readAt = async <R extends Extract<Route, `GET ${string}`>>(path: string): Promise<Answer<R>> =>
  JSON.parse(await call("GET", path));

/** Null for a refusal with one of these statuses. */
export const orNull = async <A>(
  answer: Promise<A>,
  statuses: readonly number[] = [404],
): Promise<A | null> => {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ApiError && statuses.includes(error.status)) return null;
    throw error;
  }
};
