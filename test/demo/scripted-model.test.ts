import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { request } from "undici";
import { type ScriptedModel, startScriptedModel } from "../../demo/scripted-model.ts";

let model: ScriptedModel;
beforeAll(async () => {
  model = await startScriptedModel();
});
afterAll(() => model.close());

const complete = async (body: unknown) => {
  const answer = await request(`${model.url}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  return { status: answer.statusCode, text: await answer.body.text() };
};

const PROMPT = {
  model: "any",
  messages: [{ role: "user", content: "write a.md: hello" }],
  tools: [{ type: "function", function: { name: "write", parameters: {} } }],
};

describe("the scripted model's server", () => {
  it("lists its model", async () => {
    const answer = await request(`${model.url}/models`);
    expect(await answer.body.json()).toMatchObject({ object: "list", data: [{ id: "scripted" }] });
  });

  it("answers in one piece", async () => {
    const { status, text } = await complete(PROMPT);
    expect(status).toBe(200);
    expect(JSON.parse(text)).toMatchObject({
      object: "chat.completion",
      model: "any",
      choices: [
        {
          finish_reason: "tool_calls",
          message: {
            tool_calls: [{ type: "function", function: { name: "write", arguments: expect.any(String) } }],
          },
        },
      ],
    });
  });

  it("streams the same turn, with usage on request, and ends with [DONE]", async () => {
    const { text } = await complete({ ...PROMPT, stream: true, stream_options: { include_usage: true } });
    const chunks = text.trim().split("\n\n");
    expect(chunks.at(-1)).toBe("data: [DONE]");
    const parsed = chunks
      .slice(0, -1)
      .map((chunk) => JSON.parse(chunk.slice("data: ".length)) as { choices: unknown[]; usage?: object });
    expect(parsed[0]).toMatchObject({
      choices: [{ delta: { tool_calls: [{ index: 0, function: { name: "write" } }] } }],
    });
    expect(parsed[1]).toMatchObject({ choices: [{ finish_reason: "tool_calls" }] });
    expect(parsed[2]?.usage).toBeDefined();
  });

  it("gives the same bytes for the same request", async () => {
    expect(await complete(PROMPT)).toEqual(await complete(PROMPT));
  });

  it("refuses requests that it does not understand, in OpenAI's shape", async () => {
    const refusals = await Promise.all(["{", "[]", { messages: [] }].map(complete));
    for (const { status, text } of refusals) {
      expect(status).toBe(400);
      expect(JSON.parse(text)).toMatchObject({ error: { type: "invalid_request_error" } });
    }
    const elsewhere = await request(`${model.url}/embeddings`, { method: "POST", body: "{}" });
    expect(elsewhere.statusCode).toBe(404);
    await elsewhere.body.dump();
  });

  it("refuses a body that is too large", async () => {
    expect((await complete("x".repeat(16 * 1024 * 1024 + 1))).status).toBe(413);
  });
});
