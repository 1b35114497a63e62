import { describe, expect, it } from "vitest";
import { readConnectorEntry } from "../../../src/domain/connector/connector.ts";
import { CONNECTOR_KINDS } from "../../../src/domain/connector/connector-kind.ts";
import { parseManifest } from "../../../src/domain/manifest/manifest.ts";
import { OPERATIONS_LIMIT } from "../../../src/domain/connector/manifest-operations.ts";

const URL = "https://tracker.example.com/api/v2";
const HTTP = { slug: "tracker", kind: "http", url: URL };
const OPENAPI = { slug: "tracker", kind: "openapi", url: URL };
const OPERATION = { name: "get_issue", description: "Shows an issue.", path: "/issues" };

const faults = (entry: object): readonly string[] =>
  readConnectorEntry(entry).faults.map(({ field, message }) => `${field}: ${message}`);

describe("a connector of the kind http", () => {
  it("has the tools that the manifest writes, with their arguments and requests", () => {
    const { executor, errors } = parseManifest(
      new TextEncoder().encode(`
[[connectors]]
slug = "tracker"
kind = "http"
url = "${URL}"
auth = "bearer"
headers = { Accept = "application/json", "X-Team" = "core" }

[[connectors.operations]]
name = "comment"
description = "Comments on an issue."
method = "POST"
path = "/issues/{id}/comments"
parameters = [
  { name = "id", in = "path", type = "integer", description = "The issue's number" },
  { name = "notify", in = "query", type = "boolean" },
  { name = "labels", in = "query", type = "array" },
  { name = "text", in = "body", required = true },
  { name = "mood", in = "body", enum = ["good", "bad"] },
  { name = "place", in = "body", schema = { type = "object", properties = { line = { type = "integer" } } } },
]
[[connectors.tools]]
match = "*"
policy = "allow"
`),
    );
    expect(errors).toEqual([]);
    const [connector] = executor.connectors;
    expect(connector?.headers).toEqual({ accept: "application/json", "x-team": "core" });
    expect(connector?.rules).toEqual([{ match: "*", policy: "allow" }]);
    expect(connector?.source).toEqual({
      from: "manifest",
      tools: [
        {
          name: "comment",
          description: "Comments on an issue.",
          inputSchema: {
            type: "object",
            properties: {
              id: { type: "integer", description: "The issue's number" },
              notify: { type: "boolean" },
              labels: { type: "array" },
              text: { type: "string" },
              mood: { type: "string", enum: ["good", "bad"] },
              place: { type: "object", properties: { line: { type: "integer" } } },
            },
            required: ["id", "text"],
            additionalProperties: false,
          },
          request: {
            method: "POST",
            path: "/issues/{id}/comments",
            parameters: [
              { argument: "id", name: "id", in: "path", style: "plain", required: true },
              { argument: "notify", name: "notify", in: "query", style: "plain", required: false },
              { argument: "labels", name: "labels", in: "query", style: "repeat", required: false },
              { argument: "text", name: "text", in: "field", style: "plain", required: true },
              { argument: "mood", name: "mood", in: "field", style: "plain", required: false },
              { argument: "place", name: "place", in: "field", style: "plain", required: false },
            ],
            body: { type: "application/json", encoding: "json", argument: null, required: true },
          },
        },
      ],
    });
  });

  it.each([
    [{}, "operations: kind http needs 1 to 100 tools"],
    [{ operations: [] }, "operations: kind http needs 1 to 100 tools"],
    [
      { operations: Array.from({ length: OPERATIONS_LIMIT + 1 }, () => OPERATION) },
      "operations: kind http needs 1 to 100",
    ],
    [{ operations: [OPERATION, OPERATION] }, "operations[1].name: name is already used"],
    [{ operations: [{ ...OPERATION, name: "a b" }] }, "operations[0].name: name is required"],
    [
      { operations: [{ ...OPERATION, description: "" }] },
      "operations[0].description: description is required",
    ],
    [{ operations: [{ ...OPERATION, method: "get" }] }, "operations[0].method: method must be GET, POST"],
    [
      { operations: [{ ...OPERATION, path: undefined }] },
      "operations[0].path: path is required, for example",
    ],
    [{ operations: [{ ...OPERATION, path: "issues" }] }, "operations[0].path: path must begin with /"],
    [{ operations: [{ ...OPERATION, path: "/a/../b" }] }, "must not have an empty segment, . or .."],
    [{ operations: [{ ...OPERATION, path: "//evil.example.com/a" }] }, "must not have an empty segment"],
    [{ operations: [{ ...OPERATION, path: "/a%2fb" }] }, "only characters of a URL's path"],
    [{ operations: [{ ...OPERATION, path: "/a?b=c" }] }, "only characters of a URL's path"],
    [{ operations: [{ ...OPERATION, path: "/a/{id}" }] }, 'path names {id}. Add a parameter { name = "id"'],
    [{ operations: [{ ...OPERATION, parameters: [{ name: "id", in: "path" }] }] }, "path must have {id}"],
    [{ operations: [{ ...OPERATION, parameters: [{ name: "id" }] }] }, "parameters[0].in: in is required"],
    [
      { operations: [{ ...OPERATION, parameters: [{ in: "query" }] }] },
      "parameters[0].name: name is required",
    ],
    [{ operations: [{ ...OPERATION, parameters: ["id"] }] }, "parameters[0]: A parameter is a table"],
    [
      { operations: [{ ...OPERATION, parameters: [{ name: "a", in: "query", type: "text" }] }] },
      "parameters[0].type: type must be one of string, integer",
    ],
    [
      { operations: [{ ...OPERATION, parameters: [{ name: "a", in: "query", type: "object" }] }] },
      "parameters[0].type: An object can be in the body only",
    ],
    [
      { operations: [{ ...OPERATION, parameters: [{ name: "a", in: "query", kind: "x" }] }] },
      "parameters[0].kind: A parameter has the fields name, in",
    ],
    [
      { operations: [{ ...OPERATION, parameters: [{ name: "Authorization", in: "header" }] }] },
      "The header Authorization is set by the service",
    ],
    [
      { operations: [{ ...OPERATION, parameters: [{ name: "Host", in: "header" }] }] },
      "The header Host is set by the service",
    ],
    [
      { operations: [{ ...OPERATION, parameters: [{ name: "text", in: "body" }] }] },
      "operations[0].method: A GET has no body",
    ],
    [{ operations: [{ ...OPERATION, body: "xml" }] }, 'operations[0].body: body must be "json" or "form"'],
    [{ operations: [{ ...OPERATION, url: "/x" }] }, "operations[0].url: An operation has the fields name"],
    [
      { operations: [OPERATION], headers: { Authorization: "Bearer x" } },
      "Store the credential with the connector",
    ],
    [{ operations: [OPERATION], headers: { Host: "other" } }, '"Host" cannot be one'],
    [{ operations: [OPERATION], headers: { "X-A": "a\r\nb: c" } }, "must be one line of ASCII"],
    [{ operations: [OPERATION], headers: "x" }, "headers must be a table"],
    [{ operations: [OPERATION], description_file: "a.yaml" }, 'description_file is only for kind "openapi"'],
  ])("is refused with %o, and the fault names the field", (fields, message) => {
    expect(faults({ ...HTTP, ...fields }).join("\n")).toContain(message);
  });
});

it("leaves out an operation that is wrong, and keeps the others", () => {
  const operations = [OPERATION, { ...OPERATION, name: "a b" }, OPERATION, { ...OPERATION, name: "other" }];
  const { connector, faults: left } = readConnectorEntry({ ...HTTP, operations });
  expect(connector?.source).toMatchObject({
    from: "manifest",
    tools: [{ name: "get_issue" }, { name: "other" }],
  });
  expect(left.map(({ field }) => field)).toEqual(["operations[1].name", "operations[2].name"]);
});

it("is of one of three kinds, and the fault names them", () => {
  const [fault = ""] = faults({ ...HTTP, kind: "soap" });
  for (const kind of CONNECTOR_KINDS) expect(fault).toContain(`"${kind}"`);
});

describe("a connector of the kind openapi", () => {
  it.each([
    [{ description_file: "api/openapi.yaml" }, { from: "file", path: "api/openapi.yaml" }],
    [
      { description_url: "https://tracker.example.com/openapi.json" },
      { from: "address", url: "https://tracker.example.com/openapi.json" },
    ],
  ])("takes its tools from %o", (fields, source) => {
    expect(readConnectorEntry({ ...OPENAPI, ...fields }).connector?.source).toEqual(source);
  });

  it.each([
    [{}, "description_file: kind openapi needs description_file"],
    [{ description_file: "a.yaml", description_url: URL }, "kind openapi needs description_file"],
    [{ description_file: "../other/a.yaml" }, "must be the path of a file in the repository"],
    [{ description_file: "/etc/passwd" }, "must be the path of a file in the repository"],
    [{ description_file: ".git/config" }, "must be the path of a file in the repository"],
    [
      { description_url: "https://other.example.com/a.json" },
      "description_url must be at https://tracker.example.com",
    ],
    [{ description_url: "http://169.254.169.254/a.json" }, "description_url must be at https://tracker"],
    [{ description_url: "file:///etc/passwd" }, "description_url must be at https://tracker"],
    [{ description_url: "openapi.json" }, "description_url must be a URL"],
    [{ description_file: "a.yaml", operations: [OPERATION] }, 'operations is only for kind "http"'],
  ])("is refused with %o, and the fault names the field", (fields, message) => {
    expect(faults({ ...OPENAPI, ...fields }).join("\n")).toContain(message);
  });

  it("has fields that a connector of the kind mcp has not", () => {
    expect(faults({ slug: "a", kind: "mcp", url: URL, headers: { "X-A": "b" } })).toEqual([
      'headers: headers is only for kind "openapi" and "http".',
    ]);
  });
});
