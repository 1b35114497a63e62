import { describe, expect, test } from "vitest";
import { historyPatterns, isHistoryPath } from "../../../src/domain/runtimes/history.ts";

const ID = "0199a1b2-c3d4.x";
const FILES = [".agent/*/{id}.jsonl", ".agent/chats/s-*-{id8}.jsonl", "own.db"];

describe("the files of a runtime's record", () => {
  test.each([
    [`.agent/-workspace/${ID}.jsonl`, true],
    [".agent/chats/s-2026-11-30-0199a1b2.jsonl", true],
    ["own.db", true],
    // A dot of the id or of the pattern is a dot.
    [".agent/-workspace/0199a1b2-c3d4-x.jsonl", false],
    ["ownxdb", false],
    // Each name is one name.
    [`.agent/a/b/${ID}.jsonl`, false],
    [`.agent/../${ID}.jsonl`, false],
    [`.agent/./${ID}.jsonl`, false],
    [`.agent//${ID}.jsonl`, false],
    ["own.db/more", false],
    ["../own.db", false],
    ["own.db\n", false],
    [".agent/chats/s-a\0-0199a1b2.jsonl", false],
  ])("%j: %s", (path, expected) => {
    expect(isHistoryPath(path, FILES, ID)).toBe(expected);
  });

  test.each(["", "short", "../../../etc", "with/slash-1", ".hidden-123", "a".repeat(129), "0199a1b2\n"])(
    "are none with the id %j",
    (id) => {
      expect(historyPatterns(FILES, id)).toBeNull();
      expect(isHistoryPath("own.db", FILES, id)).toBe(false);
    },
  );
});
