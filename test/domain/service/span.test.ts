/** The ids and the attributes of spans. */
import { describe, expect, it } from "vitest";
import { shownAttributes, deriveSpanId, spanTraceId } from "../../../src/domain/service/span.ts";

const SESSION = "0b4cf0a4-5a3f-4c39-9d67-1f62c2f0a001";

describe("a span's ids", () => {
  it("follow from the session and from what the span is about, on each node", () => {
    expect(spanTraceId({ sessionId: SESSION, key: "boot" })).toBe(SESSION.replaceAll("-", ""));
    expect(deriveSpanId(SESSION, "boot")).toBe(deriveSpanId(SESSION, "boot"));
    expect(deriveSpanId(SESSION, "boot")).toMatch(/^[0-9a-f]{16}$/);
    expect(deriveSpanId(SESSION, "boot")).not.toBe(deriveSpanId(SESSION, "turn"));
  });

  it("are of the right form without a session", () => {
    expect(spanTraceId({ sessionId: null, key: "a" })).toMatch(/^[0-9a-f]{32}$/);
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
