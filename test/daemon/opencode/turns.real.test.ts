/** The real opencode with a model stub: which model it is given, how a turn's end is told, and what bounds a failing model. */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { HealthReport } from "../../../daemon/report.ts";
import { chooseModel, MODEL_PROVIDERS } from "../../../src/domain/sandbox/model.ts";
import { freePort } from "../../support/machine/free-port.ts";
import { ModelStub } from "../../support/servers/model-stub.ts";
import { Running, type RunOptions } from "../support/running.ts";
import { deepTest, onlyDeep, sampled } from "../../support/vitest/rings.ts";

const OPENCODE = fileURLToPath(
  new URL("../../../node_modules/opencode-linux-x64/bin/opencode", import.meta.url),
);
const KEY = "sk-canary-key-of-the-project";
const PROMPT = { PLATFORM_INITIAL_PROMPT: "say something", PLATFORM_BOOTSTRAP_AGENT_SESSION: "1" };

/** Models that fail in a way that may pass, with the code and words of the turn's end. */
const BROKEN = ["broken", "model_unavailable", "The server had an error"] as const;
const RETRIED = [
  ["quota", "model_out_of_credit", "You exceeded your current quota"],
  BROKEN,
  ["cut", "model_unavailable", "It said: "],
] as const;

const startDaemon = async (options: RunOptions): Promise<Running> => {
  const port = await freePort();
  const daemon = await Running.start({
    adapter: "opencode",
    agentCommand: [OPENCODE, "serve", "--hostname", "127.0.0.1", "--port", String(port)],
    runtimePort: port,
    ...options,
  });
  await daemon.logged("listening");
  return daemon;
};

/** The turn after that number, once it has ended. */
const turnAfter = async (daemon: Running, after: number): Promise<HealthReport["turn"]["last"]> => {
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- each question stays open until a turn ends
    const answer = await daemon.ask(`/platform/turn?after=${after}`);
    const { last } = JSON.parse(answer.body) as HealthReport["turn"];
    if (last !== null && last.number > after) return last;
  }
};

onlyDeep(() => {
  describe.skipIf(!existsSync(OPENCODE))("opencode on an empty repository", () => {
    let stub: ModelStub;
    let daemon: Running | null = null;
    let base: string;
    beforeAll(async () => {
      stub = new ModelStub();
      base = await stub.start();
    });
    afterEach(() => daemon?.dispose());
    afterAll(() => stub.stop());

    test("answers through the managed gateway, whose key is in no file", async () => {
      const variables = { PLATFORM_LLM_BASE_URL: base, PLATFORM_LLM_API_KEY: KEY };
      daemon = await startDaemon({ environment: { ...PROMPT, ...variables }, models: { managed: "ok" } });
      expect(await turnAfter(daemon, 0)).toMatchObject({ number: 1, state: "completed", error: null });
      expect(stub.of("ok").at(-1)).toMatchObject({ path: "/v1/chat/completions", key: KEY });
      expect(stub.of("ok").at(-1)?.text).toContain("say something");
      expect(stub.of("ok").at(-1)?.tools).toContain("question");
      expect(readFileSync(daemon.layout.runtimeDefaultsFile, "utf8")).not.toContain(KEY);
    });

    test("answers through the provider whose key is among the secrets, with a model from the table", async () => {
      const agentEnv = { ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: base };
      daemon = await startDaemon({ environment: PROMPT, agentEnv });
      expect(await turnAfter(daemon, 0)).toMatchObject({ state: "completed" });
      const [{ model = "" } = {}] = MODEL_PROVIDERS;
      expect(stub.of(model).at(-1)).toMatchObject({ path: "/v1/messages", key: KEY });
    });
  });
});

onlyDeep(() => {
  describe.skipIf(!existsSync(OPENCODE))("opencode without a model", () => {
    let daemon: Running;
    beforeAll(async () => {
      daemon = await startDaemon({ environment: PROMPT });
    });
    afterAll(() => daemon.dispose());

    test("reports that no model is available, and does not fall back to the hosted one", async () => {
      expect(await turnAfter(daemon, 0)).toMatchObject({
        state: "failed",
        error: { code: "no_model", message: expect.stringContaining("ANTHROPIC_API_KEY") },
      });
      await daemon.logged("turn failed", { code: "no_model" });
    });

    test("accepts keys that come later, and knows every provider's default model from the table", async () => {
      const keys = MODEL_PROVIDERS.flatMap(({ keys: [key = ""] }) => [[key, KEY] as const]);
      await daemon.control("env", { revision: "2", env: Object.fromEntries(keys) });
      const config = JSON.parse((await daemon.ask("/config")).body) as { model: string };
      expect(config.model).toBe("anthropic/claude-sonnet-4-6");
      const { providers } = JSON.parse((await daemon.ask("/config/providers")).body) as {
        providers: { id: string; models: Record<string, unknown> }[];
      };
      const known = new Map(providers.map(({ id, models }) => [id, Object.keys(models)]));
      for (const { id, keys: secretNames, model } of MODEL_PROVIDERS) {
        expect(known.get(id), id).toContain(model);
        const choice = chooseModel({
          gateway: false,
          secretNames,
          agentModel: null,
          defaults: {},
          providers: [],
        });
        expect(choice).toMatchObject({ success: `${id}/${model}` });
      }
      expect(known.has("opencode")).toBe(false);
    });
  });
});

describe.skipIf(!existsSync(OPENCODE))("a turn whose model fails", () => {
  const MODELS = ["ok", "unauthorized", "quota", "broken", "cut"];
  let stub: ModelStub;
  let daemon: Running;
  let turns = 0;
  /** Asks one model for a turn. @returns how it ended. */
  /** @param model as `provider/model`; without a provider, the repository's */
  const turnOf = async (
    model: string,
    ...files: readonly object[]
  ): Promise<HealthReport["turn"]["last"]> => {
    const [modelID, providerID = "stub"] = model.split("/").toReversed();
    const post = { method: "POST", headers: { "x-platform-user-context": daemon.context() } };
    const session = JSON.parse(
      (await daemon.ask("/session", { ...post, body: '{"title": "titled"}' })).body,
    ) as { id: string };
    const parts = [{ type: "text", text: "say something" }, ...files];
    const body = JSON.stringify({ agent: "build", model: { providerID, modelID }, parts });
    const headers = { "x-platform-user-context": daemon.context(), "content-type": "application/json" };
    await daemon.ask(`/session/${session.id}/prompt_async`, { method: "POST", headers, body });
    const last = await turnAfter(daemon, turns);
    turns = last?.number ?? turns;
    return last;
  };

  beforeAll(async () => {
    stub = new ModelStub();
    const baseURL = await stub.start();
    const config = {
      model: "stub/ok",
      provider: {
        stub: {
          npm: "@ai-sdk/openai-compatible",
          options: { baseURL, apiKey: KEY },
          models: Object.fromEntries(MODELS.map((id) => [id, { name: id }])),
        },
      },
    };
    daemon = await startDaemon({
      environment: { PLATFORM_LLM_BASE_URL: baseURL, PLATFORM_LLM_API_KEY: KEY },
      files: { "opencode.json": JSON.stringify(config) },
      models: { managed: "ok" },
      agentEnv: { MODEL_KEY: KEY },
      // As the daemon's own, in less time.
      turnLimits: { tries: 2, modelCalls: 5 },
    });
    await daemon.logged("ready");
    // The listener for turns stands before the first one.
    await daemon.logged("turns are followed");
  });
  afterAll(async () => {
    await daemon.dispose();
    stub.stop();
  });

  test("leaves the choice to the repository's own configuration, with or without a gateway", async () => {
    const config = JSON.parse((await daemon.ask("/config")).body) as { model: string };
    expect(config.model).toBe("stub/ok");
    expect(await turnOf("ok")).toMatchObject({ state: "completed", error: null });
  });

  deepTest("shows an image to a model of the operator's gateway", async () => {
    const dot =
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    const file = {
      type: "file",
      mime: "image/png",
      filename: "dot.png",
      url: `data:image/png;base64,${dot}`,
    };
    expect(await turnOf("managed/ok", file)).toMatchObject({ state: "completed", error: null });
    const { text } =
      stub.of("ok").find((call) => call.text.includes("dot.png") || call.text.includes(dot)) ?? {};
    expect(text).toContain('"image_url"');
    expect(text).not.toContain("does not support image input");
  });

  test("with a wrong key fails at once, in the provider's words and without the key", async () => {
    const last = await turnOf("unauthorized");
    expect(last).toMatchObject({ state: "failed", error: { code: "model_unauthorized" } });
    expect(last?.error?.message).toContain("Incorrect API key provided: [redacted]");
    expect(stub.of("unauthorized")).toHaveLength(1);
  });

  onlyDeep(() => {
    test.each(sampled(RETRIED, [BROKEN]))(
      "with a provider that fails again and again (%s) is ended after the last try",
      async (model, code, words) => {
        const last = await turnOf(model);
        expect(last).toMatchObject({ state: "failed", error: { code } });
        expect(last?.error?.message).toContain(words);
        expect(stub.of(model)).toHaveLength(2);
      },
    );
  });
});
