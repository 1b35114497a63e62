/** A session whose agent runtime speaks the Agent Client Protocol (PLATFORM_AGENT_ADAPTER=acp), through the whole service. */
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commitToSample, LiveSession, POLL } from "../../support/service/sessions/live-session.ts";
import { Installation, type Json, type Life } from "../../support/service/process-service.ts";
import { useRunDatabase } from "../../support/service/run-database.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { TEST_MS } from "../../support/patience.ts";
import { deepTest } from "../../support/vitest/rings.ts";

const PROMPT = "run: echo asked at first";

let installation: Installation;
let life: Life;
let session: LiveSession;

const items = async (): Promise<readonly Json[]> =>
  ((await session.call("GET", "conversation")) as unknown as { items: readonly Json[] }).items.toReversed();

const requests = async (): Promise<readonly Json[]> =>
  ((await session.call("GET", "conversation")) as unknown as { requests: readonly Json[] }).requests;

const notes = async (): Promise<string> =>
  JSON.stringify((await items()).filter(({ kind }) => kind === "note"));

/** The request that the agent waits for. */
const asked = async (): Promise<string> => {
  await expect.poll(requests, POLL).toHaveLength(1);
  return String((await requests())[0]?.["id"]);
};

const agentItems = async (turn: string | undefined): Promise<readonly Json[]> =>
  (await items()).filter((item) => item["turn_id"] === turn && item["role"] === "agent");

describe.runIf(sandboxesStartHere)("opencode behind the Agent Client Protocol", () => {
  const database = useRunDatabase();
  beforeAll(async () => {
    installation = await Installation.open();
    const config = path.join(installation.directory, "opencode.json");
    writeFileSync(config, JSON.stringify({ permission: { bash: "ask" } }));
    commitToSample(installation, { "opencode.json": config });
    life = await installation.start({ ...database(), PLATFORM_AGENT_ADAPTER: "acp" });
    session = await LiveSession.start(life, installation, { initial_prompt: PROMPT });
  }, TEST_MS);
  afterAll(async () => {
    try {
      await session?.stop();
    } finally {
      await life?.end("SIGTERM");
      await installation?.close();
    }
  }, TEST_MS);

  it("asks a person before the prompt's command, and shows prompt, request, tool and answer", async () => {
    const request = await asked();
    await session.call("POST", `requests/${request}/answer`, { choice: "once" });
    const state = async () => (await session.call("GET", "conversation"))["state"];
    await expect.poll(state, POLL).toMatchObject({ state: "idle" });
    const own = (await items()).filter(({ kind }) => kind !== "thought");
    expect(own).toMatchObject([
      { kind: "message", role: "user", status: "accepted", content: [{ type: "text", text: PROMPT }] },
      {
        kind: "tool",
        status: "completed",
        tool: { kind: "execute", output: expect.stringContaining("asked at first\n") as string },
      },
      { kind: "request", status: "completed", request: { kind: "permission" } },
      { kind: "message", role: "agent", status: "completed" },
    ]);
  });

  it("gives the agent a person's message, and does not run what the person rejects", async () => {
    const id = randomUUID();
    await session.call("POST", "messages", { id, text: "run: echo never" });
    const request = await asked();
    await session.call("POST", `requests/${request}/answer`, { choice: "reject" });
    const tool = async () => (await agentItems(id)).find(({ kind }) => kind === "tool");
    await expect.poll(async () => (await tool())?.["status"], POLL).toBe("failed");
    expect(JSON.stringify((await tool())?.["tool"])).not.toContain("never\\n");
    const { models } = await session.call("GET", "models");
    expect(models).not.toEqual([]);
  });

  deepTest(
    "ends a process that holds a command's output, although its daemon may not look into it",
    async () => {
      const id = randomUUID();
      await session.call("POST", "messages", { id, text: "run: setsid sleep 7103 & echo left" });
      await session.call("POST", `requests/${await asked()}/answer`, { choice: "once" });
      await expect.poll(notes, POLL).toContain("the process sleep (");
      const tool = async () => (await agentItems(id)).find(({ kind }) => kind === "tool");
      await expect.poll(async () => (await tool())?.["status"], POLL).toBe("completed");
    },
  );

  deepTest("says that the runtime has no HTTP API", async () => {
    const { url, headers } = session.address("runtime/session");
    // oxlint-disable-next-line no-restricted-globals -- an answer that is no success
    const answer = await fetch(url, { headers });
    expect([answer.status, await answer.json()]).toMatchObject([
      409,
      { code: "not_supported", error: expect.stringContaining("no HTTP API") as string },
    ]);
  });

  deepTest("goes on after a restart with a summary, which the conversation names", async () => {
    await session.call("POST", "stop");
    const id = randomUUID();
    await session.call("POST", "messages", { id, text: "What was said?" });
    await expect.poll(async () => JSON.stringify(await agentItems(id)), POLL).toContain('"completed"');
    expect(await notes()).toContain("has a summary of the conversation");
    expect((await items()).find((item) => item["id"] === id)).toMatchObject({ status: "accepted" });
  });
});
