import { expect, it } from "vitest";
import { isBelow } from "../../../src/ground/net/path.ts";

it.each(["/v1", "/v1/", "/v1/chat", "/v1/chat?x=/../", "/v1/@acme%2ftool", "/v1/a..b", "/v1/...", "/v1//x"])(
  "finds %s below /v1/",
  (path) => {
    expect([isBelow("/v1/", path), isBelow("/v1", path)]).toEqual([true, true]);
  },
);

it.each([
  "/",
  "/admin",
  "/v1x",
  "/V1/x",
  "//v1/x",
  "/%761/x",
  "/v1/../admin",
  "/v1/..",
  "/v1/./x",
  "/v1/%2e%2e/admin",
  "/v1/.%2E/admin",
  "/v1/x%2f..%2f..%2fadmin",
  "/v1/%252e%252e/admin",
  "/v1/..;/admin",
  "/v1/%2e%2e%3b/admin",
  "/v1/users;x.whl",
  "/v1/users%3bx.whl",
  "/v1/users%253Bx/y.whl",
  "/v1\\..\\admin",
  "/v1/..%5cadmin",
  "/v1/.%0a./admin",
  "/v1/%zz",
  "/v1/%25252525252e",
])("does not take %s for a path below /v1", (path) => {
  expect(isBelow("/v1", path)).toBe(false);
});

it("finds everything without dots below the root", () => {
  expect(["/x", "//x", "/../x"].map((path) => isBelow("/", path))).toEqual([true, true, false]);
});
