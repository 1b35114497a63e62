/** A newcomer's first session, on an empty repository, with real parts: what the agent does, and what goes wrong, shows. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ModelStub } from "../../support/servers/model-stub.ts";
import { Installation, type Json, type Life } from "../../support/service/process-service.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { TEST_MS, WAIT_MS } from "../../support/patience.ts";

const POLL = { timeout: WAIT_MS, interval: 100 };

/** A session of a new project with an empty repository, and what asks for it again. */
const firstSession = async (life: Life, prompt: string) => {
  const project = { name: "empty", repository: { kind: "hosted" } };
  const { id: pid } = await life.call("POST", "/v1/projects", project);
  const list = `/v1/projects/${String(pid)}/sessions`;
  const { id } = await life.call("POST", list, { initial_prompt: prompt });
  const target = `${list}/${String(id)}`;
  const lastTurn = async () => (await life.call("GET", target))["last_turn"] as Json | null;
  return { pid: String(pid), id: String(id), target, lastTurn };
};

describe.runIf(sandboxesStartHere)("a first session on an empty repository", () => {
  let installation: Installation;
  beforeAll(async () => {
    installation = await Installation.open();
  }, TEST_MS);
  afterAll(() => installation.close(), TEST_MS);

  it(
    "gets an answer from the managed gateway, and its work is on the branch",
    async () => {
      const life = await installation.start();
      try {
        const file = `${randomUUID()}.md`;
        const { pid, id, target, lastTurn } = await firstSession(life, `write ${file}: from the agent`);
        await expect.poll(lastTurn, POLL).toMatchObject({ state: "completed", error: null });
        const { number } = await life.call("POST", `/v1/projects/${pid}/change-requests`, {
          session_id: id,
          title: "The first",
        });
        const diff = await life.text(`/v1/projects/${pid}/change-requests/${String(number)}/diff`);
        expect(diff).toContain(`+++ b/${file}`);
        await life.call("POST", `${target}/stop`);
      } finally {
        await life.end("SIGTERM");
      }
    },
    TEST_MS,
  );

  it(
    "reports in session and log that the gateway refused the key",
    async () => {
      const stub = new ModelStub();
      const settings = { PLATFORM_LLM_BASE_URL: await stub.start(), PLATFORM_LLM_MODEL: "unauthorized" };
      const life = await installation.start(settings);
      try {
        const { target, lastTurn } = await firstSession(life, "say something");
        await expect.poll(lastTurn, POLL).toMatchObject({
          state: "failed",
          error: {
            code: "model_unauthorized",
            message: expect.stringContaining("Incorrect API key provided"),
          },
        });
        expect(await life.text(`${target}/logs?follow=0`)).toContain("turn failed code=model_unauthorized");
        await life.call("POST", `${target}/stop`);
      } finally {
        await life.end("SIGTERM");
        stub.stop();
      }
    },
    TEST_MS,
  );

  it(
    "is refused if no model is available",
    async () => {
      const life = await installation.start({ PLATFORM_LLM_BASE_URL: "", PLATFORM_LLM_TIERS: "[]" });
      try {
        await expect(firstSession(life, "say something")).rejects.toThrow(/422.*no_model/);
      } finally {
        await life.end("SIGTERM");
      }
    },
    TEST_MS,
  );
});
