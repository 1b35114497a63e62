/** The own subscription of a session's person in a real daemon: only its runtime has it, and it can be withdrawn. */
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { LaunchAgent, LaunchSubscription } from "../../../src/domain/sandbox/launch.ts";
import { daemonPerTest } from "../support/per-test.ts";
import { isThere, type Running } from "../support/running.ts";

const { ready } = daemonPerTest();

const TOKEN = "sk-ant-oat-canary-of-a-subscription";
const AUTH = JSON.stringify({ tokens: { access_token: "canary-access-token-0001" } });
const REASON = "Ben sent a message to the agent.";

const agentWith = (subscription: Partial<LaunchSubscription>): LaunchAgent => ({
  mode: null,
  instructions: null,
  variables: { WHERE: "provider" },
  files: { "settings.json": "of the provider" },
  subscription: {
    title: "Test subscription",
    content: TOKEN,
    variable: null,
    file: null,
    isRenewed: false,
    traces: [],
    variables: { WHERE: "subscription" },
    files: { "settings.json": "of the subscription" },
    ...subscription,
  },
});
const withFile = agentWith({
  content: AUTH,
  file: ".agent/auth.json",
  isRenewed: true,
  traces: [".agent/trace"],
});
const home = (daemon: Running, file: string): string => join(daemon.directory, "home", file);

const asked = async (daemon: Running, path: string): Promise<Record<string, string>> =>
  JSON.parse((await daemon.ask(path)).body) as Record<string, string>;

describe("a token", () => {
  test("is a variable of the runtime alone in place of what points it to a provider, until it is withdrawn", async () => {
    const daemon = await ready({ agent: agentWith({ variable: "TEST_TOKEN" }) });
    expect(await asked(daemon, "/environment")).toMatchObject({ TEST_TOKEN: TOKEN, WHERE: "subscription" });
    expect(readFileSync(join(daemon.directory, "settings.json"), "utf8")).toBe("of the subscription");
    await daemon.ask("/say", { method: "POST", body: JSON.stringify([`${TOKEN}\n`]) });
    await daemon.logged("output", { line: "[redacted]" });
    expect(daemon.output).not.toContain(TOKEN);

    // It is taken from the runtime, and from each process that it left behind; then there is nothing to withdraw, and no restart.
    const { left } = await asked(daemon, "/leave");
    expect(await daemon.control("withdraw", { reason: REASON })).toEqual([200, { withdrawn: true }]);
    expect(isThere(Number(left))).toBe(false);
    await expect.poll(async () => (await daemon.health()).status).toBe("ready");
    const after = await asked(daemon, "/environment");
    expect(after).toMatchObject({ WHERE: "provider" });
    expect(after).not.toHaveProperty("TEST_TOKEN");
    expect(readFileSync(join(daemon.directory, "settings.json"), "utf8")).toBe("of the provider");
    const { restarts } = (await daemon.health()).runtime;
    expect(await daemon.control("withdraw", { reason: REASON })).toEqual([200, { withdrawn: false }]);
    expect((await daemon.health()).runtime.restarts).toBe(restarts);
  });
});

describe("a file", () => {
  test("is readable for the agent's user alone, and gone after it was withdrawn, with what was made of it", async () => {
    const daemon = await ready({ agent: withFile });
    const file = home(daemon, ".agent/auth.json");
    expect(readFileSync(file, "utf8")).toBe(AUTH);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    writeFileSync(home(daemon, ".agent/trace"), "made of it");
    expect(await daemon.control("withdraw", { reason: REASON })).toEqual([200, { withdrawn: true }]);
    expect([file, home(daemon, ".agent/trace")].map((one) => existsSync(one))).toEqual([false, false]);
    expect(daemon.service.renewed).toEqual([]);
  });

  test("that the runtime has renewed is given back before it is withdrawn, and its secrets are masked", async () => {
    const daemon = await ready({ agent: withFile });
    const renewed = JSON.stringify({ tokens: { access_token: "canary-access-token-0002" } });
    writeFileSync(home(daemon, ".agent/auth.json"), renewed);
    await daemon.control("withdraw", { reason: REASON });
    expect(daemon.service.renewed).toEqual([renewed]);
    await expect.poll(async () => (await daemon.health()).status).toBe("ready");
    await daemon.ask("/say", { method: "POST", body: JSON.stringify(["it is canary-access-token-0002\n"]) });
    await daemon.logged("output", { line: "it is [redacted]" });
  });

  test("that the runtime has renewed stays when its process starts again (O1)", async () => {
    const daemon = await ready({ agent: withFile });
    const renewed = JSON.stringify({ tokens: { access_token: "canary-access-token-0003" } });
    writeFileSync(home(daemon, ".agent/auth.json"), renewed);
    await daemon.ask("/crash");
    await expect
      .poll(async () => (await daemon.health()).runtime)
      .toMatchObject({ state: "ready", restarts: 1 });
    expect(readFileSync(home(daemon, ".agent/auth.json"), "utf8")).toBe(renewed);
  });
});
