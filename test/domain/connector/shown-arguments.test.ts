import { describe, expect, test } from "vitest";
import { Redactor } from "../../../src/domain/secret/redactor.ts";
import { shownArguments } from "../../../src/domain/connector/shown-arguments.ts";

const shown = (value: unknown, ...secrets: readonly string[]) => shownArguments(new Redactor(secrets), value);

describe("the arguments that a person sees", () => {
  test.each([
    "password",
    "db_passwd",
    "PASSPHRASE",
    "clientSecret",
    "access_token",
    "api-key",
    "apiKey",
    "private_key",
    "Authorization",
    "auth",
    "cookie",
    "credentials",
  ])("mask the value of the field %s, and show its length", (name) => {
    expect(shown({ [name]: "12345678" })).toEqual({ [name]: "[hidden, 8 characters]" });
  });

  test.each(["author", "key", "monkey", "authority", "text"])("show the value of the field %s", (name) => {
    expect(shown({ [name]: "12345678" })).toEqual({ [name]: "12345678" });
  });

  test("have every field, at each depth, with secrets of the project masked in names and values", () => {
    const given = {
      list: [1, null, { token: { a: 1 }, text: "it is hunter-22" }],
      "hunter-22": true,
      empty: { password: "", secret: null },
    };
    expect(shown(given, "hunter-22")).toEqual({
      list: [1, null, { token: "[hidden, 7 characters]", text: "it is [redacted]" }],
      "[redacted]": true,
      empty: { password: "", secret: null },
    });
  });

  test("have hidden values if the person wishes to see them, and never a secret of the project", () => {
    const given = { api_key: "an agent's own", password: "hunter-22", deep: [{ token: { a: 1 } }] };
    expect(shownArguments(new Redactor(["hunter-22"]), given, true)).toEqual({
      ...given,
      password: "[redacted]",
    });
  });

  test("keep a field __proto__ as a field", () => {
    const given = JSON.parse('{"__proto__":{"admin":true}}') as unknown;
    expect(JSON.stringify(shown(given))).toBe('{"__proto__":{"admin":true}}');
  });
});
