/** A provider of models of the account, with the real service, a real sandbox and the real opencode. */
import { createServer, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ScriptedModel, startScriptedModel, USAGE } from "../../../demo/scripted-model.ts";
import { ModelStub } from "../../support/servers/model-stub.ts";
import { TEST_MS } from "../../support/patience.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { LiveSession, POLL } from "../../support/service/sessions/live-session.ts";
import { Installation, type Json, type Life } from "../../support/service/process-service.ts";
import { useRunDatabase } from "../../support/service/run-database.ts";
import { deepTest } from "../../support/vitest/rings.ts";

const KEY = "sk-canary-of-the-account";

/** The calls that the provider got with its key, and how many it got without. */
const calls: { readonly path: string; readonly answer: string }[] = [];
let strangers = 0;

/** The scripted model behind a key. */
const startKeyed = async (model: ScriptedModel): Promise<Server> => {
  const server = createServer((request, response) => {
    void (async () => {
      if (request.headers.authorization !== `Bearer ${KEY}`) {
        strangers += 1;
        response.writeHead(401).end('{"error":{"message":"a key is needed"}}');
        return;
      }
      const { method = "GET", url: path = "/" } = request;
      const body = await buffer(request);
      const answer = await fetch(`${new URL(model.url).origin}${path}`, {
        method,
        headers: { "content-type": "application/json" },
        ...(method === "GET" ? {} : { body }),
      });
      const text = await answer.text();
      if (method === "POST") calls.push({ path, answer: text });
      response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
      response.end(text);
    })();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
};

describe.runIf(sandboxesStartHere)("a provider of models of the account", () => {
  const database = useRunDatabase();
  let model: ScriptedModel;
  let server: Server;
  let installation: Installation;
  let life: Life;
  let session: LiveSession;

  beforeAll(async () => {
    model = await startScriptedModel();
    server = await startKeyed(model);
    installation = await Installation.open();
    life = await installation.start({
      ...database(),
      PLATFORM_LLM_TIERS: "[]",
      PLATFORM_CONNECTOR_ALLOW_HOSTS: "127.0.0.1",
    });
    const { models } = await life.call("POST", "/v1/model-providers", {
      name: "acme",
      kind: "openai-compatible",
      base_url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
      key: KEY,
    });
    expect(models).toHaveLength(1);
    session = await LiveSession.start(life, installation, { initial_prompt: "run: printenv; echo end" });
  }, TEST_MS);
  afterAll(async () => {
    await session?.stop();
    await life?.end("SIGTERM");
    await installation?.close();
    server?.close();
    await model?.close();
  }, TEST_MS);

  const said = async () => JSON.stringify(await session.call("GET", "conversation"));

  const usage = async () => {
    const [, pid = ""] = /projects\/([^/]+)/.exec(session.path) ?? [];
    return (await life.call("GET", `/v1/projects/${pid}/usage`)) as unknown as { days: readonly Json[] };
  };

  it("answers the agent, whose sandbox has no key, and each call is counted to the token", async () => {
    await expect.poll(said, POLL).toContain("Done.");
    expect(await said()).toContain("PLATFORM_SESSION_ID");
    expect(await said()).not.toContain(KEY);
    expect(strangers).toBe(0);
    expect(calls.length).toBeGreaterThan(1);
    const named = calls.filter(({ answer }) => answer.includes('"usage":{')).length;
    await expect
      .poll(async () => (await usage()).days, POLL)
      .toEqual([
        expect.objectContaining({
          model: expect.stringMatching(/^acme\//) as string,
          counted: true,
          input_tokens: named * USAGE.prompt_tokens,
          output_tokens: named * USAGE.completion_tokens,
          cached_tokens: named * USAGE.prompt_tokens_details.cached_tokens,
          untold_calls: calls.length - named,
        }),
      ]);
  });

  deepTest("is spoken to in its own API, as the session names it", async () => {
    const stub = new ModelStub();
    const { origin } = new URL(await stub.start());
    await life.call("POST", "/v1/model-providers", {
      name: "claude",
      kind: "anthropic",
      base_url: origin,
      key: KEY,
      models: ["ok"],
      try: false,
    });
    const [, pid = ""] = /projects\/([^/]+)/.exec(session.path) ?? [];
    const other = await LiveSession.startIn(life, pid, { agent_model: "claude/ok", initial_prompt: "Hi" });
    try {
      const heard = async () => JSON.stringify(await other.call("GET", "conversation"));
      await expect.poll(heard, POLL).toContain("an answer");
      expect(new Set(stub.calls.map(({ path, key }) => [path, key].join(" ")))).toEqual(
        new Set([`/v1/messages ${KEY}`]),
      );
      await expect
        .poll(async () => (await other.call("GET", "model-usage"))["models"], POLL)
        .toEqual([
          {
            model: "claude/ok",
            calls: stub.calls.length,
            untold_calls: 0,
            input_tokens: stub.calls.length,
            cached_tokens: 0,
            output_tokens: 2 * stub.calls.length,
            estimated_tokens: 0,
            cost_usd: 0,
          },
        ]);
    } finally {
      await other.stop();
      stub.stop();
    }
  });
});
