/** Messages of people to the real opencode: it keeps and answers each of them once, even if it gets one several times. */
import { existsSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import {
  handOver,
  nativeMessageId,
  type MessageCalls,
  type Prompt,
} from "../../../daemon/adapters/opencode/messages.ts";
import { callHttp, callJson } from "../../../daemon/http/client.ts";
import { freePort } from "../../support/machine/free-port.ts";
import { WAIT_MS } from "../../support/patience.ts";
import { Running } from "../support/running.ts";
import { signal } from "../support/served.ts";

const OPENCODE = fileURLToPath(
  new URL("../../../node_modules/opencode-linux-x64/bin/opencode", import.meta.url),
);
const NOON = Date.UTC(2026, 0, 1, 12);

const message = (id: string, text: string, sentMs = NOON): Prompt => ({
  id,
  sentMs,
  text,
  more: [],
  model: null,
  agent: null,
  effort: null,
});

/** A model that repeats the last message once the gate is open. */
class Echo {
  /** Last messages of all calls that belong to a turn. */
  readonly asked: string[] = [];
  gate = signal();
  readonly #server: Server = createServer((request, response) => {
    void json(request).then(async (body) => {
      const { messages, tools } = body as {
        messages: { role: string; content: unknown }[];
        tools?: unknown[];
      };
      const text = JSON.stringify(messages.findLast(({ role }) => role === "user")?.content);
      if (tools !== undefined) {
        this.asked.push(text);
        await this.gate.given;
      }
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const [delta, finish] of [
        [{ role: "assistant", content: `You said ${text}` }, null],
        [{}, "stop"],
      ] as const) {
        const choices = [{ index: 0, delta, finish_reason: finish }];
        const chunk = { id: "1", object: "chat.completion.chunk", created: 1, model: "one", choices };
        response.write(`data: ${JSON.stringify(chunk)}\n\n`);
      }
      response.end("data: [DONE]\n\n");
    });
  });

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", () => resolve()));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

const Statuses = Schema.Record(Schema.String, Schema.Struct({ type: Schema.String }));
const Created = Schema.Struct({ id: Schema.String });
const Messages = Schema.Array(
  Schema.Struct({
    info: Schema.Struct({ id: Schema.String, role: Schema.String }),
    parts: Schema.Array(Schema.Struct({ text: Schema.optionalKey(Schema.String) })),
  }),
);

describe.skipIf(!existsSync(OPENCODE))("a message to the real opencode", () => {
  const model = new Echo();
  let daemon: Running;
  let calls: MessageCalls;
  let session = "";
  beforeAll(async () => {
    const port = await freePort();
    const baseURL = await model.start();
    const scripted = {
      npm: "@ai-sdk/openai-compatible",
      options: { baseURL, apiKey: "none" },
      models: { one: { name: "one" } },
    };
    daemon = await Running.start({
      adapter: "opencode",
      agentCommand: [OPENCODE, "serve", "--hostname", "127.0.0.1", "--port", String(port)],
      runtimePort: port,
      files: {
        ".platform/runtime/opencode.json": JSON.stringify({ model: "scripted/one", provider: { scripted } }),
      },
    });
    await daemon.logged("agent runtime", { state: "ready" });
    const url = (path: string) => `http://127.0.0.1:${port}${path}`;
    calls = {
      get: (path, schema) => callJson({ url: url(path), timeoutMs: WAIT_MS }, schema),
      post: (path, body) => callHttp({ url: url(path), method: "POST", body, timeoutMs: WAIT_MS }),
      busySessions: Effect.map(
        callJson({ url: url("/session/status"), timeoutMs: WAIT_MS }, Statuses),
        (statuses) => Object.entries(statuses).flatMap(([id, { type }]) => (type === "idle" ? [] : [id])),
      ),
    };
    const opened = { url: url("/session"), method: "POST", body: {}, timeoutMs: WAIT_MS } as const;
    session = (await Effect.runPromise(callJson(opened, Created))).id;
  });
  afterAll(async () => {
    await daemon.dispose();
    model.stop();
  });

  const give = (outgoing: Prompt) =>
    Effect.runPromise(handOver({ calls, session, fault: () => null }, outgoing));
  const listed = () => Effect.runPromise(calls.get(`/session/${session}/message`, Messages));
  const rested = () =>
    vi.waitFor(async () => expect(await Effect.runPromise(calls.busySessions)).toEqual([]), {
      timeout: WAIT_MS,
    });
  const askedFor = (text: string) => model.asked.filter((asked) => asked.includes(text)).length;

  test("is accepted once, also where it is handed over again during and after its turn", async () => {
    const first = message("one", "the first message");
    expect(await give(first)).toEqual({ outcome: "accepted" });
    await vi.waitFor(() => expect(askedFor("the first")).toBe(1), { timeout: WAIT_MS });
    expect(await give(first)).toEqual({ outcome: "accepted" });
    model.gate.give();
    await rested();
    expect(await give(first)).toEqual({ outcome: "accepted" });
    await rested();
    const messages = await listed();
    expect(messages.map(({ info, parts }) => [info.role, parts.filter(({ text }) => text).length])).toEqual([
      ["user", 1],
      ["assistant", 1],
    ]);
    expect(messages[0]?.info.id).toBe(nativeMessageId(first));
    expect(askedFor("the first")).toBe(1);
  });

  test("is not taken while the agent works on another one", async () => {
    model.gate = signal();
    expect(await give(message("two", "the second message", NOON + 1000))).toEqual({ outcome: "accepted" });
    await vi.waitFor(() => expect(askedFor("the second")).toBe(1), { timeout: WAIT_MS });
    const third = message("three", "the third message", NOON + 2000);
    expect(await give(third)).toEqual({ outcome: "busy" });
    model.gate.give();
    await rested();
    expect(await give(third)).toEqual({ outcome: "accepted" });
    await rested();
    expect((await listed()).map(({ info: { role } }) => role)).toEqual([
      "user",
      "assistant",
      "user",
      "assistant",
      "user",
      "assistant",
    ]);
    expect([askedFor("the second"), askedFor("the third")]).toEqual([1, 1]);
  });

  test("is not answered again by itself when its runtime ends in mid-turn; the next one is answered", async () => {
    model.gate = signal();
    const fourth = message("four", "the fourth message", NOON + 3000);
    expect(await give(fourth)).toEqual({ outcome: "accepted" });
    await vi.waitFor(() => expect(askedFor("the fourth")).toBe(1), { timeout: WAIT_MS });
    await daemon.control("env", { revision: "2", env: { CHANGED: "1" } });
    expect(await give(fourth)).toEqual({ outcome: "accepted" });
    model.gate.give();
    expect(await give(message("five", "the fifth message", NOON + 4000))).toEqual({ outcome: "accepted" });
    await rested();
    expect([askedFor("the fourth"), askedFor("the fifth")]).toEqual([1, 1]);
    const texts = (await listed()).flatMap(({ parts }) => parts.flatMap(({ text }) => text ?? []));
    expect(texts.at(-1)).toContain("You said");
    expect(texts.at(-1)).toContain("the fifth message");
  });
});
