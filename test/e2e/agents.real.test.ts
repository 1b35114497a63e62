/** A project whose agents have different runtimes: opencode, and a program that speaks the Agent Client Protocol (docs/use/agents.md). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LiveSession, POLL } from "../support/service/live-session.ts";
import { Installation, type Json, type Life } from "../support/service/process-service.ts";
import { useRunDatabase } from "../support/service/run-database.ts";
import { sandboxesStartHere } from "../support/requirements.ts";
import { TEST_MS } from "../support/patience.ts";

/** An agent that says in which mode it is and what it was told. */
const PROGRAM = `
let mode = "quick";
const send = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));
const RESULTS = {
  initialize: () => ({ protocolVersion: 1, agentCapabilities: {} }),
  "session/new": () => ({ sessionId: "s", modes: { currentModeId: mode, availableModes: [{ id: "quick" }, { id: "careful" }] } }),
  "session/set_mode": ({ modeId }) => { mode = modeId; return {}; },
  "session/prompt": ({ prompt }) => {
    const text = mode + ": " + prompt.map((block) => block.text).join(" | ");
    send({ method: "session/update", params: { sessionId: "s", update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } } } });
    return { stopReason: "end_turn" };
  },
};
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id !== undefined && method in RESULTS) send({ id, result: RESULTS[method](params) });
});
`;

const MANIFEST = `
[agents.planner]
mode = "plan"
permissions = "allow"
instructions = "platform.toml"

[agents.ours]
runtime = "acp"
command = ["node", "-e", '''${PROGRAM}''']
mode = "careful"
instructions = "platform.toml"

[[triggers]]
slug = "nightly"
type = "cron"
cron = "0 0 3 1 1 *"
agent = "ours"
prompt = "Look at it."
`;

let installation: Installation;
let life: Life;
let pid: string;

/** The texts of the agent's messages, once its first turn is over. */
const answerOf = async (path: string): Promise<string> => {
  const read = async () => (await life.call("GET", `${path}/conversation`)) as { items: readonly Json[] };
  const said = async () =>
    (await read()).items.filter(
      ({ kind, role, status }) => kind === "message" && role === "agent" && status === "completed",
    );
  await expect.poll(said, POLL).not.toEqual([]);
  return JSON.stringify(await said());
};

describe.runIf(sandboxesStartHere)("agents of one project with two runtimes", () => {
  const database = useRunDatabase();
  beforeAll(async () => {
    installation = await Installation.open();
    life = await installation.start(database());
    pid = await life.project(await installation.repository(MANIFEST));
  }, TEST_MS);
  afterAll(async () => {
    await life?.end("SIGTERM");
    await installation?.close();
  }, TEST_MS);

  it(
    "answer side by side, each as its table says",
    async () => {
      const [planner, ours] = await Promise.all(
        ["planner", "ours"].map((agent_name) =>
          LiveSession.startIn(life, pid, { agent_name, initial_prompt: "Say hello." }),
        ),
      );
      if (planner === undefined || ours === undefined) throw new Error("two sessions");
      const [ofOpencode, ofOurs] = await Promise.all([answerOf(planner.path), answerOf(ours.path)]);
      expect(ofOpencode).not.toContain("careful: ");
      expect(ofOurs).toMatch(/careful: \[agents\.planner\].* \| Say hello\./);

      const [own] = (await planner.call("GET", "runtime/session")) as unknown as readonly Json[];
      const messages = await planner.call("GET", `runtime/session/${String(own?.["id"])}/message`);
      expect((messages as unknown as readonly Json[])[0]).toMatchObject({
        info: { role: "user", agent: "plan" },
      });
      expect(await planner.call("GET", "runtime/config")).toMatchObject({
        instructions: ["/workspace/platform.toml"],
        permission: { bash: "allow", edit: "allow" },
      });
      await Promise.all([planner.stop(), ours.stop()]);
    },
    TEST_MS,
  );

  it(
    "are started by triggers that name them",
    async () => {
      const fire = await life.call("POST", `/v1/projects/${pid}/triggers/nightly/fire`, {});
      const path = `/v1/projects/${pid}/sessions/${String(fire["session_id"])}`;
      expect(await answerOf(path)).toContain("Look at it.");
      expect(await life.call("GET", path)).toMatchObject({ agent_name: "ours", trigger_slug: "nightly" });
      await life.call("POST", `${path}/stop`);
    },
    TEST_MS,
  );
});
