/** The answer to an address that no route has. */
import { HttpServerRequest, HttpServerResponse } from "effect/http";
import { expect, it } from "vitest";
import { ROUTES, routeTable } from "../../../src/assembly/api.ts";

const missed = (request: Request): Response =>
  HttpServerResponse.toWeb(routeTable.miss(HttpServerRequest.fromWeb(request)));
const asked = (accept: string, method = "GET"): Response =>
  missed(new Request("http://localhost/projcets", { method, headers: { accept } }));
const kindOf = ({ status, headers }: Response) => [status, headers.get("content-type")];

it("is a page with a way back for a person's browser", async () => {
  const answer = asked("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");
  expect(kindOf(answer)).toEqual([404, "text/html; charset=utf-8"]);
  expect(await answer.text()).toContain('<a href="/">Open the dashboard</a>');
});

it.each([
  ["GET", "*/*"],
  ["GET", "application/json"],
  ["POST", "text/html"],
])("is the API's error for %s that accepts %s [W28]", (method, accept) => {
  expect(kindOf(asked(accept, method))).toEqual([404, "application/json"]);
});

/** Whether a pattern, with its parts that vary, is the address. */
const isMatch = (pattern: string, target: string): boolean =>
  !pattern.endsWith("*") && new RegExp(`^${pattern.replaceAll(/:[a-z]+/g, "[^/]+")}$`).test(target);

const methodsOf = Map.groupBy(
  ROUTES.filter(({ method, pattern }) => method !== "*" && !pattern.startsWith("/v1/git/")),
  ({ pattern }) => pattern,
);

it.each([...methodsOf])("is 405 with Allow for another method of %s [W27]", async (pattern) => {
  const target = pattern
    .replaceAll(/:(pid|sid|id)/g, "018f4b1e-7c1a-7d3e-8f00-000000000000")
    .replaceAll(/:[a-z]+/g, "1");
  const methods = [
    ...new Set(ROUTES.filter((route) => isMatch(route.pattern, target)).map(({ method }) => method)),
  ];
  for (const method of ["GET", "PUT", "POST", "PATCH", "DELETE", "OPTIONS"]) {
    if (methods.includes(method)) continue;
    const answer = missed(new Request(`http://localhost${target}`, { method }));
    // oxlint-disable-next-line no-await-in-loop -- its text is read
    expect([answer.status, await answer.json()]).toMatchObject([405, { code: "method_not_allowed" }]);
    expect(answer.headers.get("allow")?.split(", ").toSorted()).toEqual(methods.toSorted());
  }
});
