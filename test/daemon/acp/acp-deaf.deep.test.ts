/** An agent that cannot be stopped, in a daemon: its process is ended, and the conversation goes on. */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { POLL, Steered } from "../support/steered.ts";

const AGENT = fileURLToPath(new URL("../support/deaf-agent.ts", import.meta.url));

let steered: Steered;
beforeAll(async () => {
  steered = await Steered.start({}, { adapter: "acp", command: () => [process.execPath, AGENT] });
});
afterAll(() => steered.stop());

test("an agent that hears nothing and ignores SIGTERM ends with its turn, and another one takes the next message", async () => {
  const first = await steered.deliver("m1", "deaf");
  await expect.poll(() => JSON.stringify(steered.answersTo("m1")), POLL).toContain("I heard deaf");
  const [before] = [(await steered.daemon.health()).runtime.pid];
  // The input's end is seen when something is written.
  await steered.call("interrupt", { turn: first });
  await steered.ended(first);
  await steered.endedAs({ state: "interrupted", error: { code: "agent_not_stopping" } });
  expect(steered.items.filter(({ kind }) => kind === "note")).toMatchObject([
    { status: "failed", error: { code: "agent_not_stopping" } },
  ]);
  const second = await steered.deliver("m2", "hello");
  await steered.ended(second);
  expect(steered.answersTo("m2")).toMatchObject([
    { status: "completed", content: [{ text: "I heard hello" }] },
  ]);
  expect((await steered.daemon.health()).runtime.pid).not.toBe(before);
  expect(steered.daemon.output).not.toContain("ERR_STREAM");
});
