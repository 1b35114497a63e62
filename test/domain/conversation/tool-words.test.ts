import { describe, expect, it } from "vitest";
import type { ToolCall } from "../../../src/domain/conversation/conversation.ts";
import {
  toolCommand,
  fileContent,
  exploredWords,
  failureWord,
  searchHits,
  inputText,
  toolTitle,
} from "../../../src/domain/conversation/tool-words.ts";
import { sampleItem, sampleTool } from "../../dashboard/samples/sample-conversation.ts";

type Json = Readonly<Record<string, unknown>>;
type Item = Parameters<typeof failureWord>[0];

const item = (tool: Json, rest: Json = {}): Item =>
  // eslint-disable-next-line typescript/no-unsafe-type-assertion -- it has all fields of one
  sampleItem("t", { ...sampleTool(tool), ...rest }) as unknown as Item;

const tool = (fields: Json): ToolCall => {
  const { tool: call } = item(fields);
  if (call === null) throw new Error("no tool");
  return call;
};

describe("a tool call", () => {
  it.each([
    [
      "the model's own description",
      { input: { command: "npm t", description: "Run the tests" } },
      ["Run the tests", true],
    ],
    [
      "what the runtime calls it",
      { title: "a/b.ts", kind: "read", input: { filePath: "/w/a/b.ts" } },
      ["a/b.ts", false],
    ],
    ["words of the runtime", { title: "Look around", kind: "other", input: {} }, ["Look around", true]],
    ["its command until it has a name", { title: "bash", input: { command: "npm t\nls" } }, ["npm t", false]],
    ["its path", { title: null, name: "read", input: { filePath: "/w/a.ts" } }, ["/w/a.ts", false]],
    ["its name", { title: null, name: "odd", input: null }, ["odd", true]],
  ])("is called %s", (_, fields, [text, isProse]) => {
    expect(toolTitle(tool(fields))).toEqual({ text, isProse });
  });

  it("has its command as it was typed", () => {
    expect(toolCommand(tool({ input: { command: "a\n  b" } }))).toBe("a\n  b");
    expect(toolCommand(tool({ input: { command: ["git", "log"] } }))).toBe("git log");
    expect(toolCommand(tool({ input: "text" }))).toBe("");
  });

  it.each([
    ["completed", null, null],
    ["running", null, null],
    ["interrupted", null, "interrupted"],
    ["failed", { code: "tool_failed", message: "No." }, "failed"],
    ["failed", { code: "exit_127", message: "No." }, "exit 127"],
    [
      "failed",
      { code: "tool_failed", message: "The call was denied by a person, and was not made." },
      "denied",
    ],
  ])("that is %s with %j says %s", (status, error, word) => {
    expect(failureWord(item({}, { status, error }))).toBe(word);
  });

  it("that completed with an exit code other than 0 says so", () => {
    expect(failureWord(item({ exit_code: 2 }))).toBe("exit 2");
    expect(failureWord(item({ exit_code: 0 }))).toBe(null);
  });

  it("has the content that it read, without the runtime's marks", () => {
    const output =
      "<path>/w/a</path>\n<type>file</type>\n<content>\n1: hello\n2: world\n\n(End of file - total 2 lines)\n</content>";
    expect(fileContent(tool({ output }))).toBe("1: hello\n2: world");
    expect(fileContent(tool({ output: "hello" }))).toBe("hello");
  });

  it("has an input that is one text without JSON around it", () => {
    expect(inputText({ command: "a\nb" })).toBe("a\nb");
    expect(inputText({ a: 1 })).toBe('{\n  "a": 1\n}');
    expect(inputText({ a: "x".repeat(40_000) }).length).toBe(32_001);
  });
});

describe("a search", () => {
  it.each([
    [
      "files with lines below",
      "Found 2 matches\n/w/a.ts:\n  Line 3: one\n  Line 9: two\n\n/w/b.ts:\n  Line 1: x",
    ],
    ["a file on each line", "/w/a.ts:3: one\n/w/a.ts:9: two\n/w/b.ts:1: x"],
  ])("that tells %s has its hits by file", (_, output) => {
    const hits = searchHits(tool({ kind: "search", output }));
    expect(hits?.map(({ path, hits: lines }) => [path, lines.map(({ line }) => line)])).toEqual([
      ["/w/a.ts", ["3", "9"]],
      ["/w/b.ts", ["1"]],
    ]);
  });

  it("that finds files has their paths", () => {
    const hits = searchHits(tool({ output: "/w/a.ts\nsrc/b.ts\n(2 files)" }));
    expect(hits).toEqual([
      { path: "/w/a.ts", hits: [] },
      { path: "src/b.ts", hits: [] },
    ]);
  });

  it("of another form has none", () => {
    expect(searchHits(tool({ output: "No files found" }))).toBe(null);
  });
});

describe("reads and searches in a row", () => {
  const read = (filePath: string, rest: Json = {}) => item({ kind: "read", input: { filePath } }, rest);
  const search = item({ kind: "search", input: { pattern: "x" } });

  it("are counted by file", () => {
    expect(exploredWords([read("a"), read("b"), read("a")])).toBe("Explored 2 files");
    expect(exploredWords([read("a"), search])).toBe("Explored 1 file, 1 search");
    expect(exploredWords([search, search])).toBe("Explored: 2 searches");
    expect(exploredWords([read("a"), read("b", { status: "running" })])).toBe("Exploring 2 files");
  });
});
