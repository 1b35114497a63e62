/** `platform sessions chat` and `answer` against the service, with a scripted agent. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Question } from "../../src/domain/conversation/conversation.ts";
import { CommandLine } from "../support/service/command-line.ts";
import {
  eventually,
  expectStatus,
  fields,
  makeProject,
  runSession,
  type Fields,
} from "../support/service/requests.ts";
import type { TestService } from "../support/service/service.ts";
import { shareService } from "../support/service/shared.ts";
import { nativeItem, nativeTool } from "../support/world/conversations.ts";

let service: TestService;
let line: CommandLine;
let pid = "";
beforeAll(async () => {
  service = await shareService();
  line = await CommandLine.make();
  pid = await makeProject(service);
});
afterAll(async () => {
  await service?.close();
  line?.remove();
});

const run = (args: readonly string[], input = "") =>
  line.run(args, {
    input,
    env: {
      PLATFORM_API_URL: `${service.url}/v1`,
      PLATFORM_CLI_TOKEN: service.token,
      PLATFORM_PROJECT_ID: pid,
    },
  });
const conversationOf = async (sid: string) =>
  fields(expectStatus(await service.request("GET", `/v1/projects/${pid}/sessions/${sid}/conversation`), 200));
const option = (label: string, description: string | null = null) => ({ label, description });
const COLOUR: Question = {
  title: "Colour",
  text: "Which colour?",
  options: [option("Blue"), option("Red", "as a rose")],
  multiple: false,
};
const say = (
  sid: string,
  rev: number,
  kind: "permission" | "question",
  questions: readonly Question[] = [COLOUR],
) => {
  service.daemon.conversation.say(
    sid,
    {
      type: "item",
      item: nativeItem(kind, rev, {
        kind: "request",
        status: "pending",
        content: [],
        completed_at: null,
        request: {
          kind,
          title: "bash",
          patterns: ["git push"],
          questions: kind === "question" ? questions : [],
        },
      }),
    },
    { type: "turn", turn: { state: "requires_action", waiting_for: kind }, ended: 0, rev: rev + 1 },
  );
};
const asked = async (sid: string) =>
  await eventually(async () => {
    const [request] = (await conversationOf(sid))["requests"] as readonly Fields[];
    expect(request).toBeDefined();
    return String(request?.["id"]);
  });

const answered = async (answer: unknown, request_id = "permission") =>
  await eventually(() => expect(service.daemon.steering.answered).toContainEqual({ request_id, answer }));

/** The agent's turn has ended with a plan. */
const propose = async (sid: string) => {
  const modes = ["build", "careful"].map((mode) => ({ id: mode, name: mode }));
  const request = { kind: "plan" as const, title: "", patterns: [], questions: [] };
  const plan = { ...request, plan: { text: "1. Write a.\n2. Test it.", modes } };
  const open = { kind: "request" as const, status: "pending" as const, content: [], completed_at: null };
  service.daemon.conversation.say(
    sid,
    { type: "item", item: nativeItem("plan", 1, { ...open, request: plan }) },
    {
      type: "turn",
      turn: { state: "requires_action", waiting_for: "plan", rests: true },
      ended: 1,
      rev: 2,
    },
  );
  await asked(sid);
};

describe("a chat", () => {
  it("sends each line as a message, and shows what was said before", async () => {
    const sid = await runSession(service, pid, { initial_prompt: "Begin." });
    service.daemon.conversation.say(sid, { type: "item", item: nativeItem("m1", 1) });
    await eventually(async () => expect((await conversationOf(sid))["items"]).toHaveLength(2));
    const ended = await run(["sessions", "chat", sid], "Add a test.\n\nAnd a second one.\n");
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    expect(ended.stdout).toContain("text of m1 at 1");
    const { queue } = await conversationOf(sid);
    expect((queue as readonly Fields[]).map(({ content }) => content)).toEqual(
      expect.arrayContaining([
        [{ type: "text", text: "Add a test." }],
        [{ type: "text", text: "And a second one." }],
      ]),
    );
  });

  it("attaches files to the next message, and says which file it cannot read", async () => {
    const sid = await runSession(service, pid);
    const directory = mkdtempSync(join(tmpdir(), "chat-"));
    const path = join(directory, "error.log");
    writeFileSync(path, "it failed");
    const lines = [`/attach ${path}`, `/attach ${path}.no`, "Why?", "And now?"];
    const ended = await run(["sessions", "chat", sid], `${lines.join("\n")}\n`);
    rmSync(directory, { recursive: true });
    expect(ended.stdout).toContain("(The next message has this file.)");
    expect(ended.stderr).toContain("error.log.no of /attach cannot be read: it does not exist.");
    const { items } = await conversationOf(sid);
    const said = (items as readonly Fields[]).map(({ content }) => content);
    expect(said).toContainEqual([
      { type: "text", text: "Why?" },
      expect.objectContaining({ type: "file", name: "error.log", media_type: "text/plain" }),
    ]);
    expect(said).toContainEqual([{ type: "text", text: "And now?" }]);
  });

  it("shows a plan, and approves it with y", async () => {
    const sid = await runSession(service, pid);
    await propose(sid);
    const ended = await run(["sessions", "chat", sid], "y\n");
    // The message that follows an approval may come before the chat has ended, or not.
    expect(ended.stdout).toMatch(
      /^The agent proposes a plan:\n {2}1\. Write a\.\n {2}2\. Test it\.\nAnswer y to approve it\. Any other line asks for another plan\.\n/,
    );
    await answered({ approve: true, mode: "build" }, "plan");
  });

  it("asks for another plan with any other line", async () => {
    const sid = await runSession(service, pid);
    await propose(sid);
    expect((await run(["sessions", "chat", sid], "Leave the tests.\n")).code).toBe(0);
    await answered({ declined: "message" }, "plan");
  });

  it("is not needed to approve a plan", async () => {
    const sid = await runSession(service, pid);
    const missing = await run(["sessions", "approve-plan", sid]);
    expect([missing.code, missing.stderr]).toEqual([5, "No plan of this session waits for approval.\n"]);
    await propose(sid);
    const ended = await run(["sessions", "approve-plan", sid, "--mode", "careful"]);
    expect(ended).toMatchObject({ code: 0, stdout: "The plan is approved.\n" });
    await answered({ approve: true, mode: "careful" }, "plan");
  });

  it("answers the agent's request with the line that fits it", async () => {
    const sid = await runSession(service, pid);
    say(sid, 1, "permission");
    const id = await asked(sid);
    const ended = await run(["sessions", "chat", sid], "reject Not on Fridays.\n");
    expect(ended.stdout).toBe(
      "The agent asks for permission: bash\n  git push\n" +
        "Answer y to allow it once, always to allow it from now on, or n to reject it. A reason may follow n.\n",
    );
    await eventually(() =>
      expect(service.daemon.steering.answered).toContainEqual({
        request_id: "permission",
        answer: { choice: "reject", message: "Not on Fridays." },
      }),
    );
    const again = await run(["sessions", "answer", sid, id, "--choice", "once"]);
    expect([again.code, again.stderr]).toEqual([
      5,
      expect.stringContaining("The request is settled already"),
    ]);
  });

  it("shows the whole command for which the agent asks, and understands y", async () => {
    const sid = await runSession(service, pid);
    const command = "git push && rm -f a > /workspace/README.md";
    const { tool, ...others } = nativeTool("t1", 1, "");
    if (tool === null) throw new Error("The item is a call of a tool.");
    service.daemon.conversation.say(sid, {
      type: "item",
      item: { ...others, status: "running", tool: { ...tool, input: { command } } },
    });
    say(sid, 2, "permission");
    await asked(sid);
    const ended = await run(["sessions", "chat", sid], "y\n");
    expect(ended.stdout).toContain(`  Command: ${command}\n  Needs permission: git push\n`);
    await answered({ choice: "once", message: null });
  });

  it("does not send a line that answers nothing, and says which words do", async () => {
    const sid = await runSession(service, pid);
    say(sid, 1, "permission");
    await asked(sid);
    const ended = await run(["sessions", "chat", sid], "please also update the readme\n");
    expect(ended.stdout).toContain("(Not sent, because the agent waits for an answer. Answer y ");
    const { items, queue, requests } = await conversationOf(sid);
    expect(queue).toEqual([]);
    expect(requests).toHaveLength(1);
    expect(JSON.stringify(items)).not.toContain("readme");
  });

  it("shows the options of each question, and takes numbers, texts and own words", async () => {
    const sid = await runSession(service, pid);
    const sizes: Question = {
      title: "",
      text: "Which sizes?",
      options: ["Small", "Large"].map((label) => option(label)),
      multiple: true,
    };
    const name: Question = { title: "", text: "Which name?", options: [], multiple: false };
    say(sid, 1, "question", [COLOUR, sizes, COLOUR, name]);
    await asked(sid);
    const lines = ["Green", "2", "large, 1", "/answer Green", "Ada's", "And now a message."];
    const ended = await run(["sessions", "chat", sid], `${lines.join("\n")}\n`);
    expect(ended.stdout).toContain(
      "The agent asks (1 of 4): Which colour?\n  1. Blue\n  2. Red: as a rose\n" +
        "Answer with a number or an option, or with `/answer TEXT` in your own words.\n(Not sent, ",
    );
    expect(ended.stdout).toContain("Several options may be chosen.\nAnswer with numbers or options");
    await answered({ answers: [["Red"], ["Large", "Small"], ["Green"], ["Ada's"]] }, "question");
    const { queue } = await conversationOf(sid);
    expect((queue as readonly Fields[]).map(({ content }) => content)).toEqual([
      [{ type: "text", text: "And now a message." }],
    ]);
  });

  it("is refused for a session that does not exist", async () => {
    const ended = await run(["sessions", "chat", "0190f3b2-0000-7000-8000-00000000dead"], "Hello.\n");
    expect(ended.stderr).toContain("Session not found.");
    expect(ended.code).not.toBe(0);
  });
});

describe("an answer", () => {
  it("is a choice, a text, or a list of lists", async () => {
    const sid = await runSession(service, pid);
    say(sid, 1, "question");
    const id = await asked(sid);
    const wrong = [[], ["--choice", "maybe"], ["--choice", "once", "--text", "x"], ["--answers", "Blue"]];
    for (const options of wrong) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const ended = await run(["sessions", "answer", sid, id, ...options]);
      expect([options, ended.code]).toEqual([options, 2]);
    }
    const ended = await run(["sessions", "answer", sid, id, "--text", "Blue"]);
    expect(ended).toMatchObject({ code: 0, stdout: `${id} answered\n` });
    await eventually(() =>
      expect(service.daemon.steering.answered).toContainEqual({
        request_id: "question",
        answer: { answers: [["Blue"]] },
      }),
    );
  });
});
