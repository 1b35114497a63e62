/** A turn whose model refuses goes on with that of the next agent (docs/use/agents.md), in opencode and in a program of the Agent Client Protocol. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TEST_MS } from "../../support/patience.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { ModelStub } from "../../support/servers/model-stub.ts";
import { LiveSession, POLL } from "../../support/service/sessions/live-session.ts";
import { Installation, type Json, type Life } from "../../support/service/process-service.ts";
import { useRunDatabase } from "../../support/service/run-database.ts";

/** An agent that has two models. One of them wants money. */
const PROGRAM = `
let model = "ok";
const send = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));
const models = { currentModelId: model, availableModels: [{ modelId: "broke" }, { modelId: "ok" }] };
const RESULTS = {
  initialize: () => ({ protocolVersion: 1, agentCapabilities: {} }),
  "session/new": () => ({ sessionId: "s", models }),
  "session/set_model": ({ modelId }) => { model = modelId; return {}; },
  "session/prompt": () => {
    const content = { type: "text", text: "an answer" };
    send({ method: "session/update", params: { sessionId: "s", update: { sessionUpdate: "agent_message_chunk", content } } });
    return { stopReason: "end_turn" };
  },
};
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined || !(method in RESULTS)) return;
  if (method === "session/prompt" && model === "broke") send({ id, error: { code: 402, message: "Payment required, says the provider" } });
  else send({ id, result: RESULTS[method](params) });
});
`;

const MANIFEST = `
[agents.opencode-first]
model = "acme/broke"
fallback = ["opencode-second"]

[agents.opencode-second]
model = "acme/ok"

[agents.acp-first]
runtime = "acp"
command = ["node", "-e", '''${PROGRAM}''']
model = "broke"
fallback = ["acp-second"]

[agents.acp-second]
runtime = "acp"
command = ["node", "-e", '''${PROGRAM}''']
model = "ok"
`;

describe.runIf(sandboxesStartHere)("a turn whose model refuses", () => {
  const database = useRunDatabase();
  const model = new ModelStub();
  let installation: Installation;
  let life: Life;
  let pid: string;
  beforeAll(async () => {
    installation = await Installation.open();
    life = await installation.start({
      ...database(),
      PLATFORM_LLM_TIERS: "[]",
      PLATFORM_CONNECTOR_ALLOW_HOSTS: "127.0.0.1",
    });
    await life.call("POST", "/v1/model-providers", {
      name: "acme",
      kind: "openai-compatible",
      base_url: await model.start(),
      key: "key",
      models: ["broke", "ok"],
      try: false,
    });
    pid = await life.project(await installation.repository(MANIFEST));
  }, TEST_MS);
  afterAll(async () => {
    model.stop();
    await life?.end("SIGTERM");
    await installation?.close();
  }, TEST_MS);

  it.each([
    ["opencode", "acme/broke"],
    ["acp", "broke"],
  ])("goes on with the model of the next agent in %s, which stays", async (name, refused) => {
    const prompt = { agent_name: `${name}-first`, initial_prompt: "Say hello." };
    const session = await LiveSession.startIn(life, pid, prompt);
    const items = async (): Promise<readonly Json[]> => {
      const page = (await session.call("GET", "conversation")) as { items: readonly Json[] };
      return page.items.toReversed();
    };
    const shown = async () =>
      (await items())
        .filter(({ kind }) => kind === "message" || kind === "note")
        .map(({ kind, role, status, content }) => {
          const [{ text = "" } = {}] = content as readonly { text?: string }[];
          return [kind, role, status, text.slice(0, 60)].join(" ");
        });
    const answered = [
      "message user accepted Say hello.",
      expect.stringMatching(`^note  completed ${refused} refused \\(out of credit`) as string,
      "message agent completed an answer",
    ];
    await expect.poll(shown, POLL).toEqual(answered);
    const turn = async () => (await life.call("GET", session.path))["last_turn"];
    await expect.poll(turn, POLL).toMatchObject({ state: "completed" });
    await session.call("POST", "messages", { id: randomUUID(), text: "And again." });
    await expect
      .poll(shown, POLL)
      .toEqual([...answered, "message user accepted And again.", "message agent completed an answer"]);
    await session.stop();
  });
});
