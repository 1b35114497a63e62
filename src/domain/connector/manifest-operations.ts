/** The tools of a connector of the kind `http`, as the manifest writes them (`[[connectors.operations]]`). */
import { isRecord } from "../../ground/record.ts";
import type { CatalogueTool } from "./catalogue.ts";
import {
  isArgumentHeader,
  METHODS,
  pathFault,
  pathPlaceholders,
  type HttpParameter,
  type Method,
} from "./http-operation.ts";
import { isArgumentName, isToolName } from "./tool-name.ts";

/** The most tools that one entry writes. A description in a file may have more. */
export const OPERATIONS_LIMIT = 100;
const PARAMETERS_LIMIT = 50;
const DESCRIPTION_LIMIT = 2000;
const PLACES = ["path", "query", "header", "body"] as const;
const TYPES = ["string", "integer", "number", "boolean", "array", "object"];
const FIELDS = ["name", "description", "method", "path", "body", "parameters"];
const PARAMETER_FIELDS = ["name", "in", "type", "description", "required", "enum", "schema"];
const BODIES: Readonly<Record<string, string>> = {
  json: "application/json",
  form: "application/x-www-form-urlencoded",
};

type Table = Readonly<Record<string, unknown>>;
type Refuse = (field: string, message: string) => void;
type Schema = CatalogueTool["inputSchema"];

/** A parameter with the schema of its argument. */
interface Read {
  readonly parameter: HttpParameter;
  readonly schema: Schema;
}

/** An operation that is wrong is left out, and the others stay. */
export const readOperations = (
  value: unknown,
  { refuse, leave }: { readonly refuse: Refuse; readonly leave: Refuse },
): readonly CatalogueTool[] => {
  if (!Array.isArray(value) || value.length === 0 || value.length > OPERATIONS_LIMIT) {
    refuse(
      "operations",
      `kind http needs 1 to ${OPERATIONS_LIMIT} tools, each as its own table [[connectors.operations]].`,
    );
    return [];
  }
  const names = new Set<string>();
  return value.flatMap((entry: unknown, index) => {
    let isWhole = true;
    const fault: Refuse = (field, message) => {
      isWhole = false;
      leave(`operations[${index}].${field}`, message);
    };
    const tool = readOperation(entry, fault);
    if (names.has(tool.name)) fault("name", "name is already used by another operation.");
    names.add(tool.name);
    return isWhole ? [tool] : [];
  });
};

const readOperation = (entry: unknown, refuse: Refuse): CatalogueTool => {
  const fields: Table = isRecord(entry) ? entry : {};
  const stray = Object.keys(fields).find((field) => !FIELDS.includes(field));
  if (stray !== undefined) refuse(stray.slice(0, 64), `An operation has the fields ${FIELDS.join(", ")}.`);
  const name = readName(fields["name"], refuse);
  const description = fields["description"];
  if (typeof description !== "string" || description === "" || description.length > DESCRIPTION_LIMIT)
    refuse(
      "description",
      `description is required: what the tool does, in at most ${DESCRIPTION_LIMIT} characters.`,
    );
  const method = readMethod(fields["method"] ?? "GET", refuse);
  const read = readParameters(fields["parameters"] ?? [], refuse);
  const path = readPath(fields["path"], read, refuse);
  const body = fields["body"] ?? "json";
  const type = typeof body === "string" && Object.hasOwn(BODIES, body) ? BODIES[body] : undefined;
  const hasFields = read.some(({ parameter }) => parameter.in === "field");
  if (type === undefined) refuse("body", `body must be "json" or "form".`);
  else if ((hasFields || fields["body"] !== undefined) && method === "GET")
    refuse("method", "A GET has no body. Use another method, or parameters in the query.");
  return {
    name,
    description: typeof description === "string" ? description : "",
    inputSchema: objectSchema(read),
    request: {
      method,
      path,
      parameters: read.map(({ parameter }) => parameter),
      body:
        hasFields && type !== undefined
          ? { type, encoding: body === "form" ? "form" : "json", argument: null, required: true }
          : null,
    },
  };
};

const readName = (value: unknown, refuse: Refuse): string => {
  if (typeof value === "string" && isToolName(value)) return value;
  refuse("name", "name is required: 1 to 128 letters, digits, _, -, . or /.");
  return "";
};

const readMethod = (value: unknown, refuse: Refuse): Method => {
  const method = METHODS.find((each) => each === value);
  if (method === undefined) refuse("method", `method must be ${METHODS.join(", ")}, in capitals.`);
  return method ?? "GET";
};

const readPath = (value: unknown, read: readonly Read[], refuse: Refuse): string => {
  if (typeof value !== "string") {
    refuse("path", `path is required, for example "/issues/{id}". It goes on where url ends.`);
    return "/";
  }
  const fault = pathFault(value);
  const pathParameters = new Set(
    read.flatMap(({ parameter }) => (parameter.in === "path" ? [parameter.name] : [])),
  );
  const placeholders = pathPlaceholders(value);
  const lacking = placeholders.find((name) => !pathParameters.has(name));
  const idle = [...pathParameters].find((name) => !placeholders.includes(name));
  if (fault !== null) refuse("path", `path ${fault}.`);
  else if (lacking !== undefined)
    refuse("path", `path names {${lacking}}. Add a parameter { name = "${lacking}", in = "path" }.`);
  else if (idle !== undefined)
    refuse("path", `path must have {${idle}}, because the parameter ${idle} is in the path.`);
  return value;
};

const readParameters = (value: unknown, refuse: Refuse): readonly Read[] => {
  const entries: readonly unknown[] = Array.isArray(value) ? value : [null];
  if (entries.length > PARAMETERS_LIMIT)
    refuse("parameters", `An operation has at most ${PARAMETERS_LIMIT} parameters.`);
  const names = new Set<string>();
  return entries.slice(0, PARAMETERS_LIMIT).flatMap((entry, index) => {
    const place = `parameters[${index}]`;
    const read = isRecord(entry)
      ? readParameter(entry, (field, message) => refuse(`${place}.${field}`, message))
      : null;
    if (!isRecord(entry))
      refuse(place, `A parameter is a table, for example { name = "id", in = "path", type = "integer" }.`);
    if (read === null) return [];
    const { argument } = read.parameter;
    if (names.has(argument))
      refuse(`${place}.name`, `name ${argument} is already used by another parameter.`);
    names.add(argument);
    return [read];
  });
};

const readParameter = (entry: Table, refuse: Refuse): Read | null => {
  const { name, in: place, required, description } = entry;
  const stray = Object.keys(entry).find((field) => !PARAMETER_FIELDS.includes(field));
  const knownPlace = PLACES.find((each) => each === place);
  const schema = readSchema(entry, refuse);
  if (stray !== undefined)
    refuse(stray.slice(0, 64), `A parameter has the fields ${PARAMETER_FIELDS.join(", ")}.`);
  else if (typeof name !== "string" || !isArgumentName(name) || name === "__proto__")
    refuse("name", "name is required: 1 to 64 letters, digits, _, - or .");
  else if (knownPlace === undefined)
    refuse("in", `in is required and must be "path", "query", "header" or "body".`);
  else if (knownPlace === "header" && !isArgumentHeader(name))
    refuse(
      "name",
      `The header ${name} is set by the service. A fixed header is a field of the connector: headers.`,
    );
  else if (knownPlace === "path" && required === false)
    refuse("required", "A parameter of the path is always required.");
  else if (required !== undefined && typeof required !== "boolean")
    refuse("required", "required must be true or false.");
  else if (description !== undefined && typeof description !== "string")
    refuse("description", "description must be a text.");
  else if (schema !== null)
    return {
      parameter: {
        argument: name,
        name,
        in: knownPlace === "body" ? "field" : knownPlace,
        style: schema["type"] === "array" ? (knownPlace === "query" ? "repeat" : "comma") : "plain",
        required: knownPlace === "path" || required === true,
      },
      schema: { ...schema, ...(typeof description === "string" && { description }) },
    };
  return null;
};

/** The JSON Schema of an argument: `type` and `enum`, or `schema` for everything else. */
const readSchema = ({ type, enum: values, schema, in: place }: Table, refuse: Refuse): Schema | null => {
  if (schema !== undefined) {
    if (type !== undefined || values !== undefined)
      refuse("schema", "schema stands in place of type and enum.");
    else if (!isRecord(schema)) refuse("schema", "schema must be a table, a JSON Schema.");
    else return readShape(schema, place, refuse);
    return null;
  }
  const typeName = type ?? "string";
  if (typeof typeName !== "string" || !TYPES.includes(typeName))
    refuse("type", `type must be one of ${TYPES.join(", ")}.`);
  else if (values !== undefined && !(Array.isArray(values) && values.length > 0))
    refuse("enum", "enum must be a list of the values that are allowed.");
  else return readShape({ type: typeName, ...(values !== undefined && { enum: values }) }, place, refuse);
  return null;
};

/** A parameter outside the body has no fields. */
const readShape = (schema: Table, place: unknown, refuse: Refuse): Schema | null => {
  // TOML has dates, and JSON has not.
  if (place === "body" || schema["type"] !== "object") return JSON.parse(JSON.stringify(schema)) as Schema;
  refuse("type", "An object can be in the body only.");
  return null;
};

const objectSchema = (read: readonly Read[]): Schema => ({
  type: "object",
  properties: Object.fromEntries(read.map(({ parameter, schema }) => [parameter.argument, schema])),
  required: read.flatMap(({ parameter }) => (parameter.required ? [parameter.argument] : [])),
  additionalProperties: false,
});
