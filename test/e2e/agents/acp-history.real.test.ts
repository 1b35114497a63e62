/** An agent of the Agent Client Protocol in a fresh sandbox, with a real program: its own record of the conversation comes back. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { promptOf, TalkingModel } from "../../support/servers/talking-model.ts";
import { LiveSession, POLL } from "../../support/service/sessions/live-session.ts";
import { Installation, type Json, type Life } from "../../support/service/process-service.ts";
import { useRunDatabase } from "../../support/service/run-database.ts";
import {
  PROVIDER_KEY,
  RUNTIME_ROWS,
  startWithRuntimes,
} from "../../support/service/sessions/runtime-installation.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { TEST_MS } from "../../support/patience.ts";
import { deepTest } from "../../support/vitest/rings.ts";

const SUMMARY = "Below is a summary";
const isAnswer = ({ role, status }: Json): boolean => role === "agent" && status === "completed";

describe.runIf(sandboxesStartHere)("opencode behind the Agent Client Protocol, in a fresh sandbox", () => {
  const database = useRunDatabase();
  const model = new TalkingModel(PROVIDER_KEY);
  let installation: Installation;
  let life: Life;
  let session: LiveSession;

  beforeAll(async () => {
    installation = await Installation.open();
    const rows = RUNTIME_ROWS.filter(({ name }) => name === "opencode-acp" || name === "opencode");
    const started = await startWithRuntimes(installation, model, { rows, settings: database() });
    ({ life } = started);
    session = await LiveSession.startIn(life, started.pid, { agent_name: "opencode-acp-allow" });
  }, TEST_MS);
  afterAll(async () => {
    await session?.stop().catch(() => undefined);
    model.stop();
    await life?.end("SIGTERM");
    await installation?.close();
  }, TEST_MS);

  const items = async (of = session) => (await of.call("GET", "conversation"))["items"] as readonly Json[];
  const says = async (words: string, run?: string, of = session): Promise<void> => {
    const text = promptOf([...(run === undefined ? [] : [{ run }]), { say: words }]);
    await of.call("POST", "messages", { id: randomUUID(), text });
    await expect.poll(async () => JSON.stringify((await items(of)).find(isAnswer)), POLL).toContain(words);
  };
  const restart = async (body: Json): Promise<void> => {
    await session.stop();
    await life.call("POST", `${session.path}/restart`, body);
    await expect.poll(async () => (await life.call("GET", session.path))["status"], POLL).toBe("running");
  };
  /** The agent's messages with these words. */
  const shown = async (words: string) =>
    (await items()).filter(
      ({ role, content }) => role === "agent" && JSON.stringify(content).includes(words),
    );
  const note = async (of = session) => JSON.stringify((await items(of)).find(({ kind }) => kind === "note"));
  /** The last request to the model that has tools: others ask for titles. */
  const heard = () => {
    const { text = "{}" } = model.calls.findLast(({ tools }) => tools.length > 0) ?? {};
    return (JSON.parse(text) as { messages: readonly Json[] }).messages.map(
      ({ role, content }) => `${String(role)}: ${JSON.stringify(content)}`,
    );
  };

  deepTest("has no HTTP API", async () => {
    const { url, headers } = session.address("runtime/session");
    // oxlint-disable-next-line no-restricted-globals -- an answer that is no success
    const answer = await fetch(url, { headers });
    expect([answer.status, await answer.json()]).toMatchObject([409, { code: "not_supported" }]);
  });

  it(
    "goes on with its own messages",
    async () => {
      await says("The word is bittern.");
      await restart({ restore_saved: true });
      await says("Here again.");
      expect(heard()).toContainEqual(expect.stringMatching(/^assistant: .*The word is bittern/));
      expect(heard().join()).not.toContain(SUMMARY);
      expect(await note()).toContain("has the whole conversation");
      expect(await shown("bittern")).toHaveLength(1);
    },
    TEST_MS,
  );

  deepTest(
    "goes on with a summary if they did not come back",
    async () => {
      await restart({});
      await says("Here once more.");
      expect(heard().filter((one) => one.startsWith("assistant:"))).toEqual([]);
      expect(heard()).toContainEqual(expect.stringContaining(SUMMARY));
      expect(await note()).toContain("did not come back");
      expect(await shown("bittern")).toHaveLength(1);
    },
    TEST_MS,
  );
});
