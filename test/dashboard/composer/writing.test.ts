/** What a reader writes: nothing is lost, and a text with a secret is not stored (writing.ts C1, C2). */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Message } from "../../../dashboard/live/outbox.ts";
import { Writing } from "../../../dashboard/composer/writing.ts";

const PATH = "/v1/projects/p/sessions/s";
const FILE = { id: "f", name: "a.txt", media_type: "text/plain", bytes: 3 };

const begin = ({ asksInWords = false, status = "running" } = {}) => {
  const sent: Message[] = [];
  const answers: string[] = [];
  const outcome = { counts: true };
  const writing = new Writing(PATH, {
    moment: () => ({ status, asksInWords }),
    isRestoreWanted: () => true,
    send: (message) => sent.push(message),
    answer: async (text) => {
      answers.push(text);
      return outcome.counts;
    },
  });
  return { writing, sent, answers, outcome };
};

describe("what a reader writes", () => {
  const stored = new Map<string, string>();
  beforeEach(() => {
    stored.clear();
    vi.stubGlobal("sessionStorage", {
      getItem: (name: string) => stored.get(name) ?? null,
      setItem: (name: string, value: string) => stored.set(name, value),
      removeItem: (name: string) => stored.delete(name),
    });
  });
  afterEach(() => vi.unstubAllGlobals());

  it("outlasts a reload, with the choice and the files, until it is sent", () => {
    const { writing } = begin();
    writing.putBack({ text: "", attachments: [FILE] });
    writing.choose({ model: "m" });
    writing.write("Half a sent");
    const again = begin();
    expect(again.writing.text).toBe("Half a sent");
    expect(again.writing.chosen).toEqual({ model: "m", agent: "", effort: "" });
    expect(again.writing.files.ready).toEqual([FILE]);
    again.writing.send("queue");
    expect(again.sent).toEqual([{ text: "Half a sent", delivery: "queue", attachments: [FILE], model: "m" }]);
    expect([again.writing.text, again.writing.files.ready.length, stored.size]).toEqual(["", 0, 0]);
  });

  it("comes back after a refusal, before what was typed meanwhile", () => {
    const { writing } = begin();
    writing.write("Later.");
    writing.refused(
      { text: "Earlier.", delivery: "queue", attachments: [FILE] },
      { code: "queue_full", message: "20 wait." },
    );
    expect(writing.text).toBe("Earlier.\n\nLater.");
    expect(writing.files.ready).toEqual([FILE]);
    expect(writing.problem).toMatch(/^20 wait\./);
  });

  it("is not stored after a refusal because of a secret, until the text was empty once", () => {
    const { writing } = begin();
    const message: Message = { text: "It is hunter2.", delivery: "queue" };
    writing.refused(message, { code: "secret_in_message", message: "It holds a secret." });
    expect([writing.text, stored.size]).toEqual(["It is hunter2.", 0]);
    writing.write("It is hunter2. Use it.");
    expect(stored.size).toBe(0);
    writing.write("");
    writing.write("Use KEY.");
    expect([...stored.values()].join("")).toContain("Use KEY.");
  });

  it("answers the agent, and stays until the answer counts", async () => {
    const { writing, answers, outcome, sent } = begin({ asksInWords: true });
    writing.write(" Yes. ");
    outcome.counts = false;
    await writing.submit();
    expect(writing.text).toBe(" Yes. ");
    outcome.counts = true;
    await writing.submit();
    expect([writing.text, answers, sent]).toEqual(["", ["Yes.", "Yes."], []]);
    // An answer is words alone.
    writing.putBack({ text: "See this.", attachments: [FILE] });
    await writing.submit();
    expect(sent).toHaveLength(1);
  });

  it("asks for saved work when it restarts a session", () => {
    const { writing, sent } = begin({ status: "stopped" });
    writing.write("Go on.");
    writing.send("queue");
    expect(sent).toEqual([{ text: "Go on.", delivery: "queue", restore: true }]);
  });

  it("is not sent while a file is on its way or refused, nor without words and files", () => {
    const { writing, sent } = begin();
    writing.send("queue");
    writing.write("Look.");
    writing.files.add([new File([], "empty.txt")]);
    expect([writing.isSendable, writing.files.chosen[0]?.problem]).toEqual([false, "The file is empty."]);
    writing.send("queue");
    expect(sent).toEqual([]);
    writing.files.remove(writing.files.chosen[0]?.key ?? -1);
    expect(writing.isSendable).toBe(true);
  });
});
