/** The answer to an address that no route has. */
import { HttpServerRequest, HttpServerResponse } from "effect/http";
import { expect, it } from "vitest";
import { routeMiss } from "../../src/http/routes.ts";

const asked = (accept: string, method = "GET"): Response => {
  const request = new Request("http://localhost/projcets", { method, headers: { accept } });
  return HttpServerResponse.toWeb(routeMiss(HttpServerRequest.fromWeb(request)));
};
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
