/** OpenAPI descriptions as tools: good ones, and hostile ones. */
import { readFileSync } from "node:fs";
import * as Result from "effect/Result";
import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { readCatalogue } from "../../../src/domain/connector/catalogue.ts";
import {
  readDescription,
  type Described,
  type ReservedNames,
} from "../../../src/domain/connector/openapi/description.ts";

const NONE: ReservedNames = { headers: [], query: [] };

const read = (text: string, names = NONE): Described => {
  const found = readDescription(text, names);
  if (Result.isFailure(found)) throw new Error(found.failure);
  return found.success;
};

const why = (text: string): string => {
  const found = readDescription(text, NONE);
  return Result.isFailure(found) ? found.failure : "";
};

const document = (paths: object, rest: object = {}): string =>
  JSON.stringify({ openapi: "3.1.0", info: { title: "Test", version: "1" }, paths, ...rest });

const one = (operation: object, rest: object = {}) => read(document({ "/a": { post: operation } }, rest));

const leftOut = (operation: object, rest: object = {}): string | undefined =>
  one(operation, rest).leftOut[0]?.why;

const schemaOf = (schema: object, components: object = {}) =>
  one(
    { requestBody: { content: { "application/json": { schema } } } },
    { components: { schemas: components } },
  );

const bodyOf = (described: Described): unknown =>
  (described.tools[0]?.inputSchema["properties"] as Record<string, unknown> | undefined)?.["body"];

describe("an operation", () => {
  const described = read(readFileSync(new URL("../../support/servers/pets.yaml", import.meta.url), "utf8"));

  it("of a description in YAML becomes a tool with its arguments and its request", () => {
    expect(
      described.tools.map(({ name, request }) => `${name}: ${request?.method} ${request?.path}`),
    ).toEqual([
      "list_pets: GET /pets",
      "add_pet: POST /pets",
      "get_pet: GET /pets/{petId}",
      "delete_pets_petId: DELETE /pets/{petId}",
      "rename_pet: PATCH /pets/{petId}",
      "find_owner: POST /owners/search",
    ]);
    const { tools } = described;
    expect(tools[0]).toEqual({
      name: "list_pets",
      description: "Lists pets.\n\nThe newest ones come first.",
      inputSchema: {
        type: "object",
        properties: {
          kind: {
            type: "array",
            items: { type: "string", enum: ["cat", "dog"] },
            description: "Kinds of pets.",
          },
          limit: { type: "integer", maximum: 100, default: 20 },
          "X-Request-Id": { type: "string", description: "An id of your choice." },
        },
        required: [],
        additionalProperties: false,
      },
      request: {
        method: "GET",
        path: "/pets",
        parameters: [
          { argument: "X-Request-Id", name: "X-Request-Id", in: "header", style: "plain", required: false },
          { argument: "kind", name: "kind", in: "query", style: "comma", required: false },
          { argument: "limit", name: "limit", in: "query", style: "plain", required: false },
        ],
        body: null,
      },
    });
    // A schema that contains itself stays open there.
    expect(tools[1]?.inputSchema).toEqual({
      type: "object",
      properties: {
        "X-Request-Id": { type: "string", description: "An id of your choice." },
        body: {
          type: "object",
          properties: {
            name: { type: "string", maxLength: 50 },
            tag: { type: ["string", "null"] },
            parent: {},
          },
          required: ["name"],
        },
      },
      required: ["body"],
      additionalProperties: false,
    });
    expect(tools[5]?.request?.body).toEqual({
      type: "application/x-www-form-urlencoded",
      encoding: "form",
      argument: "body",
      required: true,
    });
  });

  it("that cannot be a tool is left out, and named with the reason", () => {
    expect(described.leftOut).toEqual([
      { name: "head_pets", why: "The method HEAD is not offered." },
      { name: "set_photo", why: "Its body is neither JSON nor a form: multipart/form-data." },
      { name: "watch_pets", why: "It answers by a callback, which no agent can receive." },
      { name: "who_am_i", why: 'It needs the cookie "session".' },
    ]);
  });

  it("has no argument for what the connector itself sets", () => {
    const parameters = [
      { name: "key", in: "query", required: true, schema: { type: "string" } },
      { name: "X-Api-Key", in: "header", required: true, schema: { type: "string" } },
      { name: "Authorization", in: "header", required: true, schema: { type: "string" } },
    ];
    const { tools } = read(document({ "/a": { get: { parameters } } }), {
      headers: ["x-api-key"],
      query: ["key"],
    });
    expect(tools[0]?.request?.parameters).toEqual([]);
  });

  it("has other names for arguments that would have the same one", () => {
    const parameters = [
      { name: "id", in: "path", required: true, schema: {} },
      { name: "id", in: "query", schema: {} },
      { name: "body", in: "query", schema: {} },
      { name: "filter[a]", in: "query", schema: {} },
    ];
    const { tools } = read(
      document({ "/a/{id}": { put: { parameters, requestBody: { content: { "application/json": {} } } } } }),
    );
    expect(tools[0]?.request?.parameters.map(({ argument, name }) => [argument, name])).toEqual([
      ["id", "id"],
      ["query_id", "id"],
      ["query_body", "body"],
      ["filter_a_", "filter[a]"],
    ]);
  });

  it.each([
    [{ parameters: [{ name: "Host", in: "header", required: true }] }, 'It needs the header "Host"'],
    [{ parameters: [{ name: "a", in: "path" }] }, 'Its path does not have "a".'],
    [
      {
        parameters: [
          { name: "a", in: "query", style: "spaceDelimited", schema: { type: "object" }, required: true },
        ],
      },
      "a style that is not supported",
    ],
    [{ parameters: [{ name: "a", in: "body" }] }, "at an unknown place"],
    [{ parameters: [{ in: "query" }] }, "has no name"],
    [{ parameters: { a: 1 } }, "are not a list"],
    [
      {
        parameters: [
          { name: "a b", in: "query" },
          { name: "a_b", in: "query" },
          { name: "a+b", in: "query" },
        ],
      },
      "have the same name",
    ],
    [{ requestBody: { content: { "application/xml": {} } } }, "neither JSON nor a form: application/xml"],
    [{ requestBody: { content: { "application/json\r\nx: y": {} } } }, "neither JSON nor a form"],
    [{ requestBody: {} }, "none is described"],
  ])("is left out with %o", (operation, reason) => {
    expect(leftOut(operation)).toContain(reason);
  });

  it("of OpenAPI 3.0 has its bounds and nulls as JSON Schema writes them, without fields that only answers have", () => {
    const schema = {
      type: "object",
      required: ["id", "size"],
      properties: {
        id: { type: "string", readOnly: true },
        size: { type: "integer", minimum: 0, exclusiveMinimum: true, nullable: true, example: 3, "x-a": 1 },
      },
    };
    expect(bodyOf(schemaOf(schema))).toEqual({
      type: "object",
      required: ["size"],
      properties: { size: { type: ["integer", "null"], exclusiveMinimum: 0 } },
    });
  });

  it("keeps its summary alone if its description is too long", () => {
    const { tools } = one({ summary: "Does it.", description: "x".repeat(10_000) });
    expect(tools[0]?.description).toBe("Does it.");
  });
});

describe("a description", () => {
  it.each([
    ["{", "neither JSON nor YAML"],
    ["a: [1", "neither JSON nor YAML"],
    ["openapi: 3.1.0\nopenapi: 3.0.0\npaths: {}", "neither JSON nor YAML"],
    ["just a text", "no table of fields"],
    ['{"swagger": "2.0"}', "It is Swagger 2.0"],
    ['{"openapi": "2.0", "paths": {}}', "no field openapi with a version"],
    ['{"openapi": 3.1, "paths": {}}', "no field openapi with a version"],
    ["openapi: 3.1.0", "It has no paths."],
    ["a: &a [*a]", "neither JSON nor YAML"],
    ["a: !!js/function 'function () {}'\nopenapi: 3.1.0", "It has no paths."],
  ])("is refused as %j", (text, reason) => {
    expect(why(text)).toContain(reason);
  });

  it("decides nothing by its servers and its security [K19]", () => {
    const hostile = [{ url: "http://169.254.169.254/" }, { url: "file:///etc" }];
    const plain = one({ operationId: "a" });
    expect(one({ operationId: "a", servers: hostile, security: [] }, { servers: hostile })).toEqual(plain);
    expect(JSON.stringify(plain)).not.toContain("169.254");
  });

  it.each([
    "https://evil.example.com/a.json#/x",
    "http://169.254.169.254/",
    "file:///etc/passwd",
    "other.yaml#/a",
    "//evil.example.com",
  ])("with a reference to %s loses that operation, and fetches nothing [K19]", (reference) => {
    const described = read(
      document({
        "/a": { get: { operationId: "a", parameters: [{ $ref: reference }] } },
        "/b": { get: { operationId: "b" } },
        "/c": { $ref: reference },
        "/d": {
          post: {
            operationId: "d",
            requestBody: { content: { "application/json": { schema: { $ref: reference } } } },
          },
        },
      }),
    );
    expect(described.tools.map(({ name }) => name)).toEqual(["b"]);
    expect(described.leftOut.map(({ name }) => name)).toEqual(["a", "/c", "d"]);
    for (const { why: reason } of described.leftOut) expect(reason).toContain("which is not fetched");
  });

  it("with references that lead in a circle is read in bounded time [K19]", () => {
    const components = {
      A: { $ref: "#/components/schemas/B" },
      B: { $ref: "#/components/schemas/A" },
      Node: { type: "object", properties: { next: { $ref: "#/components/schemas/Node" } } },
    };
    expect(bodyOf(schemaOf({ $ref: "#/components/schemas/A" }, components))).toEqual({});
    expect(bodyOf(schemaOf({ $ref: "#/components/schemas/Node" }, components))).toEqual({
      type: "object",
      properties: { next: {} },
    });
    const circle = { parameters: { A: { $ref: "#/components/parameters/A" } } };
    expect(
      leftOut({ parameters: [{ $ref: "#/components/parameters/A" }] }, { components: circle }),
    ).toContain("lead in a circle");
  });

  it("whose references multiply loses that operation [K19]", () => {
    const levels = Array.from({ length: 20 }, (_, level) => [
      `Level${level}`,
      {
        allOf: [
          { $ref: `#/components/schemas/Level${level + 1}` },
          { $ref: `#/components/schemas/Level${level + 1}` },
        ],
      },
    ]);
    const components = Object.fromEntries([...levels, ["Level20", { type: "string" }]]) as object;
    const {
      tools,
      leftOut: [left],
    } = schemaOf({ $ref: "#/components/schemas/Level0" }, components);
    expect(tools).toEqual([]);
    expect(left?.why).toContain("more than 65536 bytes");
  });

  it("that is deeply nested loses that operation [K19]", () => {
    const deep = `${'{"items":'.repeat(5000)}{}${"}".repeat(5000)}`;
    const text = document({
      "/a": { post: { requestBody: { content: { "application/json": { schema: 1 } } } } },
    });
    expect(read(text.replace('"schema":1', `"schema":${deep}`)).leftOut[0]?.why).toContain(
      "more than 64 levels",
    );
  });

  it("with fields __proto__ changes no object, and loses that operation [K19]", () => {
    const text = document({
      "/a": {
        post: { requestBody: { content: { "application/json": { schema: { properties: "HERE" } } } } },
      },
      "/b": { get: { parameters: [{ name: "__proto__", in: "query" }] } },
    }).replace('"HERE"', '{"__proto__":{"type":"string"}}');
    expect(read(text).tools).toEqual([]);
    expect(read(text).leftOut.map(({ why: reason }) => reason)).toEqual([
      "Its schema has a field __proto__.",
      "It has a parameter __proto__.",
    ]);
    expect(({} as Record<string, unknown>)["type"]).toBeUndefined();
    expect(leftOut({ parameters: [{ $ref: "#/__proto__/toString" }] })).toContain(
      "which the description lacks",
    );
  });

  it("whose YAML repeats anchors without end is refused [K19]", () => {
    const lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"];
    for (let level = 1; level < 12; level += 1)
      lines.push(`a${level}: &a${level} [${Array.from({ length: 9 }, () => `*a${level - 1}`).join(", ")}]`);
    expect(why(lines.join("\n"))).toContain("neither JSON nor YAML that can be read");
  });

  it("with 10,000 operations has the first 2,000 as tools, and says so [K19]", () => {
    const paths = Object.fromEntries(
      Array.from({ length: 10_000 }, (_, index) => [`/a${index}`, { get: { operationId: `op_${index}` } }]),
    );
    const { tools, leftOut: left } = read(document(paths));
    expect(tools).toHaveLength(2000);
    expect(left[0]).toEqual({ name: "op_2000", why: "A connector can have 2000 tools." });
  });

  it("with an operationId twice offers the first one, and names the other [K19]", () => {
    const { tools, leftOut: left } = read(
      document({ "/a": { get: { operationId: "a" } }, "/b": { delete: { operationId: "a" } } }),
    );
    const catalogue = readCatalogue("pets", tools, left);
    expect(catalogue.tools.map(({ request }) => request?.path)).toEqual(["/a"]);
    expect(catalogue.leftOut).toEqual([{ name: "a", why: "Another tool has the same name." }]);
  });

  it.each([
    "/../admin",
    "//evil.example.com/a",
    "/a\r\nb",
    "/a%2f..",
    "/{a}",
    "/{a}/{a}",
    "http://evil.example.com/",
  ])("with the path %j loses that operation [K19]", (path) => {
    expect(read(document({ [path]: { get: {} } })).tools).toEqual([]);
  });

  it("is the same in YAML and in JSON", () => {
    const text = document({ "/a": { get: { operationId: "a", summary: "Does it: yes" } } });
    expect(read(stringify(JSON.parse(text)))).toEqual(read(text));
  });
});
