/** `platform sessions chat` and `answer` against the service, with a scripted agent. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CommandLine } from "../support/service/command-line.ts";
import {
  eventually,
  expectStatus,
  fields,
  makeProject,
  runSession,
  type Fields,
} from "../support/service/requests.ts";
import { startTestService, type TestService } from "../support/service/service.ts";
import { nativeItem } from "../support/world/conversations.ts";

let service: TestService;
let line: CommandLine;
let pid = "";
beforeAll(async () => {
  service = await startTestService();
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
const say = (sid: string, rev: number, kind: "permission" | "question") => {
  const questions = [
    {
      title: "Colour",
      text: "Which colour?",
      options: [{ label: "Blue", description: null }],
      multiple: false,
    },
  ];
  service.daemon.conversation.say(
    sid,
    {
      type: "item",
      item: nativeItem(kind, rev, {
        kind: "request",
        status: "running",
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
    expect(ended.stderr).toContain("error.log.no cannot be read (ENOENT)");
    const { items } = await conversationOf(sid);
    const said = (items as readonly Fields[]).map(({ content }) => content);
    expect(said).toContainEqual([
      { type: "text", text: "Why?" },
      expect.objectContaining({ type: "file", name: "error.log", media_type: "text/plain" }),
    ]);
    expect(said).toContainEqual([{ type: "text", text: "And now?" }]);
  });

  it("answers the agent's request with the line that fits it", async () => {
    const sid = await runSession(service, pid);
    say(sid, 1, "permission");
    const id = await asked(sid);
    const ended = await run(["sessions", "chat", sid], "reject Not on Fridays.\n");
    expect(ended.stdout).toContain("The agent asks for a permission: bash git push");
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
