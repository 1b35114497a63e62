/** A project whose agents have different runtimes: opencode, and a program that speaks the Agent Client Protocol (docs/use/agents.md). */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PLAN_APPROVED } from "../../../src/domain/conversation/steering.ts";
import { LiveSession, POLL } from "../../support/service/sessions/live-session.ts";
import { Installation, type Json, type Life } from "../../support/service/process-service.ts";
import { useRunDatabase } from "../../support/service/run-database.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { TEST_MS } from "../../support/patience.ts";

/** An agent that says in which mode it is and what it was told. */
const PROGRAM = `
let mode = "quick";
const send = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));
const RESULTS = {
  initialize: () => ({ protocolVersion: 1, agentCapabilities: {} }),
  "session/new": () => ({ sessionId: "s", modes: { currentModeId: mode, availableModes: [{ id: "quick" }, { id: "careful" }, { id: "plan" }] } }),
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

[agents.slow]
runtime = "acp"
command = ["node", "-e", '''${PROGRAM}''']
mode = "plan"

[[triggers]]
slug = "planned"
type = "cron"
cron = "0 0 4 1 1 *"
agent = "slow"
prompt = "Tidy up."

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

/** The plan that a session waits with. */
const planOf = async (path: string): Promise<Json> => {
  const requests = async () =>
    (await life.call("GET", `${path}/conversation`))["requests"] as readonly Json[];
  await expect.poll(requests, POLL).toMatchObject([{ request: { kind: "plan" } }]);
  // The end of the turn may come after the plan.
  await expect
    .poll(() => life.call("GET", path), POLL)
    .toMatchObject({
      activity: "needs_you",
      waits_for: { kind: "plan" },
      turn: { state: "requires_action" },
      last_turn: { state: "completed" },
    });
  return (await requests())[0] ?? {};
};

/** Approves a plan, and waits until the agent has carried it out. @returns its items, the newest first */
const carriedOut = async (path: string, { id }: Json): Promise<readonly Json[]> => {
  const approved = { approve: true };
  expect(await life.call("POST", `${path}/requests/${String(id)}/answer`, approved)).toMatchObject({
    request: { answer: { approve: true, by: { name: "admin" } } },
  });
  const page = async () =>
    (await life.call("GET", `${path}/conversation`)) as { items: readonly Json[]; state: Json };
  const stands = async () => {
    const { items, state } = await page();
    return [state["state"], items[0]?.["role"], items[0]?.["status"]];
  };
  await expect.poll(stands, POLL).toEqual(["idle", "agent", "completed"]);
  return (await page()).items;
};

describe.runIf(sandboxesStartHere)("agents of one project with two runtimes", () => {
  /** The one of opencode. Its plan waits for the second test: a start of opencode takes seconds. */
  let planner: LiveSession;
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
      const [planning, ours] = await Promise.all(
        ["planner", "ours"].map((agent_name) =>
          LiveSession.startIn(life, pid, { agent_name, initial_prompt: "Say hello." }),
        ),
      );
      if (planning === undefined || ours === undefined) throw new Error("two sessions");
      planner = planning;
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
      await ours.stop();
    },
    TEST_MS,
  );

  it(
    "plan first, and work after a person's approval",
    async () => {
      const { path } = planner;
      const plan = await planOf(path);
      expect(plan).toMatchObject({ request: { plan: { modes: [{ id: "build", name: "build" }] } } });
      const items = await carriedOut(path, plan);
      expect(items.find(({ role }) => role === "user")).toMatchObject({
        author: { name: "admin" },
        agent: "build",
        status: "accepted",
        content: [{ text: PLAN_APPROVED }],
      });
      const [own] = (await planner.call("GET", "runtime/session")) as unknown as readonly Json[];
      const messages = await planner.call("GET", `runtime/session/${String(own?.["id"])}/message`);
      const asked = (messages as unknown as readonly { info: Json }[]).filter(
        ({ info }) => info["role"] === "user",
      );
      expect(asked.map(({ info }) => info["agent"])).toEqual(["plan", "build"]);
      await planner.stop();
    },
    TEST_MS,
  );

  it(
    "wait for a person with the plan of a trigger's session, and plan again after a message",
    async () => {
      const fire = await life.call("POST", `/v1/projects/${pid}/triggers/planned/fire`, {});
      const path = `/v1/projects/${pid}/sessions/${String(fire["session_id"])}`;
      const first = await planOf(path);
      expect(first).toMatchObject({
        request: { plan: { text: "plan: Tidy up.", modes: [{ id: "quick" }, { id: "careful" }] } },
      });
      await life.call("POST", `${path}/messages`, { id: randomUUID(), text: "Leave the tests." });
      const texts = async () =>
        ((await life.call("GET", `${path}/conversation`))["requests"] as readonly Json[]).map(
          ({ request }) => (request as { plan: Json }).plan["text"],
        );
      await expect.poll(texts, POLL).toEqual(["plan: Leave the tests."]);
      const [newest] = await carriedOut(path, await planOf(path));
      expect(newest).toMatchObject({ content: [{ text: `quick: ${PLAN_APPROVED}` }] });
      await life.call("POST", `${path}/stop`);
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
