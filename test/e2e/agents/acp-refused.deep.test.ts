/** A model gateway that refuses, under an agent of the Agent Client Protocol that does not tell the status: the daemon sees it. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LiveSession, POLL } from "../../support/service/sessions/live-session.ts";
import { Installation, type Life } from "../../support/service/process-service.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { TEST_MS } from "../../support/patience.ts";

const WORDS = "These words name no cause.";

describe.runIf(sandboxesStartHere)(
  "opencode behind the Agent Client Protocol, with a gateway that refuses",
  () => {
    let status = 0;
    let gateway: Server;
    let installation: Installation;
    let life: Life;
    beforeAll(async () => {
      gateway = createServer((request, response) => {
        request.resume();
        response.writeHead(status, { "content-type": "application/json" });
        response.end(JSON.stringify({ error: { message: WORDS } }));
      });
      await new Promise<void>((resolve) => gateway.listen(0, "127.0.0.1", () => resolve()));
      installation = await Installation.open();
      const { port } = gateway.address() as AddressInfo;
      life = await installation.start({
        PLATFORM_AGENT_ADAPTER: "acp",
        PLATFORM_LLM_BASE_URL: `http://127.0.0.1:${port}/v1`,
      });
    }, TEST_MS);
    afterAll(async () => {
      await life?.end("SIGTERM");
      await installation?.close();
      gateway?.close();
      gateway?.closeAllConnections();
    }, TEST_MS);

    it.each([
      [401, "model_unauthorized"],
      [402, "model_out_of_credit"],
    ])("names the turn's end by the status %i", async (given, code) => {
      status = given;
      const session = await LiveSession.start(life, installation, { initial_prompt: "hello" });
      const lastTurn = async () => (await life.call("GET", session.path))["last_turn"];
      await expect.poll(lastTurn, POLL).toMatchObject({
        state: "failed",
        error: { code, message: expect.stringContaining(WORDS) as string },
      });
      await session.stop();
    });
  },
);
