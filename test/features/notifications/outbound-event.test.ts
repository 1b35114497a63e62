import { describe, expect, it } from "vitest";
import {
  outboundMessage,
  testMessage,
  type SourceEvent,
} from "../../../src/features/notifications/rules/outbound-event.ts";

const place = { projectName: "greeter", publicUrl: "https://p.example.org" };
const event = (type: string, data: SourceEvent["data"], sessionId: string | null = "s1"): SourceEvent => ({
  cursor: "7.1",
  type,
  at: 1000,
  projectId: "p1",
  sessionId,
  data,
});

const idOf = (cursor: string, at = 1000) =>
  outboundMessage({ ...event("queue.full", {}), cursor, at }, place)?.id;

describe("the message of an event", () => {
  it("has codes and ids, and no text of a failure", () => {
    const failure = { code: "boot_failed", message: "canary text" };
    const message = outboundMessage(event("session.status", { status: "failed", failure }), place);
    expect(message).toMatchObject({
      type: "session.failed",
      at: 1000,
      data: { session_id: "s1", code: "boot_failed", url: "https://p.example.org/#/projects/p1/sessions/s1" },
    });
    expect(JSON.stringify(message)).not.toContain("canary");
  });

  it("names the person who is asked for a review", () => {
    const data = { number: 7, status: "open", reviewer_id: "u2", reviewer_name: "Ben", asked_by: "u1" };
    expect(outboundMessage(event("change_request.review_requested", data), place)?.data).toEqual({
      project_id: "p1",
      project_name: "greeter",
      session_id: "s1",
      number: 7,
      reviewer_id: "u2",
      reviewer_name: "Ben",
      url: "https://p.example.org/#/projects/p1/change-requests/7",
    });
  });

  it("leaves out texts where a code is expected", () => {
    const data = { fire_id: "f1", trigger_slug: "t", reason: "x".repeat(201) };
    expect(outboundMessage(event("fire.failed", data, null), place)?.data).toMatchObject({ reason: null });
  });

  it.each(["session.turn", "sandbox.status", "trigger.fired", "change_request.updated", "webhook.test"])(
    "does not exist for %s",
    (type) => {
      expect(outboundMessage(event(type, {}), place)).toBe(null);
    },
  );

  it("does not exist for a session that runs", () => {
    expect(outboundMessage(event("session.status", { status: "running" }), place)).toBe(null);
  });

  it("has the same id each time, and another one for another event", () => {
    expect(idOf("7.1")).toBe(idOf("7.1"));
    expect(new Set([idOf("7.1"), idOf("7.2"), idOf("7.1", 1001)]).size).toBe(3);
    expect(idOf("7.1")).toMatch(/^evt_[0-9a-f]{32}$/);
  });

  it("of a test leads to the settings", () => {
    expect(testMessage("a-b", { ...place, at: 5, projectId: "p1" })).toMatchObject({
      id: "evt_ab",
      type: "webhook.test",
      data: { url: "https://p.example.org/#/projects/p1/settings" },
    });
  });
});
