import { expect, test } from "vitest";
import { storableTurn, TURN_MESSAGE_MAX } from "../../../src/domain/session/last-turn.ts";

const AT = "2026-11-20T06:52:05.618Z";

test("a turn is kept as the sandbox reported it, with its instant in one spelling", () => {
  const told = { state: "interrupted", error: null, at: "2026-11-20T07:52:05.618+01:00" } as const;
  expect(storableTurn(told)).toEqual({ ...told, at: AT });
});

test("an error's message is cut to the size of a row, and its code is valid", () => {
  const error = { code: "model_rate_limited", message: `\0a\ud800${"x".repeat(2 * TURN_MESSAGE_MAX)}` };
  const kept = storableTurn({ state: "failed", error, at: AT })?.error;
  expect(kept?.code).toBe("model_rate_limited");
  expect(kept?.message).toBe(`a\ufffd${"x".repeat(TURN_MESSAGE_MAX - 2)}`);
  const odd = { code: "<b>", message: "" };
  expect(storableTurn({ state: "failed", error: odd, at: AT })?.error?.code).toBe("turn_failed");
});

test("a turn with an invalid instant is not kept", () => {
  expect(storableTurn({ state: "completed", error: null, at: "yesterday" })).toBeNull();
});
