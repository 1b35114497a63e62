/** The ids and the attributes of spans. */
import { describe, expect, it } from "vitest";
import { shownAttributes, spanIdOf, traceIdOf } from "../../../src/domain/service/span.ts";

const SESSION = "0b4cf0a4-5a3f-4c39-9d67-1f62c2f0a001";

describe("a span's ids", () => {
  it("follow from the session and from what the span is about, on each node", () => {
    expect(traceIdOf({ sessionId: SESSION, key: "boot" })).toBe(SESSION.replaceAll("-", ""));
    expect(spanIdOf(SESSION, "boot")).toBe(spanIdOf(SESSION, "boot"));
    expect(spanIdOf(SESSION, "boot")).toMatch(/^[0-9a-f]{16}$/);
    expect(spanIdOf(SESSION, "boot")).not.toBe(spanIdOf(SESSION, "turn"));
  });

  it("are of the right form without a session", () => {
    expect(traceIdOf({ sessionId: null, key: "a" })).toMatch(/^[0-9a-f]{32}$/);
  });
});

describe("a span's attributes", () => {
  it("are values that a metric could have, and no others [L05]", () => {
    const given = { status: "2xx", outcome: 'a"b\nc', code: "canary" } as const;
    expect(shownAttributes(given)).toEqual([
      ["status", "2xx"],
      ["outcome", "other"],
    ]);
  });
});
