import { expect, test } from "vitest";
import { answeredModel, requestedModel } from "../../../src/features/model-providers/rules/call-model.ts";

test("a request names its model in its own field, wherever that stands, also in a cut text", () => {
  expect(requestedModel('{"model":"large-2","messages":[{"role"')).toBe("large-2");
  expect(
    requestedModel('{"messages":[{"model":"spoof","text":"\\"model\\": {"}],"model" : "meta/x:70b"}'),
  ).toBe("meta/x:70b");
  expect(requestedModel('{"tools":{"model":"spoof"}')).toBe(null);
  expect(requestedModel('{"model":12}')).toBe(null);
  expect(requestedModel('{"model":"\\x"}')).toBe(null);
  expect(requestedModel("")).toBe(null);
});

test("an answer names its model in the forms of all kinds", () => {
  expect(answeredModel('data: {"id":"1","model":"large-2","choices":[]}')).toBe("large-2");
  expect(answeredModel('{"candidates":[],"modelVersion": "gemini-2.5-pro"}')).toBe("gemini-2.5-pro");
  expect(answeredModel("data: [DONE]")).toBe(null);
});
