/** A conversation that is longer than the model can read, by events as opencode sends them. */
import { expect, test } from "vitest";
import type { ItemDraft } from "../../../daemon/adapters/adapter.ts";
import { PassedCalls } from "../../../daemon/agent/passed-calls.ts";
import { OpencodeConversation } from "../../../daemon/adapters/opencode/conversation.ts";

const SESSION = "ses_1";
const idOf = (number: number): string => `msg_22349c5c${number}001AAAAAAAAAAAAAA`;
const OVERFLOW = { name: "ContextOverflowError", data: { message: "Too long." } };

const start = () => {
  const items = new Map<string, ItemDraft>();
  const conversation = new OpencodeConversation(new PassedCalls());
  conversation.connected({
    title: "t",
    observer: {
      item: (item) => void items.set(item.native_id, item),
      grown: () => undefined,
      turn: () => undefined,
      titled: () => undefined,
    },
    now: () => 9,
    onUnsettled: () => undefined,
  });
  conversation.listedSessions([{ id: SESSION, title: "t" }]);
  conversation.listedBusy([SESSION]);
  const take = (type: string, properties: object) =>
    conversation.take({ type, properties: { sessionID: SESSION, ...properties } });
  const message = (number: number, role: "user" | "assistant", rest: object = {}) => {
    const { time, ...others } = { time: {}, ...rest };
    const info = {
      id: idOf(number),
      sessionID: SESSION,
      role,
      time: { created: number, ...time },
      ...others,
    };
    take("message.updated", { info });
  };
  const part = (number: number, rest: object) =>
    take("message.part.updated", {
      part: { id: `prt_${number}`, sessionID: SESSION, messageID: idOf(number), ...rest },
    });
  const text = (number: number, words: string) =>
    part(number, { type: "text", text: words, time: { start: number, end: number } });
  /** A person's message that is too long, up to the model's call for a summary. */
  const overflow = () => {
    conversation.handedOver(idOf(1), "ours", null);
    message(1, "user");
    text(1, "Do it.");
    message(2, "assistant", { parentID: idOf(1) });
    take("session.error", { error: OVERFLOW });
    message(2, "assistant", { parentID: idOf(1), time: { completed: 2 } });
    message(3, "user");
    part(3, { type: "compaction", auto: true, overflow: true });
    message(4, "assistant", { parentID: idOf(3), summary: true });
  };
  const shown = () =>
    [...items.values()].map(({ kind, status, content, error }) => [
      kind,
      status,
      content.map((one) => (one.type === "text" ? one.text : "")).join(""),
      error?.code ?? null,
    ]);
  return { overflow, message, part, text, take, shown, items, conversation };
};

const note = (words: string): unknown => expect.stringContaining(words);

test("shows a person's message once, and one note about the summary", () => {
  const { overflow, message, text, take, shown } = start();
  overflow();
  expect(shown()).toEqual([
    ["message", "completed", "Do it.", null],
    ["note", "running", note("asks the model for a summary"), null],
  ]);
  text(4, "SUMMARY");
  message(4, "assistant", { parentID: idOf(3), summary: true, finish: "stop", time: { completed: 4 } });
  message(5, "user");
  text(5, "Do it.");
  message(6, "assistant", { parentID: idOf(5) });
  text(6, "OK");
  message(6, "assistant", { parentID: idOf(5), finish: "stop", time: { completed: 6 } });
  take("session.idle", {});
  expect(shown()).toEqual([
    ["message", "completed", "Do it.", null],
    ["note", "completed", note("replaced the conversation so far with a summary"), null],
    ["note", "completed", "SUMMARY", null],
    ["message", "completed", "OK", null],
  ]);
});

test("shows a command as its person wrote it, in place of the text that opencode made of it", () => {
  const { conversation, message, text, shown } = start();
  conversation.handedOver(idOf(1), "ours", "/greet heron");
  message(1, "user");
  text(1, "Say hello to heron.");
  expect(shown()).toEqual([["message", "completed", "/greet heron", null]]);
});

test("says that there is no summary if its call failed without a reason", () => {
  const { overflow, message, take, shown } = start();
  overflow();
  message(4, "assistant", { parentID: idOf(3), summary: true, finish: "error", time: { completed: 4 } });
  take("session.idle", {});
  expect(shown()).toContainEqual(["note", "completed", note("could not replace"), null]);
});

test("says that there is no summary if the model gave none, and why", () => {
  const { overflow, message, take, shown } = start();
  overflow();
  const failed = { parentID: idOf(3), summary: true, finish: "error", error: OVERFLOW };
  message(4, "assistant", { ...failed, time: { completed: 4 } });
  take("session.idle", {});
  expect(shown()).toEqual([
    ["message", "completed", "Do it.", null],
    ["note", "completed", note("could not replace"), null],
    ["message", "failed", "", "context_exceeded"],
  ]);
});

test("shows a message after a summary that the conversation's length did not ask for", () => {
  const { message, part, text, shown } = start();
  message(1, "user");
  part(1, { type: "compaction", auto: false });
  message(2, "assistant", { parentID: idOf(1), summary: true, finish: "stop", time: { completed: 2 } });
  message(3, "user");
  text(3, "Go on.");
  expect(shown().filter(([, , words]) => words === "Go on.")).toHaveLength(1);
});

test("shows what a person writes after a summary", () => {
  const { overflow, message, text, shown } = start();
  overflow();
  message(4, "assistant", { parentID: idOf(3), summary: true, finish: "stop", time: { completed: 4 } });
  message(5, "user");
  text(5, "Do it.");
  message(6, "assistant", { parentID: idOf(5), finish: "stop", time: { completed: 6 } });
  message(7, "user");
  text(7, "Do it.");
  expect(shown().filter(([, , words]) => words === "Do it.")).toHaveLength(2);
});

test("tells how full the model's context is, and that a summary has replaced what was before", () => {
  const { overflow, message, text, items, conversation } = start();
  conversation.sized(new Map([["p/m", 1000]]));
  const tokens = { input: 700, output: 50, reasoning: 0, cache: { read: 200, write: 0 } };
  const call = { providerID: "p", modelID: "m", tokens, finish: "stop" };
  overflow();
  const told = () =>
    [...items.values()].flatMap(({ context, compacts }) =>
      context === undefined ? (compacts ?? []) : context,
    );
  expect(told()).toEqual([]);
  // The call for the summary reads what the summary replaces.
  text(4, "SUMMARY");
  message(4, "assistant", { ...call, parentID: idOf(3), summary: true, time: { completed: 4 } });
  expect(told()).toEqual([true]);
  message(6, "assistant", { ...call, parentID: idOf(3), time: { completed: 6 } });
  text(6, "OK");
  expect(told()).toEqual([true, { tokens: 950, size: 1000 }]);
  message(7, "assistant", { ...call, modelID: "other", parentID: idOf(3), time: { completed: 7 } });
  text(7, "OK");
  expect(told().at(-1)).toEqual({ tokens: 950, size: null });
});
