/**
 * The duties of an agent runtime behind the whole service, with its real program and a scripted model behind a provider of the account. A
 * runtime's record declares what it cannot do (`lacks`). That case must fail, so that a declaration does not outlive its reason.
 */
import { randomUUID } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { expect } from "vitest";
import { TOKENS } from "../../support/servers/model-wires.ts";
import { POLL } from "../../support/service/sessions/live-session.ts";
import type { Json } from "../../support/service/process-service.ts";
import { CLAUDE_BRANCH } from "../../support/service/sessions/runtime-installation.ts";
import { LIMIT_CASES } from "./runtime-limits.ts";
import { PEOPLE_CASES } from "./runtime-people.ts";
import { refused, type RuntimeCase, since, texts } from "./runtime-talk.ts";

/** The runtime of a session, and what it has started. */
const agentProcesses = (sessionId: string): readonly number[] =>
  readdirSync("/proc")
    .filter((pid) => /^\d+$/.test(pid))
    .map(Number)
    .filter((pid) => {
      try {
        const variables = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
        const isOfAgent = variables.some((one) => one.startsWith("AGENT_CONFIG_DIR="));
        return isOfAgent && variables.includes(`PLATFORM_SESSION_ID=${sessionId}`);
      } catch {
        return false;
      }
    });

const kill = (pid: number): void => {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended with the one before it.
  }
};

/** No other process of this machine has the number. */
const WAITING_NUMBER = `7.${process.pid}`;
/** It does not end by itself. Some runtimes refuse to sleep. */
const WAITING = `tail -s ${WAITING_NUMBER} -f /dev/null`;

/** The beginning of a text that stops after "It be". The last letters are held back when a secret of the session begins with them. */
const BEGUN = "It ";

/** Bright red, 8 by 8. */
const PICTURE =
  "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEklEQVR4nGP4z8CAFWEXHbQSACj/P8Fu7N9hAAAAAElFTkSuQmCC";

export const RUNTIME_CASES: readonly RuntimeCase[] = [
  {
    name: "shows thoughts, and a text that grows, in the order in which they came",
    ability: null,
    run: async ({ talk }) => {
      const items = await talk.turn([{ think: "I think so.", say: "Hello from the model." }]);
      expect(items.map(({ kind }) => kind)).toEqual(["thought", "message"]);
      expect([texts(items, "thought"), texts(items)]).toEqual([
        expect.stringContaining("I think so."),
        expect.stringContaining("Hello from the model."),
      ]);
    },
  },
  {
    name: "shows a text before it is whole",
    ability: null,
    run: async ({ place, talk }) => {
      const id = await talk.say([{ say: "It begins here, and ends there.", hold: true }]);
      const growing = async () => texts((await talk.of(id)).filter(({ status }) => status === "running"));
      await expect.poll(growing, POLL).toContain(BEGUN);
      expect(await growing()).not.toContain("ends there");
      place.model.goOn();
      expect(texts(await talk.over(id))).toContain("It begins here, and ends there.");
    },
  },
  {
    name: "shows what a sub-agent does below its call",
    ability: "subagents",
    run: async ({ talk }) => {
      const child = [{ run: "echo child-42" }, { say: "The child is done." }] as const;
      const items = await talk.turn([{ delegate: child }, { say: "I am done." }]);
      const inner = items.find(
        ({ kind, tool }) => kind === "tool" && JSON.stringify(tool).includes('echo child-42"'),
      );
      const outer = items.find(({ id }) => id === inner?.["parent_id"]);
      expect([inner?.status, outer?.kind, outer?.["parent_id"]]).toEqual(["completed", "tool", null]);
      expect(texts(items.filter((item) => item["parent_id"] === null))).toContain("I am done.");
    },
  },
  {
    name: "shows a tool call with its kind and its title",
    ability: null,
    run: async ({ talk }) => {
      const items = await talk.turn([{ say: "First.", run: "echo tool-42" }, { say: "Second." }]);
      const tool = items.find(({ kind }) => kind === "tool");
      expect(tool?.["tool"]).toMatchObject({
        kind: "execute",
        title: expect.stringContaining("echo tool-42") as string,
      });
      expect(tool?.status).toBe("completed");
      expect(texts(items)).toMatch(/First\..*Second\./);
    },
  },
  {
    name: "shows the output of a command",
    ability: "outputs",
    run: async ({ talk }) => {
      const items = await talk.turn([{ say: "First.", run: "echo tool-43" }, { say: "Second." }]);
      expect(items.find(({ kind }) => kind === "tool")?.["tool"]).toMatchObject({
        output: expect.stringContaining("tool-43") as string,
      });
    },
  },
  {
    name: "tells the exit code of a command",
    ability: "exit_codes",
    run: async ({ talk }) => {
      const items = await talk.turn([{ run: "exit 3" }, { say: "Second." }]);
      expect(items.find(({ kind }) => kind === "tool")?.["tool"]).toMatchObject({ exit_code: 3 });
    },
  },
  {
    name: "shows which file it has changed",
    ability: null,
    run: async ({ talk }) => {
      const items = await talk.turn([{ write: ["notes.txt", "written\n"] }, { say: "Second." }]);
      const changes = items.flatMap(
        ({ tool }) => ((tool as Json | null)?.["changes"] ?? []) as readonly Json[],
      );
      expect(changes).toContainEqual(expect.objectContaining({ path: "notes.txt" }));
    },
  },
  {
    name: "keeps the key of the provider out of the sandbox",
    ability: null,
    run: async ({ talk, place }) => {
      const before = place.model.calls.length;
      await talk.turn([{ run: "printenv" }, { say: "Second." }]);
      // The output of the command goes to the model in any case.
      const heard = JSON.stringify(since(place, before).map(({ text }) => text));
      expect(heard).toContain("PLATFORM_SESSION_ID");
      expect(heard).not.toContain(place.key);
    },
  },
  {
    name: "gets a message that waits once its turn is over",
    ability: null,
    run: async ({ talk }) => {
      const first = await talk.say([{ run: "timeout 3 tail -f /dev/null" }, { say: "The first." }]);
      await talk.tool(first);
      const second = await talk.say([{ say: "The second." }]);
      expect(texts(await talk.over(second))).toContain("The second.");
      expect(texts(await talk.of(first))).toContain("The first.");
    },
  },
  {
    name: "stops in the middle of a text, keeps what it wrote, and goes on",
    ability: null,
    run: async ({ talk }) => {
      const id = await talk.say([{ say: "It begins here.", hold: true }]);
      await expect.poll(async () => texts(await talk.of(id)), POLL).toContain(BEGUN);
      await talk.interrupt();
      const items = await talk.over(id);
      expect(texts(items)).toContain(BEGUN);
      expect(await talk.last()).toMatchObject({ state: "interrupted" });
      expect(texts(await talk.turn([{ say: "Still here." }]))).toContain("Still here.");
    },
  },
  {
    name: "stops in the middle of a command",
    ability: null,
    run: async ({ talk }) => {
      const id = await talk.say([{ run: WAITING }, { say: "Second." }]);
      await talk.tool(id);
      await talk.interrupt();
      await talk.over(id);
      expect(await talk.last()).toMatchObject({ state: "interrupted" });
      expect(texts(await talk.turn([{ say: "Still here." }]))).toContain("Still here.");
    },
  },
  {
    name: "ends the processes of a command that is stopped",
    ability: "stops_commands",
    run: async ({ place, talk }) => {
      const id = await talk.say([{ run: `touch begun.txt && ${WAITING}` }, { say: "Second." }]);
      const changes = async () => JSON.stringify(await talk.session.call("GET", "workspace/changes"));
      await expect.poll(changes, POLL).toContain("begun.txt");
      await talk.interrupt();
      await talk.over(id);
      const before = place.model.calls.length;
      // It looks from inside: under gVisor, its processes are not this kernel's. The look does not find itself.
      const look = `grep -l '${WAITING_NUMBER.replace(".", "[.]")}' /proc/[0-9]*/cmdline; printf looked-%s 42`;
      await talk.turn([{ run: look }, { say: "Still here." }]);
      const heard = since(place, before)
        .map(({ text }) => text)
        .join("\n");
      expect(heard).toContain("looked-42");
      expect(heard).not.toMatch(/\/proc\/\d+\/cmdline/);
    },
  },
  {
    name: "ends a turn whose command leaves a process behind",
    ability: null,
    run: async ({ talk }) => {
      const items = await talk.turn([{ run: "setsid sleep 7109 & echo left-42" }, { say: "Second." }]);
      expect(texts(items)).toContain("Second.");
    },
  },
  {
    name: "goes on after its process was killed, and knows what was said",
    ability: null,
    seesProcesses: true,
    run: async (conversation) => {
      const { place, start, subject } = conversation;
      const talk = await start({ agent_name: `${subject.name}-allow` });
      await talk.turn([{ say: "The word is heron." }]);
      const id = await talk.say([{ say: "It begins here.", hold: true }]);
      await expect.poll(async () => texts(await talk.of(id)), POLL).toContain(BEGUN);
      const before = place.model.calls.length;
      for (const pid of agentProcesses(talk.session.path.split("/").at(-1) ?? "")) kill(pid);
      await talk.over(id);
      expect(texts(await talk.turn([{ say: "Back again." }]))).toContain("Back again.");
      expect(JSON.stringify(since(place, before))).toContain("heron");
    },
  },
  {
    name: "goes on in a fresh sandbox with its own conversation",
    ability: null,
    run: async ({ place, start, subject }) => {
      const talk = await start({ agent_name: `${subject.name}-allow` });
      const status = async () => (await place.life.call("GET", talk.session.path))["status"];
      const words = ["bittern", "crake"];
      for (const [at, word] of words.entries()) {
        await talk.turn([{ say: `The word is ${word}.` }]);
        await talk.session.stop();
        await place.life.call("POST", `${talk.session.path}/restart`, { restore_saved: true });
        await expect.poll(status, POLL).toBe("running");
        const before = place.model.calls.length;
        const shown = (await talk.items()).length;
        expect(texts(await talk.turn([{ say: "Back again." }]))).toContain("Back again.");
        const heard = JSON.stringify(since(place, before));
        expect(words.slice(0, at + 1).filter((one) => !heard.includes(one))).toEqual([]);
        expect(heard).not.toContain("Below is a summary");
        // Nothing is shown a second time.
        const items = await talk.items();
        expect(JSON.stringify(items.slice(shown))).not.toContain(word);
        const note = items.findLast(({ kind }) => kind === "note");
        expect(JSON.stringify(note)).toContain("has the whole conversation");
      }
    },
  },
  {
    name: "names a refused key",
    ability: null,
    run: async ({ start, subject: { name, provider } }) => {
      const talk = await start({ agent_name: `${name}-allow`, agent_model: `bad-${provider}/talking` });
      await talk.turn([{ say: "Never." }]);
      expect(await talk.last()).toMatchObject({ state: "failed", error: { code: "model_unauthorized" } });
    },
  },
  {
    name: "names a provider that wants money",
    ability: null,
    run: (conversation) => refused(conversation, 402, { code: "model_out_of_credit" }),
  },
  {
    name: "names a provider that limits the rate",
    ability: null,
    run: (conversation) => refused(conversation, 429, { code: "model_rate_limited" }),
  },
  {
    name: "names a provider that fails",
    ability: null,
    run: (conversation) => refused(conversation, 500, { code: "model_unavailable" }),
  },
  {
    name: "names a model that the provider does not have",
    ability: null,
    run: (conversation) => refused(conversation, 404, { code: "unknown_model", words: null }),
  },
  {
    name: "goes on with the model of the next agent when its own refuses",
    ability: "model_changes",
    run: async ({ start, subject }) => {
      const talk = await start({ agent_name: `${subject.name}-falls` });
      const items = await talk.turn([{ say: "I stand in." }]);
      expect(texts(items)).toContain("I stand in.");
      expect(await talk.last()).toMatchObject({ state: "completed" });
      expect(texts(await talk.items(), "note")).toContain(`${subject.name}-allow`);
    },
  },
  {
    name: "has each call counted to the token",
    ability: null,
    run: async ({ place, start, subject: { name, provider } }) => {
      const before = place.model.calls.length;
      const talk = await start({ agent_name: `${name}-allow` });
      const items = await talk.turn([{ run: "echo counted" }, { say: "Second." }]);
      const used = async () =>
        ((await talk.session.call("GET", "model-usage"))["models"] as readonly Json[]).reduce<number>(
          (sum, model) => sum + Number(model["input_tokens"]),
          0,
        );
      await expect.poll(used, POLL).toBe(since(place, before).length * TOKENS.input);
      const models = (await talk.session.call("GET", "model-usage"))["models"];
      expect(models).toContainEqual(expect.objectContaining({ model: `${provider}/talking` }));
      expect(items.flatMap(({ usage }) => (usage as Json | null) ?? [])).not.toEqual([]);
    },
  },
  {
    name: "offers the model the platform's tools",
    ability: null,
    run: async ({ place, talk }) => {
      await talk.turn([{ say: "Here." }]);
      const { tools = [] } = place.model.calls.findLast((call) => call.tools.length > 0) ?? {};
      const names = tools.map(({ name, namespace = "" }) => `${namespace} ${name}`);
      expect(names.join(" ")).toMatch(/platform[-_]executor/);
    },
  },
  {
    name: "reads AGENTS.md and the instructions of its table",
    ability: null,
    run: async ({ place, start, subject }) => {
      const before = place.model.calls.length;
      const talk = await start({ agent_name: `${subject.name}-allow` });
      await talk.turn([{ say: "Here." }]);
      const heard = since(place, before)
        .map(({ text }) => text)
        .join("\n");
      expect([heard.includes("INSTRUCTIONS-OF-THE-TABLE"), heard.includes("WORDS-OF-AGENTS-MD")]).toEqual([
        true,
        true,
      ]);
    },
  },
  {
    name: "reads CLAUDE.md where there is no AGENTS.md",
    ability: null,
    run: async ({ place, start, subject }) => {
      const before = place.model.calls.length;
      const talk = await start({ agent_name: `${subject.name}-allow`, base_ref: CLAUDE_BRANCH });
      await talk.turn([{ say: "Here." }]);
      const heard = since(place, before).map(({ text }) => text);
      expect(heard.join("\n")).toContain("WORDS-OF-CLAUDE-MD");
    },
  },
  {
    name: "changes the model in the middle",
    ability: "model_changes",
    run: async ({ place, talk, subject: { provider } }) => {
      await talk.turn([{ say: "The second one." }], { model: `${provider}/second` });
      expect(place.model.calls.findLast((call) => call.tools.length > 0)?.model).toBe("second");
      await talk.turn([{ say: "The first one." }], { model: `${provider}/talking` });
      expect(place.model.calls.findLast((call) => call.tools.length > 0)?.model).toBe("talking");
    },
  },
  {
    name: "changes the effort in the middle",
    ability: "effort_changes",
    run: async ({ place, talk }) => {
      const asked = () => place.model.calls.findLast((call) => call.tools.length > 0)?.text ?? "";
      for (const effort of ["high", "low"]) {
        await talk.turn([{ say: "It thinks." }], { effort });
        expect(asked()).toMatch(new RegExp(`effort":"${effort}"`));
      }
      // It stays.
      await talk.turn([{ say: "It thinks." }]);
      expect(asked()).toMatch(/effort":"low"/);
    },
  },
  {
    name: "gives the model a picture",
    ability: null,
    run: async ({ place, talk }) => {
      const { url, headers } = talk.session.address("attachments?name=red.png");
      const body = Buffer.from(PICTURE, "base64");
      const sent = await fetch(url, {
        method: "POST",
        body,
        headers: { ...headers, "content-type": "image/png" },
      });
      const { id } = (await sent.json()) as Json;
      const before = place.model.calls.length;
      await talk.turn([{ say: "I see it." }], { attachments: [id] });
      expect(since(place, before).some(({ text }) => text.includes(PICTURE.slice(0, 40)))).toBe(true);
    },
  },
  {
    name: "lists its commands, and carries out one of the project",
    ability: "commands",
    run: async ({ place, start, subject }) => {
      const talk = await start({ agent_name: `${subject.name}-allow` });
      const names = async () =>
        (((await talk.session.call("GET", "models"))["commands"] ?? []) as readonly Json[]).map(
          ({ name }) => name,
        );
      await expect.poll(names, POLL).toContain("greet");
      const before = place.model.calls.length;
      const id = randomUUID();
      await talk.session.call("POST", "messages", { id, text: "/greet heron" });
      await talk.over(id);
      expect(JSON.stringify(since(place, before))).toContain("WORDS-OF-THE-COMMAND for heron");
      // People see what they wrote.
      const own = (await talk.items()).filter(({ role }) => role === "user");
      expect(own.map(({ content }) => content)).toEqual([[{ type: "text", text: "/greet heron" }]]);
    },
  },
  {
    name: "lists its modes",
    ability: null,
    run: async ({ talk }) => {
      const { agents } = await talk.session.call("GET", "models");
      expect((agents as readonly Json[]).length).toBeGreaterThan(1);
    },
  },
  ...PEOPLE_CASES,
  ...LIMIT_CASES,
];
