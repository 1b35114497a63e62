import { describe, expect, it } from "vitest";
import { type ChatRequest, nextTurn, SCRIPTED } from "../../demo/script.ts";

const TOOLS = ["write", "bash"];

const request = (
  messages: ChatRequest["messages"],
  tools: readonly string[] | undefined = TOOLS,
): ChatRequest => ({
  model: "scripted",
  messages,
  tools: tools.map((name) => ({ function: { name } })),
});

/** Plays a prompt to its end with an agent whose tools answer `result(tool, input)`. */
const play = (prompt: string, result: (tool: string) => string) => {
  const messages: ChatRequest["messages"][number][] = [
    { role: "system", content: "You are an agent." },
    { role: "user", content: [{ type: "text", text: prompt }] },
  ];
  const calls: Readonly<Record<string, string>>[] = [];
  for (;;) {
    const turn = nextTurn(request(messages));
    if (turn.kind === "answer") return { calls, answer: turn.text };
    calls.push(turn.input);
    messages.push({ role: "assistant", content: null, tool_calls: [turn] });
    messages.push({ role: "tool", content: result(turn.tool) });
  }
};

const COMMIT = "0123456789abcdef0123456789abcdef01234567";
const allGoesWell = (tool: string) =>
  tool === "write" ? "Wrote file successfully." : `${COMMIT}\nexit code 0`;

describe("the script", () => {
  it("writes the files that a prompt asks for, commits, pushes and names the commit", () => {
    const { calls, answer } = play("Please\nwrite docs/a.md: one: two\n\nThanks", allGoesWell);
    expect(calls).toHaveLength(3);
    expect(calls[0]).toEqual({ filePath: "docs/a.md", content: "one: two\n" });
    expect(calls[1]?.["command"]).toMatch(/^git add -- docs\/a\.md && git .*commit -m 'Write docs\/a\.md';/);
    expect(calls[2]?.["command"]).toContain("git push origin HEAD");
    expect(answer).toBe(`Wrote docs/a.md and pushed it as commit ${COMMIT}.`);
  });

  it("writes several files before one commit", () => {
    const { calls } = play("write a: 1\nwrite b: 2", allGoesWell);
    expect(calls.map((input) => input["filePath"] ?? input["command"])).toEqual([
      "a",
      "b",
      expect.stringContaining("git add -- a b"),
      expect.stringContaining("git push"),
    ]);
  });

  it("makes notes on any other prompt, in the file that the prompt names", () => {
    const { calls, answer } = play("Write a note to `notes/x.md`.\n\nAuthor: Mona", allGoesWell);
    expect(calls[0]?.["filePath"]).toBe("notes/x.md");
    expect(calls[0]?.["content"]).toContain("> Author: Mona");
    expect(answer).toBe(`Wrote notes/x.md and pushed it as commit ${COMMIT}.\n\n${SCRIPTED}`);
  });

  it("falls back to NOTES.md", () => {
    expect(play("hello", allGoesWell).calls[0]?.["filePath"]).toBe("NOTES.md");
  });

  it("runs commands without a commit or a push", () => {
    const { calls, answer } = play("run: id -u", () => "1000\nexit code 0");
    expect(calls).toHaveLength(1);
    expect(answer).toContain("1000");
  });

  it("calls a tool by the end of its name, with the arguments that the prompt gives", () => {
    const messages = [{ role: "user", content: 'Please\nuse board_announce: {"text": "Hello"}' }];
    expect(nextTurn(request(messages, ["bash", "gateway_board_announce"]))).toEqual({
      kind: "call",
      tool: "gateway_board_announce",
      input: { text: "Hello" },
    });
    expect(nextTurn(request(messages))).toMatchObject({
      kind: "answer",
      text: expect.stringContaining("needs a tool named board_announce"),
    });
  });

  it("stops at the first failed step and says why", () => {
    const refused = play("write a: 1", (tool) =>
      tool === "write" ? "Wrote file successfully." : "remote: refused\nexit code 1",
    );
    expect(refused.calls).toHaveLength(2);
    expect(refused.answer).toContain("remote: refused");
    expect(play("write /x: 1", () => "Error: read-only").calls).toHaveLength(1);
  });

  it("keeps a path with shell characters as one word", () => {
    const { calls } = play("write it's;rm: 1", allGoesWell);
    expect(calls[1]?.["command"]).toContain(String.raw`'it'\''s;rm'`);
  });

  it("starts again at each user message of a session", () => {
    const turn = nextTurn(
      request([
        { role: "user", content: "write a: 1" },
        { role: "assistant", tool_calls: [{}] },
        { role: "tool", content: "Wrote file successfully." },
        { role: "assistant", content: "Done." },
        { role: "user", content: "write b: 2" },
      ]),
    );
    expect(turn).toMatchObject({ kind: "call", input: { filePath: "b" } });
  });

  it("answers a request without tools with the first line of the prompt", () => {
    const messages = [{ role: "user", content: "\n  Tidy the docs\nplease" }];
    expect(nextTurn(request(messages, []))).toEqual({ kind: "answer", text: "Tidy the docs" });
    expect(nextTurn(request([], []))).toEqual({ kind: "answer", text: "Untitled" });
  });

  it("says which tool is missing", () => {
    const turn = nextTurn(request([{ role: "user", content: "write a: 1" }], ["bash"]));
    expect(turn).toEqual({
      kind: "answer",
      text: "This step needs a tool named write, but the runtime has no such tool.",
    });
  });
});
