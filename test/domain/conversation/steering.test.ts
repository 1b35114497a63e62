import * as Schema from "effect/Schema";
import { describe, expect, it } from "vitest";
import {
  AnswerOrder,
  MessageHandedOver,
  OutgoingMessage,
  RequestAnswer,
} from "../../../src/domain/conversation/steering.ts";

const isA = (schema: Schema.Decoder<unknown>, value: unknown): boolean =>
  Schema.decodeUnknownExit(schema)(value, { onExcessProperty: "error" })._tag === "Success";

describe("the words between service and daemon", () => {
  it("have one form for a message", () => {
    const message = { id: "m", sent_at: 1, text: "Go.", model: null, agent: null };
    expect(isA(OutgoingMessage, message)).toBe(true);
    expect(isA(OutgoingMessage, { ...message, text: 1 })).toBe(false);
    expect(isA(OutgoingMessage, { ...message, files: [] })).toBe(false);
  });

  it("name the turn of a message that was accepted or has to wait", () => {
    expect(isA(MessageHandedOver, { outcome: "accepted", turn: 1 })).toBe(true);
    expect(isA(MessageHandedOver, { outcome: "busy", turn: 1 })).toBe(true);
    expect(isA(MessageHandedOver, { outcome: "busy" })).toBe(false);
    expect(isA(MessageHandedOver, { outcome: "refused", turn: 1 })).toBe(false);
  });

  it("have an answer of one kind: a choice, answers, or a refusal to answer", () => {
    const good = [
      { choice: "always", message: null },
      { answers: [["Blue"], []] },
      { declined: "unattended" },
    ];
    for (const answer of good) expect(isA(AnswerOrder, { request_id: "q", answer })).toBe(true);
    for (const answer of [{ choice: "maybe", message: null }, { answers: ["Blue"] }, { declined: "no" }, {}])
      expect([answer, isA(RequestAnswer, answer)]).toEqual([answer, false]);
  });
});
