/**
 * Schemas of an OpenAPI description (3.0 and 3.1) as JSON Schema that needs no other document.
 *
 *  OS1 A reference leads to a place in the same document, or the operation is left out. Nothing is fetched.
 *  OS2 The work for one schema is bounded, however its references multiply.
 *  OS3 Only known keywords of the right type are kept.
 */
import { isRecord } from "../../../ground/record.ts";
import { DEPTH_LIMIT, SCHEMA_LIMIT_BYTES } from "../catalogue.ts";

/** Why an operation is no tool, as a sentence. */
export class Unusable extends Error {}

export type Table = Readonly<Record<string, unknown>>;

export const ownField = (table: Table, name: string): unknown =>
  Object.hasOwn(table, name) ? table[name] : undefined;

/** How many references one after the other are followed. */
const HOPS = 32;
/** A schema of the largest size has fewer parts. */
const PARTS = 16_384;

const TYPES: ReadonlySet<unknown> = new Set([
  "string",
  "integer",
  "number",
  "boolean",
  "array",
  "object",
  "null",
]);
const isNumber = (value: unknown): boolean => typeof value === "number" && Number.isFinite(value);
const isText = (value: unknown): boolean => typeof value === "string";
const isTypes = (value: unknown): boolean =>
  Array.isArray(value) ? value.every((each) => TYPES.has(each)) : TYPES.has(value);

/** Keywords whose value is kept as it is. */
const KEPT: Readonly<Record<string, (value: unknown) => boolean>> = {
  type: isTypes,
  enum: Array.isArray,
  const: () => true,
  default: () => true,
  format: isText,
  pattern: isText,
  description: isText,
  minimum: isNumber,
  maximum: isNumber,
  exclusiveMinimum: isNumber,
  exclusiveMaximum: isNumber,
  multipleOf: isNumber,
  minLength: isNumber,
  maxLength: isNumber,
  minItems: isNumber,
  maxItems: isNumber,
  minProperties: isNumber,
  maxProperties: isNumber,
  uniqueItems: (value) => typeof value === "boolean",
};
/** Keywords whose value is a schema, a list of schemas, or a table of schemas. */
const INNER: ReadonlySet<string> = new Set([
  "items",
  "additionalProperties",
  "not",
  "propertyNames",
  "contains",
]);
const LISTS: ReadonlySet<string> = new Set(["allOf", "anyOf", "oneOf", "prefixItems"]);
const TABLES: ReadonlySet<string> = new Set(["properties", "patternProperties"]);

/** A description's document, whose references are resolved. */
export class Document {
  readonly #root: Table;
  #parts = 0;

  constructor(root: Table) {
    this.#root = root;
  }

  /** The part to which references lead. @throws Unusable (OS1) */
  resolve(part: unknown): unknown {
    let target = part;
    for (let hop = 0; hop < HOPS; hop += 1) {
      const reference = isRecord(target) ? ownField(target, "$ref") : undefined;
      if (typeof reference !== "string") return target;
      target = this.#at(reference);
    }
    throw new Unusable("Its references lead in a circle.");
  }

  /** A table after its references. @throws Unusable */
  table(part: unknown): Table {
    const target = this.resolve(part);
    if (isRecord(target)) return target;
    throw new Unusable("A part of it is not written as OpenAPI wants it.");
  }

  /** A schema without references. @throws Unusable */
  schema(part: unknown): Table {
    this.#parts = 0;
    return this.#schema(part, []);
  }

  #at(reference: string): unknown {
    if (!reference.startsWith("#"))
      throw new Unusable(
        `It refers to another document, ${JSON.stringify(reference.slice(0, 100))}, which is not fetched.`,
      );
    let value: unknown = this.#root;
    for (const step of reference.slice(1).split("/").slice(1)) {
      const name = decodeStep(step);
      value = Array.isArray(value)
        ? value[Number(name)]
        : isRecord(value)
          ? ownField(value, name)
          : undefined;
    }
    if (value === undefined || (reference !== "#" && !reference.startsWith("#/")))
      throw new Unusable(
        `It refers to ${JSON.stringify(reference.slice(0, 100))}, which the description lacks.`,
      );
    return value;
  }

  /** @param path the references and parts above this one */
  #schema(part: unknown, path: readonly string[]): Table {
    this.#parts += 1;
    if (this.#parts > PARTS) throw new Unusable(`Its schema has more than ${SCHEMA_LIMIT_BYTES} bytes.`);
    if (path.length > DEPTH_LIMIT) throw new Unusable(`Its schema has more than ${DEPTH_LIMIT} levels.`);
    if (typeof part === "boolean") return part ? {} : { not: {} };
    if (!isRecord(part)) throw new Unusable("Its schema is not written as OpenAPI wants it.");
    const reference = ownField(part, "$ref");
    const own = this.#keywords(part, path);
    if (typeof reference !== "string") return own;
    // A schema that contains itself stays open at that place.
    if (path.includes(reference)) return own;
    return { ...this.#schema(this.#at(reference), [...path, reference]), ...own };
  }

  #keywords(part: Table, path: readonly string[]): Table {
    const below = [...path, ""];
    const fields: [string, unknown][] = [];
    for (const [name, value] of Object.entries(part)) {
      if (Object.hasOwn(KEPT, name)) {
        if (KEPT[name]?.(value) === true) fields.push([name, value]);
      } else if (INNER.has(name)) fields.push([name, this.#schema(value, below)]);
      else if (LISTS.has(name) && Array.isArray(value))
        fields.push([name, value.map((each) => this.#schema(each, below))]);
      else if (TABLES.has(name) && isRecord(value)) fields.push([name, this.#properties(value, below)]);
    }
    const names = ownField(part, "required");
    if (Array.isArray(names)) fields.push(["required", this.#required(part, names)]);
    return modern(part, Object.fromEntries(fields));
  }

  #properties(value: Table, path: readonly string[]): Table {
    if (Object.hasOwn(value, "__proto__")) throw new Unusable("Its schema has a field __proto__.");
    return Object.fromEntries(
      Object.entries(value)
        .filter(([, inner]) => !this.#isReadOnly(inner))
        .map(([name, inner]) => [name, this.#schema(inner, path)]),
    );
  }

  /** A field that only answers have. */
  #isReadOnly(part: unknown): boolean {
    const target = this.resolve(part);
    return isRecord(target) && ownField(target, "readOnly") === true;
  }

  #required(part: Table, names: readonly unknown[]): readonly unknown[] {
    const properties = ownField(part, "properties");
    const propertySchemas = isRecord(properties) ? properties : {};
    return names.filter(
      (name) => typeof name === "string" && !this.#isReadOnly(ownField(propertySchemas, name)),
    );
  }
}

const decodeStep = (step: string): string => {
  try {
    return decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    throw new Unusable("It has a reference that cannot be read.");
  }
};

/** What OpenAPI 3.0 writes in its own way, as JSON Schema. */
const modern = (part: Table, schema: Table): Table => {
  const { type } = schema;
  const isNullable = ownField(part, "nullable") === true && typeof type === "string";
  const bounds = (
    [
      ["exclusiveMinimum", "minimum"],
      ["exclusiveMaximum", "maximum"],
    ] as const
  ).flatMap(([flag, bound]) => (ownField(part, flag) === true ? [[flag, bound] as const] : []));
  if (!isNullable && bounds.length === 0) return schema;
  const changedSchema = new Map(Object.entries(schema));
  if (isNullable) changedSchema.set("type", [type, "null"]);
  for (const [flag, bound] of bounds) {
    const value = changedSchema.get(bound);
    changedSchema.delete(bound);
    if (value !== undefined) changedSchema.set(flag, value);
  }
  return Object.fromEntries(changedSchema);
};
