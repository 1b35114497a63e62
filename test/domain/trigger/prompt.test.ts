import * as fc from "fast-check";
import * as Result from "effect/Result";
import { expect, test, vi } from "vitest";
import { PROMPT_LIMIT_BYTES, PromptTooLarge, renderPrompt } from "../../../src/domain/trigger/prompt.ts";
import type { JsonObject, JsonValue } from "../../../src/domain/trigger/prompt.ts";

const seed = 20261120;
const render = (template: string, variables: JsonObject = {}): string =>
  Result.getOrThrow(renderPrompt(template, variables));

const variables: JsonObject = {
  x: "X",
  body: {
    s: "text",
    n: 0,
    t: true,
    f: false,
    nil: null,
    empty: "",
    "a-b_c": "dash",
    a: ["zero", { id: "one" }, [1, 2]],
    o: { "0": "zero key", nested: { deep: "yes" }, "-1": "minus" },
  },
};

test.each([
  ["{{ x }}", "X"],
  ["{{x}}", "X"],
  ["a{{x}}b{{ x }}c", "aXbXc"],
  ["{{\t\r\n x \n}}", "X"],
  ["{{body.s}} {{ body.o.nested.deep }} {{ body.a-b_c }}", "text yes dash"],
  ["{{ body.o.0 }}{{ body.o.-1 }}", "zero keyminus"],
  ["no placeholder", "no placeholder"],
  ["", ""],
])("renders %j as %j", (template, expected) => {
  expect(render(template, variables)).toBe(expected);
});

test.each(["nope", "body.nope", "body.nope.deeper", "x.y", "body.n.toFixed", "body.nil.x", "X", "Body.s"])(
  "renders the missing value %j as empty text, with no placeholder left",
  (token) => {
    expect(render(`[{{ ${token} }}]`, variables)).toBe("[]");
  },
);

test.each([
  "body.constructor",
  "body.__proto__",
  "body.toString",
  "body.hasOwnProperty",
  "body.a.map",
  "body.a.constructor",
  "body.s.length",
  "body.s.constructor.constructor",
  "body.s.0",
  "constructor",
  "__proto__",
  "toString",
  "body.__proto__.polluted",
])("renders %s, which the request does not contain, as empty text [P01]", (token) => {
  expect(render(`[{{ ${token} }}]`, variables)).toBe("[]");
});

test.each([
  ["body.a.0", "zero"],
  ["body.a.1.id", "one"],
  ["body.a.2.1", "2"],
  ["body.a.-1", ""],
  ["body.a.01", ""],
  ["body.a.00", ""],
  ["body.a.1e0", ""],
  ["body.a.3", ""],
  ["body.a.4294967296", ""],
  ["body.a.99999999999999999999", ""],
  ["body.a.length", ""],
])("reads elements by canonical number: %s is %j [P02]", (token, expected) => {
  expect(render(`{{ ${token} }}`, variables)).toBe(expected);
});

test.each([
  ["body.nil", ""],
  ["body.f", "false"],
  ["body.t", "true"],
  ["body.n", "0"],
  ["body.empty", ""],
])("renders %s as %j [P03]", (token, expected) => {
  expect(render(`{{${token}}}`, variables)).toBe(expected);
});

test.each([
  ["{{body..s}}", ""],
  ["{{.x}}", ""],
  ["{{x.}}", ""],
  ["{{.}}", ""],
  ["{{..}}", ""],
  ["{{-}}", ""],
  ["{{ }}", "{{ }}"],
  ["{{}}", "{{}}"],
  ["{{", "{{"],
  ["}}", "}}"],
  ["{{x", "{{x"],
  ["{{x}", "{{x}"],
  ["{{ x } }", "{{ x } }"],
  ["{x}", "{x}"],
  ["{ {x}}", "{ {x}}"],
  ["{{{x}}}", "{X}"],
  ["{{{{x}}}}", "{{X}}"],
  ["{{#x}}", "{{#x}}"],
  ["{{/x}}", "{{/x}}"],
  ["{{^x}}", "{{^x}}"],
  ["{{> p}}", "{{> p}}"],
  ["{{& x}}", "{{& x}}"],
  ["{{! x }}", "{{! x }}"],
  ["{{x y}}", "{{x y}}"],
  ["{{x|y}}", "{{x|y}}"],
  ["{{x[0]}}", "{{x[0]}}"],
  ["{{größe}}", "{{größe}}"],
  ["{{\u00a0x}}", "{{\u00a0x}}"],
  ["{{\nx }}", "X"],
  ["{{ {{x}} }}", "{{ X }}"],
  ["{{x}}{{x}}", "XX"],
  ["{{x {{x}}", "{{x X"],
])("renders %j as %j: the table of forms [P04]", (template, expected) => {
  expect(render(template, variables)).toBe(expected);
});

test("inserts a value that looks like a placeholder literally [P05]", () => {
  expect(render("{{ a }}|{{ b }}", { a: "{{ b }}", b: "{{ a }}" })).toBe("{{ b }}|{{ a }}");
  expect(render("{{{ a }}", { a: "{x}}", x: "X" })).toBe("{{x}}");
});

test("inserts a value with replacement patterns literally [P06]", () => {
  expect(render("-{{ a }}-", { a: "$& $` $' $$ $1 $<x>" })).toBe("-$& $` $' $$ $1 $<x>-");
});

test("objects and arrays render as JSON", () => {
  expect(render("{{ body.a }}", variables)).toBe('["zero",{"id":"one"},[1,2]]');
  expect(render("{{ body.o }}", variables)).toBe('{"0":"zero key","nested":{"deep":"yes"},"-1":"minus"}');
});

const tooLarge = (template: string, values: JsonObject): boolean => {
  const result = renderPrompt(template, values);
  return Result.isFailure(result) && result.failure instanceof PromptTooLarge;
};

test("fails, and stops work, when 100,000 placeholders name 1 MB [P07]", () => {
  let reads = 0;
  const counting = {
    get v() {
      reads += 1;
      return "v".repeat(1_000_000);
    },
  };
  expect(tooLarge("{{v}}".repeat(100_000), counting)).toBe(true);
  expect(reads).toBe(1);
});

test("the cap is exactly 96 KiB of bytes [P11]", () => {
  const full = "é".repeat(PROMPT_LIMIT_BYTES / 2);
  expect(render("{{ v }}", { v: full })).toBe(full);
  expect(tooLarge("{{ v }}.", { v: full })).toBe(true);
  expect(tooLarge(`${"x".repeat(PROMPT_LIMIT_BYTES)}{{ v }}`, { v: "y" })).toBe(true);
  expect(tooLarge("x".repeat(PROMPT_LIMIT_BYTES + 1), {})).toBe(true);
});

test("the failure names the cap", () => {
  const result = renderPrompt("x".repeat(PROMPT_LIMIT_BYTES + 1), {});
  expect(Result.isFailure(result) && result.failure.message).toContain("98304 bytes");
});

/** Counts how often a template's characters are looked at: a linear scan does so a fixed number of times each. */
const looksPerUnit = (template: string): number => {
  const looks = vi.spyOn(String.prototype, "charCodeAt");
  try {
    renderPrompt(template, {});
    return looks.mock.calls.length / template.length;
  } finally {
    looks.mockRestore();
  }
};

test.each([
  ["blanks after two braces", `{{${" ".repeat(50_000)}`],
  ["nothing but braces", "{".repeat(50_000)],
  ["braces and blanks", "{{ ".repeat(20_000)],
  ["a token without an end", `{{${"a".repeat(50_000)}`],
  ["tokens without an end", "{{a ".repeat(20_000)],
  ["blanks after a token", `{{a${" ".repeat(50_000)}`],
  ["half closed placeholders", "{{a}".repeat(20_000)],
])("reads each character at most three times: %s [P08]", (_what, template) => {
  expect(looksPerUnit(template)).toBeLessThanOrEqual(3);
});

test("removes NUL, keeps bidi marks and escapes, and replaces lone surrogates [P09]", () => {
  expect(render("a\0{{ v }}", { v: "b\0c" })).toBe("abc");
  expect(render("{{ v }}", { v: "\u202eabc\u001b[31m\u0007" })).toBe("\u202eabc\u001b[31m\u0007");
  expect(render("{{ v }}", { v: "a\ud83d" })).toBe("a\ufffd");
  expect(render("{{ v }}", { v: { k: "\0\ud83d" } })).toBe(String.raw`{"k":"\u0000\ud83d"}`);
});

test("NUL counts towards the cap, so that repetition has a cost", () => {
  expect(tooLarge("{{ v }}", { v: "\0".repeat(PROMPT_LIMIT_BYTES + 1) })).toBe(true);
});

test("any rendered prompt fits an environment string", () => {
  // Halves of surrogate pairs from the template and from the value may meet.
  const text = fc.string({ unit: fc.constantFrom("\0", "\ud83d", "\ude00", "é", "a", "{{", "\u202e") });
  fc.assert(
    fc.property(text, text, (template, value) => {
      const rendered = render(`${template}{{ v }}`, { v: value });
      expect(rendered).not.toContain("\0");
      expect(rendered.isWellFormed()).toBe(true);
    }),
    { seed },
  );
});

test("agrees with a plain regular expression on small templates", () => {
  const piece = fc.constantFrom(
    "{",
    "{{",
    "}}",
    "}",
    " ",
    "\n",
    "x",
    "body.s",
    ".",
    "body.a.1.id",
    "#",
    "é",
    "$&",
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const template = pieces.join("");
      const values: Readonly<Record<string, string>> = { x: "X", "body.s": "text", "body.a.1.id": "one" };
      const expected = template.replaceAll(
        /\{\{[ \t\r\n]*([\w.-]+)[ \t\r\n]*\}\}/g,
        (_all, token: string) => values[token] ?? "",
      );
      expect(render(template, variables)).toBe(expected);
    }),
    { seed, numRuns: 2000 },
  );
});

// Any input
// ----------------------------------------------------------------------------------------------------------

/** Texts that a careless renderer would take for its own: tokens, replacement patterns, NUL, halves of pairs. */
const hostile = fc.string({
  unit: fc.constantFrom(
    "{{",
    "}}",
    "{",
    "}",
    " ",
    "x",
    ".",
    "$&",
    "$`",
    "\0",
    "\ud83d",
    "\ude00",
    "é",
    "\u202e",
    "\u001b[0m",
  ),
  maxLength: 40,
});
const token = fc.string({
  unit: fc.constantFrom("a", "b", "0", "1", ".", "-", "_", "length", "__proto__"),
  minLength: 1,
  maxLength: 8,
});

test("never throws, and returns well-formed text without NUL of at most 96 KiB or reports that it is longer", () => {
  // A few kilobytes that are repeated reach the cap from below and from above.
  const long = fc
    .tuple(hostile, fc.oneof(fc.integer({ min: 0, max: 4000 }), fc.constant(30_000)))
    .map(([text, times]) => text.repeat(times));
  const nearTheCap = fc.integer({ min: -60, max: 60 }).map((off) => "é".repeat(PROMPT_LIMIT_BYTES / 2 + off));
  const template = fc.oneof(
    hostile,
    long,
    fc.tuple(nearTheCap, hostile).map((parts) => parts.join("")),
    fc
      .array(
        fc.oneof(
          hostile,
          token.map((path) => `{{ ${path} }}`),
        ),
      )
      .map((parts) => parts.join("")),
  );
  const value = fc.oneof(
    hostile,
    long,
    fc.jsonValue({ maxDepth: 4 }).map((json) => json as JsonValue),
  );
  const values = fc.dictionary(fc.constantFrom("a", "b", "0", "__proto__", "length"), value, { maxKeys: 4 });
  let tooLong = 0;
  fc.assert(
    fc.property(template, values, (text, given) => {
      const result = renderPrompt(text, given);
      if (Result.isFailure(result)) {
        tooLong += 1;
        expect(result.failure).toBeInstanceOf(PromptTooLarge);
        return;
      }
      expect(Buffer.byteLength(result.success, "utf8")).toBeLessThanOrEqual(PROMPT_LIMIT_BYTES);
      expect(result.success).not.toContain("\0");
      expect(result.success.isWellFormed()).toBe(true);
    }),
    { numRuns: 1000 },
  );
  expect(tooLong).toBeGreaterThan(0);
});

test("inserts each value once and unchanged: text inside a value is never rendered [P05] [P06]", () => {
  const literal = fc.string({ unit: fc.constantFrom("a", " ", "}", "$&", "é", "."), maxLength: 10 });
  const value = fc.string({
    unit: fc.constantFrom("{{ v0 }}", "{{v1}}", "{{", "}}", "{", " v0 ", "$&", "$1", "x"),
    maxLength: 10,
  });
  fc.assert(
    fc.property(fc.array(fc.tuple(literal, value), { maxLength: 8 }), literal, (parts, end) => {
      const template = parts.map(([text], index) => `${text}{{ v${index} }}`).join("") + end;
      const values = Object.fromEntries(parts.map(([, inserted], index) => [`v${index}`, inserted]));
      expect(render(template, values)).toBe(parts.map(([text, inserted]) => text + inserted).join("") + end);
    }),
  );
});

test("reads each character at most three times, for any template [P08]", () => {
  const piece = fc.tuple(
    fc.constantFrom("{", "{{", "}", "}}", " ", "\n", "a", "{{a", "{{ ", "{{a }", "é"),
    fc.integer({ min: 1, max: 200 }),
  );
  const template = fc
    .array(piece, { minLength: 1, maxLength: 20 })
    .map((parts) => parts.map(([text, times]) => text.repeat(times)).join(""));
  fc.assert(
    fc.property(template, (text) => {
      expect(looksPerUnit(text)).toBeLessThanOrEqual(3);
    }),
  );
});
