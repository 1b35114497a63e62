/** The faults of a request that does not fit its endpoint's schemas, in words for the caller (api.md 1 "Bad input"). */
import * as SchemaIssue from "effect/SchemaIssue";
import type { HttpApiError } from "effect/http-api";
import { BadRequest, faultSentence } from "../api/errors.ts";

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
  [/^a value with a length of at least 1$/, "have at least 1 character"],
  [/^a value with a length of (.+)$/, "have $1 characters"],
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
  const expected = /^expected (.*)$/is.exec(message)?.[1]?.replaceAll(" | ", " or ");
  if (expected === undefined) return message;
  for (const [type, words] of TYPES) {
    if (type.test(expected)) return `must ${expected.replace(type, words)}`;
  }
  return `must be ${expected}`;
};

const formatterOf = (name: string) =>
  SchemaIssue.makeFormatterStandardSchemaV1({
    leafHook: (issue) => {
      if (issue._tag === "UnexpectedKey") return `unknown ${name}`;
      if (issue._tag === "MissingKey") return `missing ${name}`;
      return SchemaIssue.defaultLeafHook(issue);
    },
  });

export const invalidRequest = ({ kind, cause }: HttpApiError.HttpApiSchemaError): BadRequest => {
  const name = NAMES[kind] ?? "field";
  const issues = formatterOf(name)(cause.issue)
    .issues.slice(0, ISSUES_MAX)
    .map(({ path, message }) => ({
      path: (path ?? [])
        .map((segment) => String(typeof segment === "object" ? segment.key : segment))
        .join("."),
      message: demand(message),
    }));
  const { path, message } = issues[0] ?? { path: "", message: "invalid" };
  return new BadRequest({
    error: faultSentence(path, message, kind === "Payload" ? "body" : name),
    code: "invalid_request",
    details: { issues },
  });
};
