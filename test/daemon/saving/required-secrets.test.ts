/** What the session's log says of secrets that the manifest at the session's commit requires. */
import { afterEach, expect, test } from "vitest";
import { Running, type RunOptions } from "../support/running.ts";

let running: Running | null = null;
const start = async (options: RunOptions): Promise<Running> => {
  running = await Running.start(options);
  await running.logged("ready");
  return running;
};
afterEach(async () => {
  await running?.dispose();
  running = null;
});

const files = { "platform.toml": '[env]\nrequired = ["HERE", "NEEDED"]\n' };

test("a boot without a required secret logs its name", async () => {
  const daemon = await start({ files, agentEnv: { HERE: "a value" } });
  const { message } = await daemon.logged("secrets missing");
  expect(message).toBe(
    "The manifest requires the secret NEEDED, but it has no value. Set it with `platform secrets set NEEDED`.",
  );
});

test("a boot with all required secrets logs nothing about them", async () => {
  const daemon = await start({ files, agentEnv: { HERE: "a value", NEEDED: "a value" } });
  expect(daemon.log.filter(({ event }) => event === "secrets missing")).toEqual([]);
});
