import { existsSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as Effect from "effect/Effect";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { opencodeAdapter } from "../../../daemon/adapters/opencode/opencode.ts";
import { freePort } from "../../support/machine/free-port.ts";
import { Running, type RunOptions } from "../support/running.ts";
import { signal } from "../support/served.ts";
import { deepTest, onlyDeep } from "../../support/vitest/rings.ts";

const OPENCODE = fileURLToPath(
  new URL("../../../node_modules/opencode-linux-x64/bin/opencode", import.meta.url),
);

/** An OpenAI-compatible model that answers every prompt with one word, once it is let. */
class Model {
  /** The text of every request's last message. */
  readonly prompts: string[] = [];
  readonly asked = signal();
  readonly answer = signal();
  readonly #server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { messages } = JSON.parse(Buffer.concat(chunks).toString()) as {
        messages: { content: unknown }[];
      };
      this.prompts.push(JSON.stringify(messages.at(-1)?.content));
      this.asked.give();
      response.writeHead(200, { "content-type": "text/event-stream" });
      void this.answer.given.then(() => {
        for (const [delta, finish] of [
          [{ role: "assistant", content: "done" }, null],
          [{}, "stop"],
        ] as const) {
          const choices = [{ index: 0, delta, finish_reason: finish }];
          const chunk = { id: "1", object: "chat.completion.chunk", created: 1, model: "one", choices };
          response.write(`data: ${JSON.stringify(chunk)}\n\n`);
        }
        response.end("data: [DONE]\n\n");
      });
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

const config = (baseURL: string): string =>
  JSON.stringify({
    permission: { webfetch: "deny" },
    provider: {
      scripted: {
        npm: "@ai-sdk/openai-compatible",
        options: { baseURL, apiKey: "none" },
        models: { one: { name: "one" } },
      },
    },
  });

/** A commit that a former sandbox saved. */
const WIP = "0d5a5e2f27ae82c7b1a177c8d03f9e96e0adf246";

describe.skipIf(!existsSync(OPENCODE))("the real opencode", () => {
  let model: Model;
  let daemon: Running;
  let port: number;
  const start = async (options: RunOptions = {}): Promise<void> => {
    model = new Model();
    port = await freePort();
    daemon = await Running.start({
      adapter: "opencode",
      agentCommand: [OPENCODE, "serve", "--hostname", "127.0.0.1", "--port", String(port)],
      runtimePort: port,
      environment: {
        PLATFORM_INITIAL_PROMPT: "say the canary word",
        PLATFORM_BOOTSTRAP_AGENT_SESSION: "1",
        PLATFORM_AGENT_MODEL: "scripted/one",
      },
      files: { ".platform/runtime/opencode.json": config(await model.start()) },
      ...options,
    });
  };
  const heard = async (): Promise<readonly { readonly role: string; readonly text: string }[]> => {
    const [session] = JSON.parse((await daemon.ask("/session")).body) as { id: string; title: string }[];
    expect(session?.title).toBe(daemon.sessionId);
    const told = JSON.parse((await daemon.ask(`/session/${session?.id}/message`)).body) as {
      info: { role: string };
      parts: { text?: string }[];
    }[];
    return told.map(({ info, parts }) => ({
      role: info.role,
      text: parts.map(({ text }) => text ?? "").join(""),
    }));
  };
  const end = async (): Promise<void> => {
    await daemon.dispose();
    model.stop();
  };

  describe("from a start without saved work", () => {
    // One start for all: each case reads, or adds to, what the one before leaves.
    beforeAll(() => start());
    afterAll(end);

    test("receives the initial prompt exactly once, and health shows its turn until it is aborted", async () => {
      await daemon.logged("initial prompt accepted");
      expect((await daemon.health()).bootstrap.state).toBe("done");
      // It has written its schema into the project's configuration, and that was taken back.
      expect(await daemon.git("status", "--porcelain")).toBe("");
      const [session] = JSON.parse((await daemon.ask("/session")).body) as { id: string; title: string }[];
      expect(session?.title).toBe(daemon.sessionId);

      // A daemon that does not know of the delivery finds the agent session by its title.
      const again = await Effect.runPromise(
        opencodeAdapter(port).deliverPrompt({
          sessionId: daemon.sessionId,
          text: "say the canary word",
          agentName: "default",
          model: "scripted/one",
        }),
      );
      expect(again).toBe("accepted");

      await model.asked.given;
      const { turn } = await daemon.health();
      expect(turn.active).toBe(true);
      expect(turn.last_activity_at).not.toBeNull();

      const aborted = await daemon.ask("/platform/abort", { method: "POST" });
      expect(JSON.parse(aborted.body)).toEqual({ aborted: true });
      await daemon.logged("turn", { active: false });
      expect((await daemon.health()).turn.active).toBe(false);
      expect(JSON.parse((await daemon.ask("/platform/abort", { method: "POST" })).body)).toEqual({
        aborted: false,
      });

      const messages = JSON.parse((await daemon.ask(`/session/${session?.id}/message`)).body) as {
        info: { role: string };
      }[];
      expect(messages.filter(({ info }) => info.role === "user")).toHaveLength(1);
      expect(model.prompts.filter((prompt) => prompt.includes("canary word"))).toHaveLength(1);
      expect(daemon.output).not.toContain("canary word");
    });

    test("has a briefing once, also if it is sent again before the answer", async () => {
      await daemon.logged("initial prompt accepted");
      const adapter = opencodeAdapter(port);
      const told = {
        sessionId: "briefed",
        agentName: "default",
        model: null,
        text: "Go on.",
        note: "It goes on.",
      };
      await Effect.runPromise(Effect.all([adapter.tell(told), adapter.tell(told)], { concurrency: 2 }));
      const sessions = JSON.parse((await daemon.ask("/session")).body) as { id: string; title: string }[];
      const briefed = sessions.find(({ title }) => title === told.sessionId);
      const messages = JSON.parse(
        (await daemon.ask(`/session/${briefed?.id ?? ""}/message`)).body,
      ) as unknown;
      expect(messages).toMatchObject([{ info: { role: "user" }, parts: [{ text: told.text }] }]);
    });

    deepTest("runs with the platform's defaults below the project's own settings", async () => {
      await daemon.logged("ready");
      expect(JSON.parse((await daemon.ask("/config")).body)).toMatchObject({
        autoupdate: false,
        snapshot: false,
        permission: { "*": "allow", webfetch: "deny" },
      });
    });
  });

  onlyDeep(() => {
    describe("from a separate start", () => {
      afterEach(end);

      test("hears of saved work with its prompt if the prompt was not delivered before", async () => {
        await start({ wip: WIP });
        await model.asked.given;
        const [first] = await heard();
        expect(first).toMatchObject({
          role: "user",
          text: expect.stringMatching(/^say the canary word\n\n/),
        });
        expect(first?.text).toContain("is saved, but not in this workspace");
      });

      deepTest(
        "hears of saved work first, and gets no prompt, if the prompt was delivered before",
        async () => {
          await start({ wip: WIP, prepare: ({ state }) => (state.bootstrap = "done") });
          await daemon.logged("the agent got a briefing");
          const told = await heard();
          expect(told).toMatchObject([
            { role: "user", text: expect.stringContaining("is saved, but not in this workspace") },
          ]);
          expect(model.prompts).toEqual([]);
        },
      );

      deepTest("is restarted by refresh and env, which report whether that cut a turn", async () => {
        await start();
        await model.asked.given;
        await daemon.logged("turn", { active: true });
        const file = ".platform/runtime/opencode.json";
        expect(await daemon.git("status", "--porcelain")).toBe("");
        const text = await daemon.git("show", `HEAD:${file}`);
        daemon.pushFromElsewhere({ [file]: text.replace("deny", "ask") });
        const change = { revision: "2", env: { A: "a value" }, after_turn: true };
        expect(await daemon.control("env", change)).toMatchObject([409, { code: "turn_in_progress" }]);
        expect((await daemon.health()).runtime.restarts).toBe(0);
        const [status, cut] = await daemon.control("refresh");
        expect([status, cut]).toMatchObject([200, { turn_interrupted: true, runtime: { state: "ready" } }]);
        expect((await daemon.health()).turn.active).not.toBe(true);
        expect((await daemon.control("env", change))[1]).toMatchObject({
          changed: ["A"],
          restarted: true,
          turn_interrupted: false,
        });
        expect(JSON.parse((await daemon.ask("/config")).body)).toMatchObject({
          permission: { webfetch: "ask" },
        });
        writeFileSync(join(daemon.layout.workspace, file), text.replace("deny", "allow"));
        expect((await daemon.control("refresh"))[1]).toMatchObject({ code: "uncommitted_changes" });
      });
    });
  });
});
