import { describe, expect, it } from "vitest";
import {
  isSteeringRequest,
  steersForAnother,
  suspendedMessage,
} from "../../../src/domain/connector/own-credential.ts";

describe("a person's own credential in her session", () => {
  it("is suspended by another person's act, and not by her own or in a trigger's session [K20]", () => {
    expect(steersForAnother({ origin: "session", createdBy: "mia" }, "ben")).toBe(true);
    expect(steersForAnother({ origin: "session", createdBy: "mia" }, "mia")).toBe(false);
    expect(steersForAnother({ origin: "trigger", createdBy: "mia" }, "ben")).toBe(false);
  });

  it.each([
    ["GET", false, false],
    ["HEAD", false, false],
    ["GET", true, true],
    ["POST", false, true],
    ["OPTIONS", false, true],
    [undefined, false, true],
  ])("%s, upgrade %s: steers %s", (method, isUpgrade, steers) => {
    expect(isSteeringRequest(method, isUpgrade)).toBe(steers);
  });

  it("is refused with who did what, and how to give it back", () => {
    const by = { id: "1", name: "Ben" };
    const message = suspendedMessage("mail", { sessionId: "s-1", by, act: "terminal", at: 0 });
    expect(message).toContain(
      "Ben opened a terminal. She can give it back: platform sessions give-credentials s-1.",
    );
  });
});
