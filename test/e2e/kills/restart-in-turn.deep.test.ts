/** The service ends while the agent answers: the sandbox goes on, and the conversation has one whole answer. */
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { TEST_MS, WAIT_MS } from "../../support/patience.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { Installation, type Json, type Life } from "../../support/service/process-service.ts";

const POLL = { timeout: WAIT_MS, interval: 100 };
const HALF = "The first half of the answer";
const WHOLE = "The first half of the answer, and the second half.";

/** A model whose first answer stops in the middle and stays open. Later answers are whole. */
class HoldingModel {
  /** How many calls had the prompt. */
  calls = 0;
  readonly #server: Server = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk) => (text += String(chunk)));
    request.on("end", () => this.#answer(text.includes("tell me slowly"), response));
  });

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", () => resolve()));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #answer(isPrompt: boolean, response: ServerResponse): void {
    // opencode asks for a title with the prompt, too. That call has no tools, but its answer does not matter here.
    if (isPrompt) this.calls += 1;
    response.writeHead(200, { "content-type": "text/event-stream" });
    const write = (delta: object, finish: string | null = null) =>
      response.write(
        `data: ${JSON.stringify({
          id: "1",
          object: "chat.completion.chunk",
          created: 1,
          model: "held",
          choices: [{ index: 0, delta, finish_reason: finish }],
        })}\n\n`,
      );
    const isHeld = isPrompt && this.calls === 1;
    write({ content: isHeld ? HALF : WHOLE });
    if (isHeld) return;
    write({}, "stop");
    response.end("data: [DONE]\n\n");
  }
}

describe.runIf(sandboxesStartHere)("a service that ends in a turn", () => {
  let installation: Installation;
  let life: Life;
  let model: HoldingModel;
  let settings: Record<string, string>;
  let projectId = "";
  beforeAll(async () => {
    installation = await Installation.open();
    model = new HoldingModel();
    settings = { PLATFORM_LLM_BASE_URL: await model.start() };
    life = await installation.start(settings);
    projectId = await life.project(installation.sample);
  }, TEST_MS);
  afterAll(async () => {
    await life?.end("SIGTERM");
    model?.stop();
    await installation?.close();
  }, TEST_MS);

  it.each(["SIGKILL", "SIGTERM"] as const)(
    "leaves the half answer marked as broken off, and one whole answer, after %s",
    async (signal) => {
      model.calls = 0;
      const prompt = { initial_prompt: "tell me slowly" };
      const { id } = await life.call("POST", `/v1/projects/${projectId}/sessions`, prompt);
      const session = `/v1/projects/${projectId}/sessions/${String(id)}`;
      const said = async (): Promise<readonly Json[]> => {
        const { items } = (await life.call("GET", `${session}/conversation`)) as unknown as {
          items: readonly Json[];
        };
        return items.filter(({ kind, role }) => kind === "message" && role === "agent").toReversed();
      };
      const sandboxId = async () => (await life.call("GET", `${session}/sandbox`))["id"];
      await vi.waitFor(async () => expect(await said()).toMatchObject([{ status: "running" }]), POLL);
      const sandbox = await sandboxId();

      await life.end(signal);
      life = await installation.start(settings);

      // The half is marked once the runtime's message has ended.
      const whole = [
        {
          status: "interrupted",
          content: [{ type: "text", text: HALF }],
          error: {
            code: "model_connection_lost",
            message: expect.stringContaining("service was restarted") as string,
          },
        },
        { status: "completed", content: [{ type: "text", text: WHOLE }], error: null },
      ];
      await vi.waitFor(async () => expect(await said()).toMatchObject(whole), POLL);
      expect(await sandboxId()).toBe(sandbox);
      await life.call("POST", `${session}/stop`);
    },
    2 * TEST_MS,
  );
});
