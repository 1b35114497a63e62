import { expect, test } from "vitest";
import { differences, recordText } from "./openapi-record.ts";

const schemas = { Error: { type: "object", required: ["code"] } };
const document = {
  openapi: "3.1.0",
  paths: { "/v1/me": { get: { summary: "Shows you.", parameters: [{ name: "a" }] } } },
  components: { schemas },
};

test("the recorded document has one operation or schema a line", () => {
  const text = recordText(document);
  expect(JSON.parse(text)).toEqual(document);
  expect(text.split("\n")).toContain('"get": {"summary":"Shows you.","parameters":[{"name":"a"}]}');
  expect(text.split("\n")).toContain('"Error": {"type":"object","required":["code"]}');
});

test("a difference names the operation or the schema, the field, and both values", () => {
  const changed = {
    ...document,
    paths: { "/v1/me": { get: { summary: "Shows you.", parameters: [{ name: "b" }], deprecated: true } } },
    components: { schemas: { Error: { type: "object", required: ["code", "error"] } } },
  };
  expect(differences(document, document)).toEqual([]);
  expect(differences(document, changed)).toEqual([
    'GET /v1/me . parameters . 0 . name: "a" -> "b"',
    "GET /v1/me . deprecated: (absent) -> true",
    'schemas Error . required: ["code"] -> ["code","error"]',
  ]);
  const without = { ...document, components: { schemas: {} } };
  expect(differences(document, without)).toEqual([
    'schemas Error: {"type":"object","required":["code"]} -> (absent)',
  ]);
});
