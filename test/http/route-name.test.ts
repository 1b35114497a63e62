/** The names of routes in metrics. */
import { describe, expect, it } from "vitest";
import { SEEN_MAX } from "../../src/domain/service/metrics.ts";
import { ROUTES, routeTable } from "../../src/assembly/api.ts";
import { routeName } from "../../src/http/route-name.ts";

const filled = (pattern: string): string => pattern.replaceAll(/:[a-z]+/gi, "some-id").replace(/\*$/, "a/b");

describe("a route's name", () => {
  it("is found for a request of each route", () => {
    for (const route of ROUTES) {
      const method = route.method === "*" ? "PATCH" : route.method;
      expect(routeTable.name(method, `${filled(route.pattern)}?token=x`)).toBe(routeName(route));
    }
  });

  it("is `other` for a request without a route", () => {
    for (const target of [
      "/x",
      "/v1/projects/",
      "//",
      "",
      "*",
      `/${"a/".repeat(9_000)}`,
      "/v1/projects/a//b",
    ])
      expect(routeTable.name("GET", target)).toBe("other");
    expect(routeTable.name("DELETE", "/healthz")).toBe("other");
  });

  it("is told apart from each other one", () => {
    expect(ROUTES.length).toBeLessThanOrEqual(SEEN_MAX.route);
  });
});
