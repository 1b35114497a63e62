/** One operation of an OpenAPI description as a tool: its arguments, and the request that they make. */
import { isRecord } from "../../../ground/record.ts";
import type { CatalogueTool } from "../catalogue.ts";
import {
  isArgumentHeader,
  METHODS,
  pathFault,
  pathPlaceholders,
  type HttpBody,
  type HttpParameter,
  type ParameterStyle,
} from "../http-operation.ts";
import { Unusable, ownField, type Document, type Table } from "./schema.ts";

/** What the connector itself sets: no argument may. */
export interface Reserved {
  /** In lower case. */
  readonly headers: ReadonlySet<string>;
  readonly query: ReadonlySet<string>;
}

export interface FoundOperation {
  readonly path: string;
  /** As the description writes it. */
  readonly method: string;
  readonly operation: Table;
  /** Parameters of all operations of the path. */
  readonly shared: unknown;
}

/** An argument with its schema. */
interface Argument {
  readonly parameter: HttpParameter;
  readonly schema: Table;
}

const BODY = "body";
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json(?:;.*)?$/i;
const FORM_TYPE = "application/x-www-form-urlencoded";
/** A header's value. */
const MEDIA_TYPE = /^[\w.+-]+\/[\w.+-]+(?:; ?[\w-]+=[\w.-]+)?$/;
/** OpenAPI 3.1, 4.8.12.1: parameters with these names are ignored. */
const IGNORED_HEADERS: ReadonlySet<string> = new Set(["accept", "content-type", "authorization"]);
const SEVERAL_PARTS: ReadonlySet<unknown> = new Set(["array", "object"]);

/** @throws Unusable */
export const operationTool = (
  document: Document,
  foundOperation: FoundOperation,
  reservedNames: Reserved,
): CatalogueTool => {
  const { operation, path } = foundOperation;
  const method = METHODS.find((each) => each === foundOperation.method.toUpperCase());
  if (method === undefined)
    throw new Unusable(`The method ${foundOperation.method.toUpperCase()} is not offered.`);
  if (ownField(operation, "callbacks") !== undefined)
    throw new Unusable("It answers by a callback, which no agent can receive.");
  const fault = pathFault(path);
  if (fault !== null) throw new Unusable(`Its path ${fault}.`);
  const parameters = operationParameters(document, foundOperation, reservedNames);
  const body = requestBody(document, ownField(operation, "requestBody"));
  if (body !== null && method === "GET") throw new Unusable("It is a GET with a body.");
  const args = withUniqueNames(parameters, body !== null);
  const lacking = pathPlaceholders(path).find(
    (name) => !args.some(({ parameter }) => parameter.in === "path" && parameter.name === name),
  );
  const idle = args.find(
    ({ parameter }) => parameter.in === "path" && !pathPlaceholders(path).includes(parameter.name),
  );
  if (idle !== undefined)
    throw new Unusable(`Its path does not have ${JSON.stringify(idle.parameter.name.slice(0, 64))}.`);
  if (lacking !== undefined)
    throw new Unusable(`Its path names ${lacking.slice(0, 64)}, which is no parameter.`);
  return {
    name: operationName(operation, foundOperation),
    description: operationDescription(operation),
    inputSchema: inputSchema(args, body),
    request: { method, path, parameters: args.map(({ parameter }) => parameter), body: body?.body ?? null },
  };
};

/** The name of an operation's tool. */
export const operationName = (
  operation: Table,
  { method, path }: Pick<FoundOperation, "method" | "path">,
): string => {
  const id = ownField(operation, "operationId");
  const text =
    typeof id === "string" && id !== "" ? id : `${method.toLowerCase()}${path.replaceAll(/[{}]/g, "")}`;
  return text.replaceAll(/[^A-Za-z0-9_.-]+/g, "_").replace(/_$/, "");
};

/** @see DESCRIPTION_LIMIT_BYTES in catalogue.ts: a summary alone is better than no tool. */
const DESCRIPTION_LENGTH = 3000;

const operationDescription = (operation: Table): string => {
  const texts = ["summary", "description"].flatMap((field) => {
    const text = ownField(operation, field);
    return typeof text === "string" && text.trim() !== "" ? [text.trim().toWellFormed()] : [];
  });
  const whole = [...new Set(texts)].join("\n\n");
  if (Buffer.byteLength(whole) <= DESCRIPTION_LENGTH) return whole;
  const [first = ""] = texts;
  return texts.length > 1 && Buffer.byteLength(first) <= DESCRIPTION_LENGTH ? first : whole;
};

/** The parameters of a path and of its operation, which replaces those with the same place and name. */
const operationParameters = (
  document: Document,
  foundOperation: FoundOperation,
  reservedNames: Reserved,
): readonly Argument[] => {
  const all = new Map<string, Table>();
  for (const list of [foundOperation.shared, ownField(foundOperation.operation, "parameters")]) {
    if (list === undefined) continue;
    if (!Array.isArray(list)) throw new Unusable("Its parameters are not a list.");
    for (const each of list) {
      const parameter = document.table(each);
      all.set(`${String(parameter["in"])} ${String(parameter["name"])}`, parameter);
    }
  }
  return [...all.values()].flatMap((parameter) => toArgument(document, parameter, reservedNames));
};

/** @returns nothing for a parameter that is not needed and cannot be given. */
const toArgument = (document: Document, parameter: Table, reservedNames: Reserved): readonly Argument[] => {
  const { name, in: place, required, description } = parameter;
  if (typeof name !== "string" || name === "" || name.length > 200)
    throw new Unusable("One of its parameters has no name.");
  if (name === "__proto__") throw new Unusable("It has a parameter __proto__.");
  const isRequired = required === true || place === "path";
  const skip = (why: string): readonly Argument[] => {
    if (isRequired) throw new Unusable(why);
    return [];
  };
  const quotedName = JSON.stringify(name.slice(0, 64));
  if (place === "cookie") return skip(`It needs the cookie ${quotedName}.`);
  if (place !== "path" && place !== "query" && place !== "header")
    throw new Unusable(`Its parameter ${quotedName} is at an unknown place.`);
  if (place === "header") {
    if (IGNORED_HEADERS.has(name.toLowerCase()) || reservedNames.headers.has(name.toLowerCase())) return [];
    if (!isArgumentHeader(name)) return skip(`It needs the header ${quotedName}, which no agent may set.`);
  }
  // The connector gives it.
  if (place === "query" && reservedNames.query.has(name)) return [];
  const content = ownField(parameter, "content");
  const [media] = isRecord(content) ? Object.entries(content) : [];
  if (media !== undefined && !JSON_TYPE.test(media[0]))
    return skip(`Its parameter ${quotedName} is not JSON.`);
  const parameterSchema =
    media === undefined ? ownField(parameter, "schema") : ownField(document.table(media[1]), "schema");
  const schema = document.schema(parameterSchema ?? {});
  const style = media === undefined ? parameterStyle(parameter, place, schema) : "json";
  if (style === null) return skip(`Its parameter ${quotedName} is written in a style that is not supported.`);
  const text = typeof description === "string" ? { description: description.toWellFormed() } : {};
  return [
    {
      parameter: { argument: clean(name), name, in: place, style, required: isRequired },
      schema: { ...schema, ...text },
    },
  ];
};

const clean = (name: string): string => name.replaceAll(/[^A-Za-z0-9_.-]/g, "_").slice(0, 64);

const hasType = ({ type }: Table, types: ReadonlySet<unknown>): boolean =>
  Array.isArray(type) ? type.some((each) => types.has(each)) : types.has(type);

/** How a parameter's value is written. Null if the way is not supported. */
const parameterStyle = (
  parameter: Table,
  place: "path" | "query" | "header",
  schema: Table,
): ParameterStyle | null => {
  const style = ownField(parameter, "style") ?? (place === "query" ? "form" : "simple");
  const explode = ownField(parameter, "explode") ?? style === "form";
  const isObject = hasType(schema, new Set(["object"]));
  if (style === "deepObject") return place === "query" && isObject ? "deep" : null;
  if (isObject) return null;
  if (!hasType(schema, SEVERAL_PARTS)) return style === "simple" || style === "form" ? "plain" : null;
  if (place !== "query") return style === "simple" ? "comma" : null;
  if (style === "form") return explode === true ? "repeat" : "comma";
  if (style === "spaceDelimited") return "space";
  return style === "pipeDelimited" ? "pipe" : null;
};

/** Two arguments never have one name: the later one is named with its place. */
const withUniqueNames = (parameters: readonly Argument[], hasBody: boolean): readonly Argument[] => {
  const names = new Set(hasBody ? [BODY] : []);
  return parameters.map(({ parameter, schema }) => {
    const { argument: plain, in: place } = parameter;
    const argument = names.has(plain) ? clean(`${place}_${plain}`) : plain;
    if (names.has(argument)) throw new Unusable("Two of its parameters have the same name.");
    names.add(argument);
    return { parameter: { ...parameter, argument }, schema };
  });
};

interface Body {
  readonly body: HttpBody;
  readonly schema: Table;
}

const requestBody = (document: Document, part: unknown): Body | null => {
  if (part === undefined) return null;
  const { content, required, description } = document.table(part);
  const types = isRecord(content) ? Object.entries(content) : [];
  const json = types.find(([type]) => JSON_TYPE.test(type));
  const choice = json ?? types.find(([type]) => type.toLowerCase() === FORM_TYPE);
  if (choice === undefined || !MEDIA_TYPE.test(choice[0])) {
    const typeList = types
      .map(([type]) => type.slice(0, 64))
      .slice(0, 3)
      .join(", ");
    throw new Unusable(
      `Its body is neither JSON nor a form: ${typeList === "" ? "none is described" : typeList}.`,
    );
  }
  const [type, media] = choice;
  const schema = document.schema(ownField(document.table(media), "schema") ?? {});
  const encoding = json === undefined ? "form" : "json";
  return {
    body: { type, encoding, argument: BODY, required: required === true },
    schema: { ...schema, ...(typeof description === "string" && { description }) },
  };
};

const inputSchema = (args: readonly Argument[], body: Body | null): Table => {
  const all = [
    ...args.map(({ parameter: { argument, required }, schema }) => ({ argument, required, schema })),
    ...(body === null ? [] : [{ argument: BODY, required: body.body.required, schema: body.schema }]),
  ];
  return {
    type: "object",
    properties: Object.fromEntries(all.map(({ argument, schema }) => [argument, schema])),
    required: all.flatMap(({ argument, required }) => (required ? [argument] : [])),
    additionalProperties: false,
  };
};
