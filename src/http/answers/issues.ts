/** The faults of a request that does not fit its endpoint's schemas, in words for the caller (api.md 1 "Bad input"). */
import * as SchemaAST from "effect/SchemaAST";
import * as SchemaIssue from "effect/SchemaIssue";
import type { HttpApiError } from "effect/http-api";
import { BadRequest, faultSentence } from "../api/errors.ts";
import { readUnion } from "./unions.ts";

/** A hostile body has thousands. */
const ISSUES_MAX = 20;

type Part = HttpApiError.HttpApiSchemaError["kind"];

/** The parts of a request by the names that their values have. */
const NAMES: Partial<Readonly<Record<Part, string>>> = {
  Query: "query parameter",
  Params: "path parameter",
  Headers: "header",
};

/** Schema's names of types, and the words for them. */
const TYPES: readonly (readonly [RegExp, string])[] = [
  [/^a list with a length of at least 1$/, "have at least 1 entry"],
  [/^a list with a length of (.+)$/, "have $1 entries"],
  [/^a value with a length of at least 1$/, "have at least 1 character"],
  [/^a value with a length of (.+)$/, "have $1 characters"],
  [/^a string with (.+) code points$/, "have $1 characters"],
  [/^a value (.+)$/, "be $1"],
  [/^(?:a finite )?number\b/, "be a number"],
  [/^array\b/, "be a list"],
  [/^object\b/, "be an object"],
  [/^boolean\b/, "be true or false"],
  [/^string\b/, "be a string"],
  [/^(?=")/, "be "],
];

/** "Expected a value between 1 and 200" as "must be between 1 and 200". */
const demand = (message: string): string => {
  const expected = /^expected (.*)$/is.exec(message)?.[1];
  if (expected === undefined) return message;
  for (const [type, words] of TYPES) {
    if (type.test(expected)) return `must ${expected.replace(type, words)}`;
  }
  return `must be ${expected}`;
};

/** The names that an object may have. */
const knownNames = (ast: SchemaAST.AST): string =>
  SchemaAST.isObjects(ast) ? ast.propertySignatures.map(({ name }) => String(name)).join(", ") : "";

const makeFormatter = (name: string) =>
  SchemaIssue.makeFormatterStandardSchemaV1({
    leafHook: (issue) => {
      if (issue._tag === "MissingKey") return `missing ${name}`;
      if (issue._tag !== "UnexpectedKey") return SchemaIssue.defaultLeafHook(issue);
      const names = knownNames(issue.ast);
      return names === "" ? `unknown ${name}` : `unknown ${name}. Known: ${names}`;
    },
  });

interface Fault {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** The faults of a value, one by one. Those of unions have words of their own. @param isList whether the value is a list, which is counted in entries */
const toFaults = (
  issue: SchemaIssue.Issue,
  format: ReturnType<typeof makeFormatter>,
  isList = false,
): readonly Fault[] => {
  switch (issue._tag) {
    case "Pointer":
      return toFaults(issue.issue, format).map(({ path, message }) => ({
        path: [...issue.path, ...path],
        message,
      }));
    case "Encoding":
      return toFaults(issue.issue, format);
    case "Composite":
      return issue.issues.flatMap((inner) => toFaults(inner, format, SchemaAST.isArrays(issue.ast)));
    case "AnyOf": {
      const reading = readUnion(issue);
      return typeof reading === "string"
        ? [{ path: [], message: reading }]
        : reading.flatMap((inner) => toFaults(inner, format));
    }
    default:
      return format(issue).issues.map(({ path, message }) => ({
        path: (path ?? []).map((segment) => (typeof segment === "object" ? segment.key : segment)),
        message: demand(isList ? message.replace("a value with", "a list with") : message),
      }));
  }
};

const toRefusal = (faults: readonly Fault[], part: string): BadRequest => {
  const issues = faults
    .slice(0, ISSUES_MAX)
    .map(({ path, message }) => ({ path: path.map(String).join("."), message }));
  const { path, message } = issues[0] ?? { path: "", message: "invalid" };
  return new BadRequest({
    error: faultSentence(path, message, part),
    code: "invalid_request",
    details: { issues },
  });
};

export const invalidRequest = ({ kind, cause }: HttpApiError.HttpApiSchemaError): BadRequest => {
  const name = NAMES[kind] ?? "field";
  return toRefusal(toFaults(cause.issue, makeFormatter(name)), kind === "Payload" ? "body" : name);
};

/** The same for the fields of a body that an endpoint without fields does not read. The library's empty struct accepts them. */
export const unknownFields = (names: readonly string[]): BadRequest =>
  toRefusal(
    names.map((name) => ({ path: [name], message: "unknown field" })),
    "body",
  );
