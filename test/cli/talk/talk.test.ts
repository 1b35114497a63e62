/** A conversation on a screen, event by event. */
import { beforeEach, describe, expect, it } from "vitest";
import type { Item } from "../../../src/cli/commands/sessions/agent-requests.ts";
import { Chat } from "../../../src/cli/commands/sessions/chat.ts";
import { Talk } from "../../../src/cli/commands/sessions/talk/talk.ts";
import type { Client } from "../../../src/cli/client.ts";
import type { Input } from "../../../src/cli/input.ts";

const ESC = "\u001b";

type Fields = Readonly<Record<string, unknown>>;

let seq = 0;
const itemOf = (id: string, fields: Fields = {}): Fields => {
  seq += 1;
  return {
    id,
    seq,
    kind: "message",
    role: "agent",
    status: "completed",
    author: { kind: "agent", name: "opencode" },
    content: [],
    tool: null,
    request: null,
    answer: null,
    parent_id: null,
    turn_id: null,
    model: null,
    error: null,
    truncated: false,
    created_at: "2026-11-20T12:00:00.000Z",
    completed_at: "2026-11-20T12:00:03.200Z",
    ...fields,
  };
};
const text = (said: string): Fields => ({ content: [{ type: "text", text: said }] });
const open = (id: string, said = "", fields: Fields = {}): Fields =>
  itemOf(id, { status: "running", completed_at: null, ...text(said), ...fields });
const tool = (id: string, call: Fields, fields: Fields = {}): Fields =>
  itemOf(id, {
    kind: "tool",
    tool: { name: "bash", kind: "execute", title: null, input: {}, output: "", changes: [], ...call },
    ...fields,
  });
const RUN = { input: { command: "npm t", description: "Run the tests" } };

let shown = "";
let talk: Talk;
const screenWith = (hasColours: boolean) => ({
  columns: () => 60,
  hasColours,
  write: (more: string) => void (shown += more),
});
beforeEach(() => {
  shown = "";
  talk = new Talk(screenWith(false));
});

const take = (...items: readonly Fields[]): void => {
  for (const item of items) talk.take({ id: null, event: "item", data: JSON.stringify(item) });
};
const deltaOf = (id: string, offset: number, more: string) => ({
  id: null,
  event: "delta",
  data: JSON.stringify({ item_id: id, offset, text: more }),
});
const grow = (id: string, offset: number, more: string): void => talk.take(deltaOf(id, offset, more));

/** The text from here on. */
const since = (act: () => void): string => {
  const before = shown.length;
  act();
  return shown.slice(before);
};

describe("an answer on a screen", () => {
  it("is shown as it grows, below the name of who gives it, and not again when it has ended", () => {
    take(open("a", "", { model: "acme/large" }));
    expect(shown).toBe("");
    grow("a", 0, "The tests ");
    expect(shown).toBe("opencode  acme/large\nThe tests");
    expect(since(() => grow("a", 10, "fail **here"))).toBe(" fail");
    expect(since(() => take(itemOf("a", text("The tests fail **here**."))))).toBe(" here.\n");
    expect(since(() => take(itemOf("a", text("The tests fail **here**."))))).toBe("");
    expect(since(() => take(open("a", "Late, from before its end ")))).toBe("");
  });

  it("loses and repeats nothing when a connection begins again, or pieces come twice, late, or not", () => {
    take(open("a", "One two "));
    grow("a", 8, "three ");
    const again = since(() => {
      grow("a", 8, "three ");
      grow("a", 99, "lost ");
      // A page that was read again, and a version that came late.
      take(open("a", "One two three four "), { ...open("a", "One"), seq: 1 });
      grow("a", 19, "five ");
    });
    expect(again).toBe(" four five");
    // A shorter version than the text that was shown: what follows it is not shown twice.
    const shorter = since(() => {
      take(open("a", "One two "));
      grow("a", 8, "three four five six ");
    });
    expect(shorter).toBe(" six");
    expect(since(() => take(itemOf("a", text("One two three four five six seven"))))).toBe(" seven\n");
  });

  it("keeps its text when an event has only its beginning", () => {
    take(open("a", "One two three "));
    take({ ...open("a", "One "), truncated: true });
    grow("a", 14, "four ");
    expect(shown).toBe("opencode\nOne two three four");
  });

  it("that moves behind another one is not shown again: a line says where it belongs", () => {
    const moved = { ...text("It works."), place: 4 };
    take(itemOf("a", { ...text("I look."), place: 1 }), itemOf("b", { ...text("It works."), place: 2 }));
    // The late one grows, and comes before the other.
    take(open("late", "I run ", { place: 3 }));
    expect(since(() => take(itemOf("b", moved)))).toBe("");
    const end = since(() => take(itemOf("late", { ...text("I run the tests."), place: 3 })));
    expect(end).toBe(" the tests.\n\n(“It works.” belongs here, after what was said meanwhile.)\n");
    // The same again, and one that has nothing else between its places.
    expect(since(() => take(itemOf("b", moved), itemOf("b", { ...moved, place: 5 })))).toBe("");
  });

  it("of a person who typed it says when it went to the agent, after what was said meanwhile", () => {
    talk.typed("m");
    const queued = { role: "user", author: { kind: "user", name: "Mona" }, ...text("Then sign it.") };
    take(itemOf("m", { ...queued, status: "queued", place: 1 }), itemOf("a", { ...text("Done."), place: 2 }));
    const line = since(() => take(itemOf("m", { ...queued, status: "accepted", place: 3 })));
    expect(line).toBe("\n(“Then sign it.” belongs here, after what was said meanwhile.)\n");
  });

  it("that was given another text is shown once more, whole", () => {
    take(open("a", "One two "), itemOf("a", text("Three.")));
    expect(shown).toBe("opencode\nOne two\n\nThree.\n");
  });

  it("that ends with less text than it had stays as it is", () => {
    take(open("a", "One two "), itemOf("a", text("One")));
    expect(shown).toBe("opencode\nOne two\n");
  });

  it("says how it ended, if not well", () => {
    take(itemOf("a", { ...text("One"), status: "interrupted" }));
    take(itemOf("b", { status: "failed", error: { code: "x", message: `No${ESC}[1m key.` } }));
    expect(shown).toBe("opencode\nOne\n[interrupted]\n\n[failed] No\\x1b[1m key.\n");
  });

  it("is followed by what ended meanwhile, and by the next one", () => {
    take(open("a", "One two "), open("b", "Next "), tool("t", RUN));
    grow("b", 5, "one ");
    expect(shown).toBe("opencode\nOne two");
    take(itemOf("a", text("One two three")));
    expect(shown).toBe("opencode\nOne two three\n\n  Run the tests  ✓  3.2 s\n\nNext one");
  });

  it("goes on below what a person must know at once", () => {
    take(open("a", "One two "));
    talk.ask(["The agent asks: Which?", "  1. Blue", "Answer with a number."]);
    grow("a", 8, "three four");
    take(itemOf("a", text("One two three four")));
    expect(shown).toBe(
      "opencode\nOne two\n\nThe agent asks: Which?\n  1. Blue\nAnswer with a number.\n\nthree four\n",
    );
  });
});

describe("work on a screen", () => {
  it.each([
    ["its description", RUN, {}, "Run the tests  ✓  3.2 s"],
    ["what it reads", { kind: "read", name: "read", title: "src/a.ts" }, {}, "Read src/a.ts  ✓  3.2 s"],
    ["its exit code", { ...RUN, exit_code: 2 }, {}, "Run the tests  ✗ exit 2  3.2 s"],
    [
      "the reason of its failure",
      { kind: "edit", title: "a.ts" },
      { status: "failed", error: { code: "tool_failed", message: "No such\nfile." } },
      "Edit a.ts  ✗ failed  3.2 s\n    No such file.",
    ],
    ["that it is a subagent's", RUN, { parent_id: "p" }, "  Run the tests  ✓  3.2 s"],
  ])("is a line with %s", (_, call, fields, line) => {
    take(tool("t", call, fields));
    expect(shown).toBe(`opencode\n  ${line}\n`);
  });

  it("is cut to the window", () => {
    take(tool("t", { input: { description: "word ".repeat(20) } }));
    expect(shown).toBe("opencode\n  word word word word word word w…  ✓  3.2 s\n");
  });

  it("of a command begins its line when it begins, and ends it", () => {
    take(tool("t", RUN, { status: "running", completed_at: null }));
    expect(shown).toBe("opencode\n  Run the tests");
    expect(since(() => take(tool("t", RUN)))).toBe("  ✓  3.2 s\n");
    take(tool("u", RUN, { status: "running", completed_at: null }));
    expect(since(() => take(tool("v", { kind: "read", title: "a" }), tool("u", RUN)))).toBe(
      "\n  Read a  ✓  3.2 s\n  Run the tests  ✓  3.2 s\n",
    );
  });

  it("of thinking is one quiet line", () => {
    talk = new Talk(screenWith(true));
    take(itemOf("t", { kind: "thought", ...text("Hm.") }));
    expect(shown).toContain(`  ${ESC}[2mThought for 3.2 s${ESC}[22m\n`);
    expect(shown).not.toContain("Hm.");
  });
});

describe("a chat at a terminal", () => {
  const request = itemOf("r", {
    kind: "request",
    status: "pending",
    request: { kind: "permission", title: "bash", patterns: ["git push"], questions: [] },
  }) as unknown as Item;
  const sent: unknown[] = [];
  const client = {
    call: (route: string, { payload }: { payload: unknown }) => {
      sent.push([route.split("/").at(-1), payload]);
      return Promise.resolve({ value: { message: { status: "sending" } } });
    },
  } as unknown as Client;

  it("writes nothing while a person types, and asks once her line was sent as the message that it is", async () => {
    const chat = new Chat({ client, input: {} as Input }, { pid: "p", sid: "s" }, talk);
    chat.take({ id: null, event: "item", data: JSON.stringify(open("a", "One two ")) });
    expect(since(() => expect(chat.typing("y", false)).toBe(true))).toBe(`${ESC}[1D${ESC}[K\n`);
    const meanwhile = since(() => {
      chat.take(deltaOf("a", 8, "three "));
      chat.take({ id: null, event: "item", data: JSON.stringify(request) });
      chat.typing("ye", false);
    });
    expect(meanwhile).toBe("");
    chat.typing("", true);
    await chat.hear("yes");
    expect(sent).toEqual([["messages", expect.objectContaining({ text: "yes" })]]);
    expect(shown).toBe(
      `opencode\nOne two${ESC}[1D${ESC}[K\n\nthree\n\n` +
        "The agent asks for permission: bash\n  git push\n" +
        "Answer y to allow it once, always to allow it from now on, or n to reject it. A reason may follow n.\n",
    );
  });

  it("goes on when what was typed is removed", () => {
    const chat = new Chat({ client, input: {} as Input }, { pid: "p", sid: "s" }, talk);
    chat.typing("y", false);
    chat.take({ id: null, event: "item", data: JSON.stringify(itemOf("a", text("One."))) });
    expect(since(() => void chat.typing("", false))).toBe("opencode\nOne.\n");
  });
});
