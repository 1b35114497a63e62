import { describe, expect, it } from "vitest";
import { faultOfFiles, refusalOf } from "../../../dashboard/composer/files.ts";
import { payloadOf } from "../../../dashboard/live/outbox.ts";
import {
  buttonsAt,
  messageOf,
  type Moment,
  NOT_CHOSEN,
  placeholderOf,
  refusalWords,
} from "../../../dashboard/composer/rules.ts";

const MIB = 1024 * 1024;

const moment = (rest: Partial<Moment> = {}): Moment => ({
  status: "running",
  turn: "idle",
  stopping: false,
  isFirst: false,
  asksInWords: false,
  model: null,
  ...rest,
});

const labels = (at: Moment, hasFiles = false) => buttonsAt(at, hasFiles).map(({ label }) => label);

describe("the composer's buttons", () => {
  it("send while the agent rests, and queue or interrupt while it works", () => {
    expect(labels(moment())).toEqual(["Send"]);
    expect(labels(moment({ turn: "running" }))).toEqual(["Stop", "Send now", "Queue"]);
    expect(labels(moment({ turn: "running", stopping: true }))[0]).toBe("Stopping…");
  });

  it("answer a question in words, unless the message has files", () => {
    const asks = moment({ turn: "requires_action", asksInWords: true });
    expect(labels(asks)).toEqual(["Stop", "Queue", "Answer"]);
    expect(labels(asks, true)).toEqual(["Stop", "Send now", "Queue"]);
  });

  it("restart a session that has ended, whatever its last turn was", () => {
    for (const status of ["stopped", "failed"])
      expect(labels(moment({ status, turn: "running" }))).toEqual(["Send and restart"]);
  });
});

const at = (rest: Partial<Moment>) => placeholderOf(moment(rest));

it("says in the empty field what a message does", () => {
  expect(at({})).toBe("Message the agent…");
  expect(at({ turn: "running" })).toBe("Write the next message…");
  expect(at({ turn: "requires_action" })).toBe("Answer above. A message waits until then…");
  expect(at({ turn: "requires_action", asksInWords: true })).toBe("Answer the agent…");
  expect(at({ status: "stopped" })).toBe("A message restarts the session…");
});

it("adds advice to a refusal that has none", () => {
  expect(refusalWords({ code: "queue_full", message: "20 wait." })).toMatch(/^20 wait\. Cancel a waiting/);
  expect(refusalWords({ code: "busy", message: "Busy." })).toBe("Busy. Your text is in the text area again.");
});

describe("a message", () => {
  const attached = { id: "f", name: "a.txt", media_type: "text/plain", bytes: 3 };
  const live = { isEnded: false, restore: true };

  it("has the text without blank lines around it, and only what was chosen", () => {
    const typed = { text: "\n  indented\n\n", chosen: NOT_CHOSEN, files: [] };
    expect(messageOf(typed, "queue", live)).toEqual({ text: "  indented", delivery: "queue" });
    const chosen = { model: "m", agent: "plan", effort: "" };
    expect(messageOf({ text: " ", chosen, files: [attached] }, "interrupt", live)).toEqual({
      text: "",
      delivery: "interrupt",
      attachments: [attached],
      model: "m",
      agent: "plan",
    });
  });

  it("says whether a restart brings saved work back, and names its files by their ids", () => {
    const typed = { text: "Go on.", chosen: NOT_CHOSEN, files: [attached] };
    const message = messageOf(typed, "queue", { isEnded: true, restore: true });
    expect(payloadOf(message)).toEqual({
      text: "Go on.",
      delivery: "queue",
      restore_saved: true,
      attachments: ["f"],
    });
    expect(payloadOf({ ...message, restore: false, text: "" })).toEqual({
      delivery: "queue",
      attachments: ["f"],
    });
  });
});

const file = (name: string, size: number) => ({ name, size });

it("takes files within the service's limits", () => {
  expect(refusalOf(0, 0)).toBe("The file is empty.");
  expect(refusalOf(10 * MIB, 15 * MIB)).toBeNull();
  expect(refusalOf(10 * MIB + 1, 0)).toBe("A file has at most 10 MiB.");
  expect(refusalOf(1, 25 * MIB)).toBe("The files of a message have at most 25 MiB together.");
  expect(faultOfFiles([file("a", 1)])).toBeNull();
  expect(faultOfFiles([file("a", 1), file("b", 0)])).toBe("“b”: The file is empty.");
  expect(faultOfFiles(Array.from({ length: 11 }, () => file("a", 1)))).toBe(
    "A message has at most 10 files.",
  );
  expect(faultOfFiles([10, 10, 6].map((size) => file("a", size * MIB)))).toBe(
    "The files of a message have at most 25 MiB together.",
  );
});
