/** An agent's arguments fill the template of a request, and change nothing else. */
import * as Result from "effect/Result";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  operationRequest,
  type HttpOperation,
  type HttpParameter,
} from "../../../src/domain/connector/http-operation.ts";

const BASE = {
  url: "https://api.example.com/v2?version=1&key=the-credential",
  headers: { authorization: "Bearer the-credential", "x-team": "core" },
};

const parameter = (argument: string, rest: Partial<HttpParameter>): HttpParameter => ({
  argument,
  name: argument,
  in: "query",
  style: "plain",
  required: false,
  ...rest,
});

const operation = (rest: Partial<HttpOperation>): HttpOperation => ({
  method: "GET",
  path: "/issues",
  parameters: [],
  body: null,
  ...rest,
});

const ISSUE = operation({
  path: "/issues/{id}.{format}/comments",
  parameters: [
    parameter("id", { in: "path", required: true }),
    parameter("format", { in: "path", required: true }),
    parameter("q", {}),
    parameter("tag", { in: "header", name: "X-Tag" }),
  ],
});

const made = (one: HttpOperation, given: object, base = BASE) => {
  const read = operationRequest(base, one, given as Record<string, unknown>);
  if (Result.isFailure(read)) throw new Error(read.failure);
  return read.success;
};

const refusal = (one: HttpOperation, given: object): string => {
  const read = operationRequest(BASE, one, given as Record<string, unknown>);
  return Result.isFailure(read) ? read.failure : "";
};

describe("a request", () => {
  it("has its arguments in the path, the query and the headers, below the connector's URL", () => {
    expect(made(ISSUE, { id: "a b?#é", format: 7, q: "x&y=z", tag: "t" })).toEqual({
      method: "GET",
      url: "https://api.example.com/v2/issues/a%20b%3F%23%C3%A9.7/comments?version=1&key=the-credential&q=x%26y%3Dz",
      headers: { authorization: "Bearer the-credential", "x-team": "core", "x-tag": "t" },
      body: null,
    });
  });

  it.each<[HttpParameter["style"], unknown, string]>([
    ["repeat", ["a", 1], "l=a&l=1"],
    ["comma", ["a", "b,c"], "l=a,b%2Cc"],
    ["space", ["a", "b"], "l=a%20b"],
    ["pipe", ["a", "b"], "l=a%7Cb"],
    ["deep", { from: "a", to: 2 }, "l%5Bfrom%5D=a&l%5Bto%5D=2"],
    ["json", { a: [1] }, "l=%7B%22a%22%3A%5B1%5D%7D"],
    ["plain", null, ""],
  ])("writes a value in the style %s", (style, value, query) => {
    const one = operation({ parameters: [parameter("l", { style })] });
    const { url } = made(one, { l: value }, { ...BASE, url: "https://api.example.com" });
    expect(url).toBe(`https://api.example.com/issues${query === "" ? "" : `?${query}`}`);
  });

  it("has a body of fields, or one argument as its body, as JSON or as a form", () => {
    const body = { type: "application/json", encoding: "json", argument: null, required: true } as const;
    const fields = operation({
      method: "POST",
      parameters: [parameter("text", { in: "field" }), parameter("mood", { in: "field" })],
      body,
    });
    expect(made(fields, { text: "hello\r\n", mood: null }).body).toBe('{"text":"hello\\r\\n","mood":null}');
    expect(made(fields, {}).body).toBe("{}");
    expect(made(fields, {}).headers["content-type"]).toBe("application/json");
    const whole = operation({ method: "PUT", body: { ...body, argument: "body", required: false } });
    expect(made(whole, { body: [1, { a: 2 }] }).body).toBe('[1,{"a":2}]');
    expect(made(whole, {}).body).toBeNull();
    const form = operation({
      method: "POST",
      body: { type: "application/x-www-form-urlencoded", encoding: "form", argument: "body", required: true },
    });
    expect(made(form, { body: { a: "1&2", b: ["x", true] } }).body).toBe("a=1%262&b=x&b=true");
    expect(refusal(form, { body: { a: {} } })).toBe(
      "The field a must be a text, a number, a boolean or a list of them.",
    );
    expect(refusal(form, {})).toBe("The argument body is required.");
  });
});

describe("an argument", () => {
  it.each([
    ["..", "must not make a segment"],
    [".", "must not make a segment"],
    ["a/b", "an escape such as %2f"],
    ["..\\b", "an escape such as %2f"],
    ["%2e%2e%2fadmin", "an escape such as %2f"],
    ["%2F", "an escape such as %2f"],
    ["", "must not be empty"],
    ["a\r\nX-Other: b", "control characters"],
    ["a\u0000", "control characters"],
    ["\ud800", "half characters"],
    ["a".repeat(5000), "more than 4096 characters"],
    [{ a: 1 }, "must be a text, a number or a boolean"],
    [["a", "b"], "must be a text, a number or a boolean"],
    [Number.NaN, "must be a text, a number or a boolean"],
    [null, "The argument id is required"],
  ])("of the path is refused as %j [K18]", (id, message) => {
    const one = operation({ path: "/issues/{id}", parameters: [parameter("id", { in: "path" })] });
    expect(refusal(one, { id })).toContain(message);
  });

  it("of a segment with several names cannot make it .. together with another one [K18]", () => {
    const one = operation({
      path: "/a/{x}{y}/b",
      parameters: [parameter("x", { in: "path" }), parameter("y", { in: "path" })],
    });
    expect(refusal(one, { x: ".", y: "." })).toContain("must not make a segment");
    expect(made(one, { x: ".", y: "git" }).url).toContain("/v2/a/.git/b?");
  });

  it("that the tool does not have is refused, and the refusal names those that it has [K18]", () => {
    const given = JSON.parse('{"id":"1","format":"a","__proto__":"x"}') as object;
    expect(refusal(ISSUE, given)).toBe('The tool has no argument "__proto__". It has id, format, q, tag.');
    expect(refusal(operation({}), { a: 1 })).toBe('The tool has no argument "a". It has none.');
    expect(refusal(ISSUE, { id: 1, format: 2, constructor: 3 })).toContain('no argument "constructor"');
  });

  it.each([
    "Authorization",
    "Host",
    "Cookie",
    "X-Team",
    "Content-Length",
    "X-Forwarded-For",
    "Transfer-Encoding",
  ])("cannot be the header %s, whatever the stored operation says [K18]", (name) => {
    const one = operation({ parameters: [parameter("h", { in: "header", name })] });
    expect(refusal(one, { h: "x" })).toBe("The argument h is set by the connector itself.");
  });

  it("cannot replace a parameter of the connector's URL, such as its credential [K18]", () => {
    const one = operation({ parameters: [parameter("k", { name: "key" })] });
    expect(refusal(one, { k: "mine" })).toBe("The argument k is set by the connector itself.");
  });

  it.each(["a\r\nX: b", "é", " a", "a\u007f"])("of a header is refused as %j [K18]", (tag) => {
    expect(refusal(ISSUE, { id: 1, format: 2, tag })).toMatch(/header|control characters/);
  });

  it("does not make a URL that servers refuse", () => {
    const one = operation({ parameters: [parameter("l", { style: "repeat" })] });
    expect(refusal(one, { l: Array.from({ length: 10 }, () => "a".repeat(1000)) })).toContain(
      "8192 characters",
    );
  });

  it("of any kind leaves the request on its template [K18]", () => {
    const value = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.constantFrom("..", "%2e%2e", "/", "?a", "#", "@evil.example.com", "//evil", "a:b", ";x", "\\"),
      fc.integer(),
      fc.boolean(),
      fc.array(fc.string()),
    );
    fc.assert(
      fc.property(
        fc.record({ id: value, format: value, q: value, tag: value }, { requiredKeys: [] }),
        (given) => {
          const read = operationRequest(BASE, ISSUE, given);
          if (Result.isFailure(read)) return;
          const { url, headers } = read.success;
          const { origin, pathname, hash, searchParams } = new URL(url);
          expect(origin).toBe("https://api.example.com");
          expect(pathname).toMatch(/^\/v2\/issues\/[^/]+\.[^/]+\/comments$/);
          expect(hash).toBe("");
          expect([...searchParams.keys()].filter((name) => !["version", "key", "q"].includes(name))).toEqual(
            [],
          );
          expect(searchParams.getAll("key")).toEqual(["the-credential"]);
          expect(
            Object.keys(headers)
              .toSorted()
              .filter((name) => name !== "x-tag"),
          ).toEqual(["authorization", "x-team"]);
        },
      ),
      { numRuns: 2000 },
    );
  });
});
