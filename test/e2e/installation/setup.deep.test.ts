/** The project's setup command over real parts: service, sandbox and agent runtime. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LiveSession, POLL } from "../../support/service/sessions/live-session.ts";
import { Installation, type Json, type Life } from "../../support/service/process-service.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { TEST_MS } from "../../support/patience.ts";

let installation: Installation;
let life: Life;

interface Item {
  readonly kind: string;
  readonly role: string | null;
  readonly content: readonly { readonly text: string }[];
  readonly tool: { readonly output: string | null } | null;
}

/** Oldest first. */
const itemsOf = async (session: LiveSession): Promise<readonly Item[]> =>
  ((await session.call("GET", "conversation")) as unknown as { items: readonly Item[] }).items.toReversed();

const isAnswered = async (session: LiveSession): Promise<boolean> =>
  (await itemsOf(session)).some(({ role, kind }) => role === "agent" && kind === "message");

/** Starts a session in a new project with this command, and waits until the agent has answered the prompt. */
const answered = async (setup: string, prompt: string) => {
  const repository = await installation.repository(`[environment]\nsetup = """\n${setup}\n"""\n`);
  const session = await LiveSession.startIn(life, await life.project(repository), { initial_prompt: prompt });
  await expect.poll(() => isAnswered(session), POLL).toBe(true);
  return { session, items: await itemsOf(session) };
};

const textsOf = (items: readonly Item[], kind: string): readonly string[] =>
  items.filter((item) => item.kind === kind).map(({ content }) => content.map(({ text }) => text).join(""));

describe.runIf(sandboxesStartHere)("a project with a setup command", () => {
  beforeAll(async () => {
    installation = await Installation.open();
    life = await installation.start();
  }, TEST_MS);
  afterAll(async () => {
    await life?.end("SIGTERM");
    await installation?.close();
  }, TEST_MS);

  it(
    "has it done before the agent gets its first message",
    async () => {
      const { session, items } = await answered(
        "sleep 2\necho the output of the command\necho prepared by the command > prepared.txt",
        "run: cat prepared.txt",
      );
      const tool = items.find(({ kind }) => kind === "tool");
      expect(tool?.tool?.output).toContain("prepared by the command");
      expect(textsOf(items, "note")).toEqual([
        "The setup command runs: sleep 2 … (3 lines)",
        expect.stringMatching(/^The setup command is done\. It took /),
      ]);
      expect(await life.text(`${session.path}/logs?follow=0`)).toContain(
        " setup the output of the command\n",
      );
      await session.stop();
      // A new sandbox runs it anew, and says so.
      await session.call("POST", "restart");
      const notes = async () => textsOf(await itemsOf(session), "note");
      const ends = async () =>
        (await notes()).filter((text) => text.startsWith("The setup command is done."));
      await expect.poll(ends, POLL).toHaveLength(2);
      await session.stop();
    },
    TEST_MS,
  );

  it(
    "tells the agent and the people why it failed",
    async () => {
      const { session, items } = await answered("echo the reason\nexit 7", "run: true");
      expect(textsOf(items, "note").at(-1)).toContain("The setup command failed: it ended with exit code 7.");
      // The person's message is shown as it was written.
      expect(
        textsOf(
          items.filter(({ role }) => role === "user"),
          "message",
        ),
      ).toEqual(["run: true"]);
      const [first] = (await session.call("GET", "runtime/session")) as unknown as readonly Json[];
      const sent = JSON.stringify(
        await session.call("GET", `runtime/session/${String(first?.["id"])}/message`),
      );
      expect(sent).toContain("It failed: it ended with exit code 7.");
      expect(sent).toContain("the reason");
      await session.stop();
    },
    TEST_MS,
  );

  it(
    "lets a message wait, and tells an agent without a first prompt before it",
    async () => {
      const repository = await installation.repository('[environment]\nsetup = "sleep 4; exit 3"\n');
      const session = await LiveSession.startIn(life, await life.project(repository));
      await session.call("POST", "messages", { id: randomUUID(), text: "run: echo asked" });
      await expect.poll(() => isAnswered(session), POLL).toBe(true);
      const items = await itemsOf(session);
      const known = items.findIndex(({ content }) => content[0]?.text.startsWith("The agent knows") === true);
      expect(known).toBeGreaterThan(-1);
      expect(items.findIndex(({ kind }) => kind === "tool")).toBeGreaterThan(known);
      await session.stop();
    },
    TEST_MS,
  );
});
