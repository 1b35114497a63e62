import { describe, expect, test } from "vitest";
import {
  deliveredKeyMessage,
  deliveredNames,
  missingSecrets,
  missingSecretsMessage,
} from "../../../src/domain/manifest/required-secrets.ts";

describe("required secrets without a value", () => {
  test("are the missing ones, each once, in the manifest's order", () => {
    expect(missingSecrets(["B", "A", "C", "B"], ["A"])).toEqual(["B", "C"]);
    expect(missingSecrets(["A"], ["A", "B"])).toEqual([]);
  });

  test.each([
    [["A"], "the secret A, but it has no value. Set it with `platform secrets set A`."],
    [["A", "B"], "the secrets A and B, but they have no values. Set each with `platform secrets set NAME`."],
    [["A", "B", "C"], "the secrets A, B and C, but they have no values."],
    [
      Array.from({ length: 23 }, () => "N"),
      `the secrets ${"N, ".repeat(19)}N and 3 more, but they have no values.`,
    ],
  ])("%j are named in a sentence", (missing, says) => {
    expect(missingSecretsMessage(missing)).toContain(`The manifest requires ${says}`);
  });
});

describe("secrets of the service", () => {
  test("are not among those that sandboxes get", () => {
    const secrets = [
      { name: "HOOK", service: true },
      { name: "KEY", service: false },
    ];
    expect(deliveredNames(secrets)).toEqual(["KEY"]);
  });

  test("are what a warning asks for, with the command", () => {
    expect(deliveredKeyMessage("push", "HOOK")).toContain("`platform secrets set HOOK --service ");
  });
});
