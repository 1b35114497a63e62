import { expect, test } from "vitest";
import { offeredSchema, schemaFault } from "../../../src/domain/connector/tool-schema.ts";

test.each([
  ["an argument whose schema is a boolean", { properties: { a: true } }, '"a" is not a table'],
  ["an argument with another name", { properties: { "$.xgafv": {} } }, '"$.xgafv" must have a name'],
  ["an argument with a long name", { properties: { ["x".repeat(65)]: {} } }, "1 to 64"],
  ["properties as a list", { properties: [] }, "not a table"],
  ["anyOf at the top", { anyOf: [{ required: ["a"] }] }, "anyOf at the top"],
  ["not at the top", { not: {} }, "not at the top"],
  ["enum at the top", { enum: [{}] }, "enum at the top"],
  ["another type", { type: "string" }, '"type": "object"'],
  ["a list of types", { type: ["object"] }, '"type": "object"'],
  ["an unknown type below", { properties: { a: { items: { type: "text" } } } }, "/properties/a/items/type"],
  ["a list of items, as older drafts have it", { properties: { a: { items: [{}] } } }, "2020-12"],
  ["required that is not a list", { required: "a" }, "/required must be array"],
  ["a pattern that is none", { properties: { a: { pattern: "(" } } }, "/properties/a/pattern"],
  ["a reference to an address", { properties: { a: { $ref: "https://example.com/a" } } }, "refers to"],
  ["a dynamic reference to an address", { items: { $dynamicRef: "https://example.com/a" } }, "refers to"],
  ["a reference to a file", { $defs: { a: { items: { $ref: "a.json#/b" } } } }, "refers to"],
  ["a reference to nothing", { properties: { a: { $ref: "#/$defs/a" } } }, "which it does not have"],
  ["half a character", { title: "\ud800" }, "not valid Unicode"],
])("refuses %s, and says why", (_, fields, why) => {
  expect(schemaFault({ type: "object", ...fields })).toContain(why);
});

test.each([
  ["no properties", {}],
  ["a schema that is true below the top", { properties: { a: { properties: { b: true } } } }],
  ["references within itself", { $defs: { "a/b": {} }, properties: { a: { $ref: "#/$defs/a~1b" } } }],
  ["a tree", { properties: { a: { type: "array", items: { $ref: "#" } } } }],
  ["a combinator below the top", { properties: { a: { anyOf: [{ type: "string" }, { type: "null" }] } } }],
  ["data that look like a reference", { properties: { a: { default: { $ref: "https://example.com" } } } }],
  ["an argument below the top that is called $ref", { properties: { a: { properties: { $ref: {} } } } }],
  ["an older draft's name", { $schema: "http://json-schema.org/draft-07/schema#", definitions: {} }],
])("takes %s", (_, fields) => {
  expect(schemaFault({ type: "object", ...fields })).toBeNull();
});

test("an agent gets the items of each array, and no required name without a property", () => {
  const list = { type: ["array", "null"] };
  expect(
    offeredSchema({
      type: "object",
      properties: {
        ids: { type: "array" },
        known: { type: "array", items: { type: "array" } },
        pair: { type: "array", prefixItems: [{}] },
        type: { anyOf: [list], default: { type: "array" } },
        required: { type: "object", properties: { a: true }, required: ["a", "b"] },
      },
      required: ["ids", "gone"],
    }),
  ).toEqual({
    type: "object",
    properties: {
      ids: { type: "array", items: {} },
      known: { type: "array", items: { type: "array", items: {} } },
      pair: { type: "array", prefixItems: [{}] },
      type: { anyOf: [{ ...list, items: {} }], default: { type: "array" } },
      required: { type: "object", properties: { a: true }, required: ["a"] },
    },
    required: ["ids"],
  });
});
