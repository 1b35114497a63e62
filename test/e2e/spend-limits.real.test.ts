/** A limit of spend, with the real service, a real sandbox and the real opencode. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ScriptedModel, startScriptedModel } from "../../demo/scripted-model.ts";
import { TEST_MS } from "../support/patience.ts";
import { sandboxesStartHere } from "../support/requirements.ts";
import { LiveSession, POLL } from "../support/service/live-session.ts";
import { Installation, type Json, type Life } from "../support/service/process-service.ts";
import { useRunDatabase } from "../support/service/run-database.ts";

describe.runIf(sandboxesStartHere)("a limit of spend", () => {
  const database = useRunDatabase();
  let model: ScriptedModel;
  let installation: Installation;
  let life: Life;
  let session: LiveSession;

  beforeAll(async () => {
    model = await startScriptedModel();
    installation = await Installation.open();
    life = await installation.start({
      ...database(),
      PLATFORM_LLM_TIERS: "[]",
      PLATFORM_CONNECTOR_ALLOW_HOSTS: "127.0.0.1",
    });
    const { models } = await life.call("POST", "/v1/model-providers", {
      name: "acme",
      kind: "openai-compatible",
      base_url: model.url,
      key: "",
    });
    // A call costs $0.048.
    const { model_providers: providers } = (await life.call("GET", "/v1/model-providers")) as unknown as {
      readonly model_providers: readonly { readonly id: string }[];
    };
    const [name = ""] = models as readonly string[];
    await life.call("PATCH", `/v1/model-providers/${providers[0]?.id}`, {
      prices: { [name]: { input: 1000, cached: 1000, output: 1000 } },
    });
    await life.call("PUT", "/v1/spend-limits", { scope: "each_session", usd: 0.02 });
    session = await LiveSession.start(life, installation, { initial_prompt: "run: echo one" });
  }, TEST_MS);
  afterAll(async () => {
    await session?.stop();
    await life?.end("SIGTERM");
    await installation?.close();
    await model?.close();
  }, TEST_MS);

  const said = async () => JSON.stringify(await session.call("GET", "conversation"));
  const lastTurn = async () => {
    const { last_turn: last } = (await life.call("GET", session.path)) as unknown as {
      readonly last_turn: { readonly state: string; readonly error: Json | null } | null;
    };
    return last;
  };
  const REACHED =
    /The limit of \$0\.02 for this session is reached: \$[0-9.]+(?:, and \$[0-9.]+ reserved for calls under way)?\. Raise it, then send a message\./;

  it("ends the turn with its words, and the turn goes on once a person has raised it", async () => {
    await expect.poll(lastTurn, POLL).toMatchObject({
      state: "failed",
      error: { code: "spend_limit", message: expect.stringMatching(REACHED) as string },
    });
    // The conversation is followed apart from the turn's report.
    await expect.poll(said, POLL).toMatch(REACHED);
    await session.call("PUT", "spend-limit", { usd: 1000 });
    await session.call("POST", "messages", { id: randomUUID(), text: "run: echo two" });
    await expect.poll(lastTurn, POLL).toMatchObject({ state: "completed", error: null });
    await expect.poll(said, POLL).toContain("Done.");
    const { spent, limits } = (await session.call("GET", "spend")) as unknown as {
      readonly spent: { readonly usd: number };
      readonly limits: readonly Json[];
    };
    expect(spent.usd).toBeGreaterThan(0.02);
    expect(limits).toMatchObject([{ scope: "session", unit: "usd", amount: 1000, reserved: 0 }]);
  });
});
