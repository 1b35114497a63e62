/** The words of a request that does not fit its endpoint (api.md 1 "Bad input"), over every definition of the API. */
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import * as SchemaAST from "effect/SchemaAST";
import { HttpApi, HttpApiError } from "effect/http-api";
import { describe, expect, it } from "vitest";
import { Api } from "../../../src/assembly/api.ts";
import { invalidRequest } from "../../../src/http/answers/issues.ts";

interface Part {
  readonly name: string;
  readonly kind: "Payload" | "Query";
  readonly schema: Schema.Top;
}

/** What each endpoint reads of a request's body and query. */
const partsOf = (): readonly Part[] => {
  const parts: Part[] = [];
  HttpApi.reflect(Api, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint }) => {
      const at = `${endpoint.method} ${endpoint.path}`;
      if (endpoint.query !== undefined) {
        parts.push({ name: `${at}, query`, kind: "Query", schema: endpoint.query });
      }
      for (const { schemas } of endpoint.payload.values()) {
        // As the router reads it, for a single schema, too.
        parts.push({ name: `${at}, body`, kind: "Payload", schema: Schema.Union(schemas) });
      }
    },
  });
  return parts;
};

const PARTS = partsOf();

const refusalOf = ({ kind, schema }: Pick<Part, "kind" | "schema">, value: unknown) => {
  const decode = Schema.decodeUnknownResult(schema as Schema.Codec<unknown>, {
    onExcessProperty: "error",
    errors: "all",
  });
  const result = decode(value);
  if (Result.isSuccess(result)) return null;
  return invalidRequest(new HttpApiError.HttpApiSchemaError({ kind, cause: result.failure }));
};

const WRONG = [null, 5, "x", [], {}, { x: 1 }] as const;

/** Values that do not fit a type, with each of its fields wrong once. */
const misfits = (ast: SchemaAST.AST, depth = 0): readonly unknown[] => {
  const encoded = SchemaAST.toEncoded(ast);
  if (depth > 4) return WRONG;
  if (SchemaAST.isUnion(encoded))
    return [...WRONG, ...encoded.types.flatMap((type) => misfits(type, depth + 1))];
  if (SchemaAST.isArrays(encoded)) {
    return [...WRONG, ...encoded.rest.flatMap((type) => misfits(type, depth + 1)).map((value) => [value])];
  }
  if (!SchemaAST.isObjects(encoded)) return WRONG;
  const literals = Object.fromEntries(
    encoded.propertySignatures.flatMap(({ name, type }) =>
      SchemaAST.isLiteral(type) ? [[name, type.literal]] : [],
    ),
  );
  const fields = encoded.propertySignatures.flatMap(({ name, type }) =>
    misfits(type, depth + 1).map((value) => Object.assign({}, literals, { [name]: value })),
  );
  return [...WRONG, literals, ...fields];
};

/** A request whose fault is one sentence that a person can read. */
const SENTENCE =
  /^(?:The (?:body|query parameter)|`[^`]+`) must |^Unknown (?:field|query parameter) `|^Missing (?:field|query parameter) `/;
/** The notation of types, and the words of the decoder. */
const NOTATION = /readonly|\bExpected\b|undefined| \| /;

describe("what a request lacks", () => {
  it.each(PARTS)("is said in plain words: $name", (part) => {
    for (const value of misfits(part.schema.ast)) {
      const refusal = refusalOf(part, value);
      if (refusal === null) continue;
      expect(refusal.error).toMatch(SENTENCE);
      expect(JSON.stringify(refusal.details)).not.toMatch(NOTATION);
    }
  });
});

const part = (end: string): Part => {
  const match = PARTS.find(({ name }) => name.endsWith(end));
  if (match === undefined) throw new Error(`no definition ends with ${end}`);
  return match;
};
const CATALOGUE = part("/catalogue, body");
const ANSWER = part("/answer, body");

describe("a value that fits no form of a union", () => {
  const actions = 'must be an object whose `action` is "refresh" or "accept" (with `pin`).';
  const answers = "must be an object with `choice`, `answers` or `approve`.";
  it.each([
    [CATALOGUE, { accept: "x" }, `The body ${actions}`],
    [CATALOGUE, { action: "drop" }, `The body ${actions}`],
    [CATALOGUE, [], `The body ${actions}`],
    [CATALOGUE, { action: "accept" }, "Missing field `pin`."],
    [CATALOGUE, { action: "refresh", pin: "x" }, "Unknown field `pin`. Known: action."],
    [part("/:pid/sessions, body"), [], "The body must be an object."],
    [ANSWER, {}, `The body ${answers}`],
    [ANSWER, { message: "no" }, `The body ${answers}`],
    [ANSWER, { choice: "once", answers: [] }, `The body ${answers}`],
    [ANSWER, { choice: "maybe" }, '`choice` must be "once", "always" or "reject".'],
    [ANSWER, { answers: "yes" }, "`answers` must be a list."],
    [ANSWER, { answers: [], mode: "x" }, "Unknown field `mode`. Known: answers."],
    [
      part("/triggers/drafts, body"),
      { type: "cron", if: { a: null } },
      "`if.a` must be a string, a number, true or false.",
    ],
  ])("of %o, %j", (at, value, sentence) => {
    const refusal = refusalOf(at, value);
    expect(refusal?.error).toBe(sentence);
    expect(refusal?.details?.["issues"]).toHaveLength(1);
  });
});
