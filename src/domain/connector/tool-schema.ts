/**
 * Whether everything that reads a tool's input schema will take it. One tool that a model provider refuses ends each turn of a
 * session, and one that an agent's MCP client refuses hides all tools. So a schema must satisfy the strictest of them:
 *
 *  - MCP's clients: `type: "object"` at the top, and an object for each property there.
 *  - Anthropic: JSON Schema 2020-12, no anyOf, oneOf or allOf at the top, and names of properties there.
 *  - OpenAI: no enum or not at the top either.
 *  - All: text that is valid Unicode, and references that need no other document.
 */
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/client/validators/ajv";
import { isRecord } from "../../ground/record.ts";
import { isArgumentName } from "./tool-name.ts";

type Schema = Readonly<Record<string, unknown>>;

const NOT_AT_THE_TOP = ["anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "then", "else"];
/** Keywords whose values are data, in which nothing is a reference. */
const DATA = new Set(["const", "default", "enum", "example", "examples"]);
/** Keywords whose values are tables of schemas by names that mean nothing. */
const TABLES = new Set([
  "$defs",
  "definitions",
  "dependencies",
  "dependentSchemas",
  "patternProperties",
  "properties",
]);

/** @returns why the schema cannot be offered, as a sentence about the tool. Null if it can. @param schema of few levels */
export const schemaFault = (schema: Schema): string | null => {
  if (schema["type"] !== "object") return 'Its input schema has no "type": "object" at the top.';
  const combinator = NOT_AT_THE_TOP.find((keyword) => Object.hasOwn(schema, keyword));
  if (combinator !== undefined)
    return `Its input schema has ${combinator} at the top, which model providers refuse.`;
  if (!isWellFormed(schema)) return "Its input schema has text that is not valid Unicode.";
  return propertyFault(schema["properties"] ?? {}) ?? metaFault(schema) ?? referenceFault(schema, schema);
};

/**
 * The schema as agents get it: what some providers demand and JSON Schema leaves out is added, so that no tool is lost for it. OpenAI and
 * Gemini want `items` of each array, and Gemini takes no `required` name without a property.
 */
export const offeredSchema = (schema: Schema): Schema => completeSchema(schema) as Schema;

const isArray = ({ type }: Schema): boolean =>
  type === "array" || (Array.isArray(type) && type.includes("array"));

/** @param value a schema, a list of schemas, or what stands in their place */
const completeSchema = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(completeSchema);
  if (!isRecord(value)) return value;
  const inner = Object.entries(value).map(([keyword, one]): [string, unknown] => {
    if (DATA.has(keyword)) return [keyword, one];
    if (!TABLES.has(keyword) || !isRecord(one)) return [keyword, completeSchema(one)];
    return [keyword, Object.fromEntries(Object.entries(one).map(([name, of]) => [name, completeSchema(of)]))];
  });
  const { required, properties } = value;
  const declaredProperties = isRecord(properties) ? properties : {};
  return {
    ...Object.fromEntries(inner),
    ...(isArray(value) &&
      value["items"] === undefined &&
      value["prefixItems"] === undefined && { items: {} }),
    ...(Array.isArray(required) && {
      required: required.filter(
        (name) => typeof name === "string" && Object.hasOwn(declaredProperties, name),
      ),
    }),
  };
};

const propertyFault = (properties: unknown): string | null => {
  if (!isRecord(properties)) return "Its input schema has properties that are not a table.";
  for (const [name, schema] of Object.entries(properties)) {
    const quotedName = JSON.stringify(name.slice(0, 64));
    if (!isArgumentName(name))
      return `Its argument ${quotedName} must have a name of 1 to 64 letters, digits, _, . or -.`;
    if (!isRecord(schema))
      return `The schema of its argument ${quotedName} is not a table, which agents' clients refuse.`;
  }
  return null;
};

type Validate = (schema: Schema) => { readonly errorMessage: string | undefined };
let validator: Validate | null = null;

/** Checks against the meta-schema. Compiling it takes 100 ms, which a service without connectors does not spend. */
const metaFault = (schema: Schema): string | null => {
  validator ??= new AjvJsonSchemaValidator().getValidator({
    $ref: "https://json-schema.org/draft/2020-12/schema",
  });
  const { errorMessage } = validator(schema);
  if (errorMessage === undefined) return null;
  const [first = ""] = errorMessage.split(", ");
  return `Its input schema is not valid JSON Schema 2020-12: ${first.replace(/^data/, "").trim().slice(0, 300)}.`;
};

const isWellFormed = (value: unknown): boolean => {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value !== "object" || value === null) return true;
  return Object.entries(value).every(([name, inner]) => name.isWellFormed() && isWellFormed(inner));
};

/** Looks through a schema, or a list of them. */
const referenceFault = (root: Schema, value: unknown): string | null => {
  if (Array.isArray(value)) return firstFault(value, (inner) => referenceFault(root, inner));
  if (!isRecord(value)) return null;
  return firstFault(Object.entries(value), ([keyword, inner]) => {
    if (keyword === "$ref" || keyword === "$dynamicRef") return targetFault(root, String(inner));
    if (DATA.has(keyword)) return null;
    return TABLES.has(keyword) && isRecord(inner)
      ? firstFault(Object.values(inner), (schema) => referenceFault(root, schema))
      : referenceFault(root, inner);
  });
};

const firstFault = <A>(parts: readonly A[], faultOf: (part: A) => string | null): string | null => {
  for (const part of parts) {
    const fault = faultOf(part);
    if (fault !== null) return fault;
  }
  return null;
};

const targetFault = (root: Schema, reference: string): string | null => {
  const quotedReference = JSON.stringify(reference.slice(0, 200));
  if (!/^#(?:\/|$)/.test(reference))
    return `Its input schema refers to ${quotedReference}. Only references such as #/$defs/name are followed.`;
  let target: unknown = root;
  for (const part of reference.split("/").slice(1)) {
    const name = unescapePart(part);
    target =
      typeof target === "object" && target !== null && name !== null && Object.hasOwn(target, name)
        ? (target as Schema)[name]
        : undefined;
  }
  return target === undefined
    ? `Its input schema refers to ${quotedReference}, which it does not have.`
    : null;
};

/** A part of a JSON pointer in a fragment (RFC 6901, 6). */
const unescapePart = (part: string): string | null => {
  try {
    return decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return null;
  }
};
