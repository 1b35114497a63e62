/** Words that a person looks for in messages, and the sentence that a list shows of the message. */
import type { RequestAnswer } from "../../../src/domain/conversation/steering.ts";
import { describe, expect, it } from "vitest";
import { hasWords, searchWords, sentenceAround } from "../../../src/domain/conversation/search.ts";

const message = (text: string) => ({
  kind: "message",
  status: "completed" as const,
  parentId: null,
  content: [{ type: "text" as const, text }],
  answer: null,
});

describe("the words of a search", () => {
  it("are in lower case, without the signs between them, at most ten", () => {
    expect(searchWords("Über src/main.ts, 'x':*")).toEqual(["über", "src", "main", "ts", "x"]);
    expect(searchWords("%")).toEqual([]);
    expect(searchWords("a ".repeat(20))).toHaveLength(10);
  });

  it("must all begin words of a whole message of a person or the agent itself", () => {
    const said = message("The greeting lives in src/main.ts.");
    expect(hasWords(said, ["greet", "main"])).toBe(true);
    expect(hasWords(said, ["reet"])).toBe(false);
    expect(hasWords(said, ["greet", "porcupine"])).toBe(false);
    expect(hasWords(said, [])).toBe(false);
    for (const other of [
      { kind: "thought" },
      { parentId: "task" },
      { status: "running" as const },
      { status: "cancelled" as const },
    ])
      expect(hasWords({ ...said, ...other }, ["greet"]), JSON.stringify(other)).toBe(false);
  });

  it("may be what a person answered to a request, in her words or by choosing", () => {
    const asked = { ...message(""), kind: "request", status: "running" as const };
    const answered = (answer: RequestAnswer) => ({ ...asked, answer: { answer } });
    expect(hasWords(answered({ answers: [["Both"], ["In a porcupine"]] }), ["both", "porcu"])).toBe(true);
    expect(hasWords(answered({ choice: "reject", message: "No porcupines." }), ["porcu"])).toBe(true);
    for (const none of [
      asked,
      answered({ choice: "once", message: null }),
      answered({ declined: "expired" }),
    ])
      expect(hasWords(none, ["once"])).toBe(false);
  });
});

describe("the sentence around a word", () => {
  it("is that of the first word that it has, in one line", () => {
    const text = "I looked.\n\nThe greeting\nlives in `src/main.ts`! Bye.";
    expect(sentenceAround(text, ["main"])).toBe("The greeting lives in `src/main.ts`!");
    expect(sentenceAround(text, ["bye", "looked"])).toBe("I looked.");
    // A word is found at its beginning only.
    expect(sentenceAround("Regreet. Greet.", ["greet"])).toBe("Greet.");
  });

  it("is cut around the word if it is long", () => {
    const cut = sentenceAround(`${"word ".repeat(100)}porcupine ${"after ".repeat(100)}`, ["porcupine"]);
    expect(cut).toMatch(/^….{55,62}porcupine after .*…$/);
    expect(cut.length).toBeLessThanOrEqual(201);
  });
});
