/** Which turns go on with another agent's model. */
import { expect, it } from "vitest";
import { fallbackNote, mayFallBack, nextFallback, saidNothing } from "../../../src/domain/agents/fallback.ts";

const error = {
  code: "model_out_of_credit",
  message: "Check the quota. It said: Payment required, says the provider",
};
const agents = ["a", "b", "c"].map((name) => ({ name, model: `x/${name}`, mode: null }));

it.each([
  ["model_unauthorized", true],
  ["model_out_of_credit", true],
  ["model_rate_limited", true],
  ["model_unavailable", true],
  ["unknown_model", true],
  ["model_refused", true],
  ["context_exceeded", false],
  ["spend_limit", false],
  ["turn_failed", false],
])("lets a turn that ended as %s go on: %s", (code, may) => {
  expect(mayFallBack({ code, message: "" })).toBe(may);
});

it.each([
  [[], true],
  [["", " "], true],
  [['API Error: 402 {"message": "Payment required, says the provider"}'], true],
  [["I"], false],
  [["Payment required"], false],
])("counts the texts %j as nothing said: %s", (texts, isNothing) => {
  expect(saidNothing(texts, error)).toBe(isNothing);
});

it("does not look for words of a provider that may stand in any text", () => {
  expect(saidNothing(["No, it is done."], { code: "model_out_of_credit", message: "It said: no" })).toBe(
    false,
  );
});

it.each([
  [0, null, 0],
  [0, "x/a", 1],
  [2, "x/a", 2],
  [3, null, null],
  [2, "x/c", null],
])("goes on after %i agents and the model %s with the agent at %s", (at, failed, next) => {
  expect(nextFallback(agents, { at, failed })).toBe(next);
});

it("says which model refused, why, what the turn goes on with, and what the provider said", () => {
  expect(fallbackNote("x/o", error, { name: "a", model: "x/a" })).toBe(
    "x/o refused (out of credit). The turn goes on with the agent a and its model x/a. " +
      "The provider said: Payment required, says the provider",
  );
  expect(fallbackNote(null, { code: "unknown_model", message: "" }, { name: "a", model: "x/a" })).toBe(
    "The model refused (the model does not exist). The turn goes on with the agent a and its model x/a.",
  );
});
