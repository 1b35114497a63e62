/**
 * Makes an example of a schema. Values written by hand go first, then the usual values of its noun and of its fields (records.ts), then
 * those of its type. A field that may be absent or null is so, unless it has one of these values.
 */
import * as Schema from "effect/Schema";
import * as AST from "effect/SchemaAST";
import { HttpApi, HttpApiSchema, type HttpApiEndpoint, type HttpApiGroup } from "effect/http-api";
import { isRecord } from "../../../ground/record.ts";
import type { Examples, Operations, OperationExample, WholeExample, WholeExamples } from "./example.ts";
import { exampleId, FIELDS, LATER, nounFor, type Fields, type Nouns } from "./records.ts";

interface Place {
  /** The value or a part of it, as written by hand. */
  readonly written?: unknown;
  /** Usual values, the strongest first. Those that do not fit the type are ignored. */
  readonly usual: readonly unknown[];
  /** The field's name, or "" of the whole. */
  readonly name: string;
  readonly nouns: Nouns;
  /** A request has only the optional fields that are written by hand. */
  readonly isRequest: boolean;
}

const isNull = ({ _tag }: AST.AST): boolean => _tag === "Null";

/** Whether a usual value may stand for the type. Of a record it may be a part, and literals decide. */
const fits = (ast: AST.AST, value: unknown): boolean => {
  if (ast._tag === "Union") return ast.types.some((member) => fits(member, value));
  if (ast._tag === "Arrays")
    return Array.isArray(value) && value.every((item) => ast.rest.every((type) => fits(type, item)));
  if (ast._tag !== "Objects") return Schema.is(Schema.make(ast))(value);
  return (
    isRecord(value) &&
    ast.propertySignatures.every(
      ({ name, type }) =>
        type._tag !== "Literal" || value[String(name)] === undefined || fits(type, value[String(name)]),
    )
  );
};

const accepts = (ast: AST.AST, value: unknown): boolean =>
  Schema.decodeUnknownExit(Schema.make<Schema.Codec<unknown>>(ast), { onExcessProperty: "error" })(value)
    ._tag === "Success";

const struct = (ast: AST.Objects, place: Place): Fields => {
  const { written, usual, name, nouns, isRequest } = place;
  const noun = nounFor(
    Schema.resolveAnnotations(Schema.make(ast))?.["identifier"] as string | undefined,
    name,
  );
  const own = [...usual, nouns[noun]].filter(isRecord);
  const words = isRecord(written) ? written : {};
  const fields = ast.propertySignatures.flatMap(({ name: key, type }) => {
    const field = String(key);
    const layers = own.map((layer) => layer[field]);
    const isAbsent = words[field] === undefined && (isRequest || layers.every((one) => one === undefined));
    if (AST.isOptional(type) && isAbsent) return [];
    const last = field === "id" ? exampleId(noun) : FIELDS[field];
    const inner = { written: words[field], usual: [...layers, last], name: field, nouns, isRequest };
    return [[field, make(AST.toEncoded(type), inner)] as const];
  });
  const example = Object.fromEntries(fields);
  // Fields that the schema lacks stay, so that the test of the examples refuses them.
  return { ...example, ...Object.fromEntries(Object.entries(words).filter(([key]) => !(key in example))) };
};

const union = (ast: AST.Union, place: Place): unknown => {
  const { written, usual } = place;
  const members = ast.types.filter((member) => !isNull(member));
  const word = written === undefined ? usual[0] : written;
  if (word === null || (word === undefined && members.length < ast.types.length)) return null;
  for (const member of members) {
    const example = word === undefined || fits(member, word) ? make(member, place) : undefined;
    if (example !== undefined && accepts(member, example)) return example;
  }
  return written;
};

const list = (ast: AST.Arrays, { written, usual, ...place }: Place): readonly unknown[] => {
  const [type] = ast.rest;
  if (type === undefined) return [];
  const [items = [undefined], ...others] = [written, ...usual].filter((value) => Array.isArray(value));
  return items.map((item: unknown, index) =>
    make(type, {
      ...place,
      written: written === undefined ? undefined : item,
      usual: [...(written === undefined ? [item] : []), ...others.map((one) => one[index] as unknown)],
    }),
  );
};

/** A text without an example is its field's name. */
const text = (ast: AST.AST, name: string): string => {
  const format = (ast.annotations?.["format"] ??
    ast.checks?.map(({ annotations }) => annotations?.["format"]).find((one) => one !== undefined)) as
    | string
    | undefined;
  if (format === "uuid") return exampleId(nounFor(undefined, name.replace(/_id$/, "")));
  return format === "date-time" ? LATER : name.replaceAll("_", " ");
};

const scalar = (ast: AST.AST, name: string): unknown => {
  switch (ast._tag) {
    case "Literal":
      return ast.literal;
    case "Number":
      return 1;
    case "Boolean":
      return false;
    case "String":
      return text(ast, name);
    default:
      return {};
  }
};

const make = (ast: AST.AST, place: Place): unknown => {
  const { written } = place;
  const usual = place.usual.filter((value) => value !== undefined && fits(ast, value));
  if (ast._tag === "Suspend") return make(AST.toEncoded(ast.thunk()), place);
  if (ast._tag === "Union") return union(ast, { ...place, usual });
  if (
    ast._tag === "Objects" &&
    ast.indexSignatures.length === 0 &&
    (written === undefined || isRecord(written))
  )
    return struct(ast, { ...place, usual });
  if (ast._tag === "Arrays" && (written === undefined || Array.isArray(written)))
    return list(ast, { ...place, usual });
  const value = [written, ...usual].find((one) => one !== undefined);
  return value === undefined ? scalar(ast, place.name) : value;
};

/** The last name of an address that is not a parameter. */
const lastSegment = (path: string): string =>
  path.split("/").findLast((segment) => segment !== "" && !segment.startsWith(":")) ?? "";

interface Operation {
  readonly endpoint: HttpApiEndpoint.Top;
  readonly successes: ReadonlyMap<number, readonly Schema.Top[]>;
  readonly written: OperationExample;
  readonly nouns: Nouns;
}

const wholeExample = ({ endpoint, successes, written, nouns }: Operation): WholeExample => {
  const name = lastSegment(endpoint.path);
  const bodies = [...endpoint.payload.values()].flatMap(({ schemas }) => schemas);
  const body = bodies.find(({ ast }) => !isNull(ast));
  const request =
    body &&
    make(AST.toEncoded(body.ast), { written: written.request, usual: [], name, nouns, isRequest: true });
  const responses = [...successes].flatMap(([status, [schema]]) => {
    if (schema === undefined || HttpApiSchema.isNoContent(schema.ast)) return [];
    const answer = status === 202 && written.accepted !== undefined ? written.accepted : written.response;
    // An answer repeats the values of its request.
    const place = { written: answer, usual: [request], name, nouns, isRequest: false };
    return [[status, make(AST.toEncoded(schema.ast), place)] as const];
  });
  const { summary } = written;
  return { summary, ...(request !== undefined && { request }), responses: Object.fromEntries(responses) };
};

/** The examples of all operations of an API. */
export const wholeExamples = <Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<string, Groups>,
  parts: readonly Examples[],
): WholeExamples => {
  const all: Operations = Object.assign({}, ...parts.map(({ operations }) => operations));
  const nouns: Nouns = Object.assign({}, ...parts.map((part) => part.nouns));
  const whole: Record<string, WholeExample> = {};
  HttpApi.reflect(api, {
    onGroup: () => undefined,
    onEndpoint: ({ group, endpoint, successes }) => {
      const id = `${group.identifier}.${endpoint.identifier}`;
      const words = all[id] ?? "";
      const wording = typeof words === "string" ? { summary: words } : words;
      whole[id] = wholeExample({ endpoint, successes, written: wording, nouns });
    },
  });
  return { operations: whole, nouns };
};
