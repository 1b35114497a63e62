/** The names of a failed turn's error, by what each runtime tells of it. */
import { expect, test } from "vitest";
import { endOfRefusal } from "../../../daemon/adapters/acp/turns.ts";
import { triedInVain, turnError } from "../../../daemon/adapters/turn-errors.ts";

/** What an agent of the Agent Client Protocol answers to a prompt. */
const refused = (told: { code?: number; message: string; name?: string }, status: number | null = null) =>
  endOfRefusal({ code: -32_603, name: null, ...told }, status === null ? null : { status, again: null }).error
    ?.code;

test.each([
  ["claude", { message: "Invalid API key", name: "authentication_failed" }, "model_unauthorized"],
  ["claude", { message: "Credit balance is too low", name: "billing_error" }, "model_out_of_credit"],
  ["claude", { message: "API Error: 402 {}" }, "model_out_of_credit"],
  ["claude", { message: "API Error: 429 {}", name: "rate_limit" }, "model_rate_limited"],
  ["claude", { message: "API Error: 529 overloaded", name: "unknown" }, "model_unavailable"],
  ["any agent", { code: -32_000, message: "Authentication required" }, "model_unauthorized"],
  ["codex", { message: "unexpected status 404 Not Found" }, "unknown_model"],
  ["gemini", { code: 403, message: "{}" }, "model_unauthorized"],
  ["gemini", { code: 429, message: "{}" }, "model_rate_limited"],
  [
    "gemini",
    { code: 429, message: "You exceeded your current quota, please check billing. Please retry in 20.9s." },
    "model_rate_limited",
  ],
  ["gemini", { code: 503, message: "{}" }, "model_unavailable"],
  [
    "gemini, which does not know the status,",
    { code: 500, message: "models/a is not found" },
    "unknown_model",
  ],
  ["gemini", { code: 400, message: "The input token count exceeds the context limit" }, "context_exceeded"],
  ["gemini", { code: 400, message: "Bad schema" }, "model_refused"],
  ["opencode", { message: "Internal error: words", name: "ContextOverflowError" }, "context_exceeded"],
  [
    "opencode",
    { message: "Internal error: Incorrect API key provided: sk", name: "APIError" },
    "model_unauthorized",
  ],
  ["opencode", { message: "Internal error: Payment Required", name: "APIError" }, "model_out_of_credit"],
  ["opencode", { message: "Internal error: words", name: "APIError" }, "model_unavailable"],
  ["any agent", { message: "The model `a/b` does not exist" }, "unknown_model"],
  ["any agent", { message: "prompt is too long: 2 > 1" }, "context_exceeded"],
  ["any agent", { message: "Too many requests: see your page of billing" }, "model_rate_limited"],
  ["any agent", { message: "You exceeded your current quota" }, "model_out_of_credit"],
  ["any agent", { message: "I fell over." }, "turn_failed"],
])("of %s that tells %j is named %s", (_, told, code) => {
  expect(refused(told)).toBe(code);
});

test("are named by the provider's answer where it was seen, whatever the words", () => {
  expect(refused({ message: "words", name: "APIError" }, 402)).toBe("model_out_of_credit");
  expect(refused({ message: "words" }, 401)).toBe("model_unauthorized");
  // A name says more than a status.
  expect(refused({ message: "words", name: "ContextOverflowError" }, 400)).toBe("context_exceeded");
});

/** The code for an error of opencode. */
const codeFor = (message: string, statusCode?: number) =>
  turnError({ name: "APIError", data: { message, ...(statusCode !== undefined && { statusCode }) } }).code;

test("of opencode are named by their status, and numbers in other words are none", () => {
  expect(codeFor("quota", 401)).toBe("model_unauthorized");
  expect(codeFor("The file has 402 lines")).toBe("model_unavailable");
});

test.each([
  [400, "Your credit balance is too low to access the API", "model_out_of_credit"],
  [403, "Insufficient balance", "model_out_of_credit"],
  [403, "No permission", "model_unauthorized"],
  [
    429,
    "You exceeded your current quota, please check your plan and billing details.",
    "model_out_of_credit",
  ],
  [429, "Rate limit reached. Please try again in 6s. See the page of billing.", "model_rate_limited"],
  [429, "", "model_rate_limited"],
])("of the status %i with the words %j are named %s", (status, words, code) => {
  expect(codeFor(words, status)).toBe(code);
});

test("of too many requests say when to try again, before the words of the provider", () => {
  const error = { name: "APIError", data: { message: "Slow down", statusCode: 429 } };
  expect(turnError(error, "in 20 s").message).toMatch(/Try again in 20 s\. It said: Slow down$/);
  expect(turnError(error).message).toMatch(/Try again later\. It said: Slow down$/);
  expect(triedInVain("Too Many Requests", "in 9 s")).toMatchObject({
    code: "model_rate_limited",
    message: expect.stringContaining("Try again in 9 s.") as string,
  });
  expect(turnError({ name: "APIError", data: { statusCode: 401 } }, "in 20 s").message).not.toContain("20 s");
});

test("of the service's own limit of spend has its words, whatever stands around them", () => {
  const message = "The limit of $5 for this session is reached: $5.02. Raise it, then send a message.";
  expect(
    turnError({ name: "APIError", data: { message: `Error: ${message} (402)`, statusCode: 402 } }),
  ).toEqual({
    code: "spend_limit",
    message,
  });
  expect(
    refused({ message: `API Error: 402 {"error":{"message":"${message}"}}`, name: "billing_error" }),
  ).toBe("spend_limit");
});
