/** Sandboxes that wait for a session, over real parts: service, sandboxes, agent runtime, and the service's end in between. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LiveSession, POLL } from "../support/service/live-session.ts";
import { Installation, type Json, type Life } from "../support/service/process-service.ts";
import { sandboxesStartHere } from "../support/requirements.ts";
import { TEST_MS } from "../support/patience.ts";

let installation: Installation;
let life: Life;

const waitingOf = async (pid: string) =>
  (await life.call("GET", `/v1/projects/${pid}/environment`))["waiting"] as Json;

const isReady = (pid: string, ready: number) =>
  expect.poll(() => waitingOf(pid), POLL).toMatchObject({ ready });

const toolOutput = async (session: LiveSession): Promise<string | undefined> => {
  const { items } = (await session.call("GET", "conversation")) as unknown as {
    readonly items: readonly { readonly tool: { readonly output: string | null } | null }[];
  };
  return items.find(({ tool }) => typeof tool?.output === "string")?.tool?.output ?? undefined;
};

const sandboxOf = (session: LiveSession): Promise<Json> => session.call("GET", "sandbox");

/** Prints the variables that differ between two sessions, and the commit's subject. */
const SHOW = 'run: echo "$PLATFORM_SESSION_ID $PLATFORM_BRANCH_NAME $PLATFORM_BASE_REF $PLATFORM_AGENT_NAME"; git log -1 --format=%s; git branch --show-current';

describe.runIf(sandboxesStartHere)("a sandbox that waits", () => {
  beforeAll(async () => {
    installation = await Installation.open();
    life = await installation.start();
  }, TEST_MS);
  afterAll(async () => {
    await life?.end("SIGTERM");
    await installation?.close();
  }, TEST_MS);

  it(
    "becomes that of the next session, which finds its own variables, branch and prompt, and another one takes its place",
    async () => {
      const pid = await life.project(await installation.repository("[environment]\nwarm = 1\n"));
      await isReady(pid, 1);
      const session = await LiveSession.startIn(life, pid, { initial_prompt: SHOW });
      await expect.poll(() => toolOutput(session), POLL).toContain("Begin");
      const [variables, subject, branch] = ((await toolOutput(session)) ?? "").trim().split("\n");
      expect(variables).toBe(`${session.id} ${session.id} main default`);
      expect([subject, branch]).toEqual(["Begin", session.id]);
      expect(await sandboxOf(session)).toMatchObject({ waited: true, status: "active" });
      await isReady(pid, 1);
      await session.stop();
    },
    TEST_MS,
  );
});
