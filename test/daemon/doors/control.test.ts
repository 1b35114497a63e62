/** The control surface of a real daemon: what it takes, `POST /platform/env`, and that its calls take turns (api.md 7). */
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { request, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isThere, Running } from "../support/running.ts";
import { daemonPerTest } from "../support/per-test.ts";
import { WAIT_MS } from "../../support/patience.ts";

const { ready } = daemonPerTest();

const CONTROLS = ["refresh", "env", "withdraw"] as const;

const environmentOf = async (daemon: Running): Promise<Record<string, string>> =>
  JSON.parse((await daemon.ask("/environment")).body) as Record<string, string>;

/** Half a MiB and more of variables. */
const part = (letter: string): Record<string, string> =>
  Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`${letter}${index}`, "x".repeat(64 * 1024)]));

/** One daemon takes all of them: none restarts its runtime. */
describe("every control path", () => {
  let daemon: Running;
  beforeAll(async () => {
    daemon = await Running.start();
    await daemon.logged("ready");
  });
  afterAll(() => daemon.dispose());

  test("requires a signed context before it reads the body [A04]", async () => {
    for (const name of CONTROLS) {
      for (const headers of [
        {},
        { "x-platform-user-context": daemon.context({ token: "platform_sbx_another" }) },
      ]) {
        const { status, body } = await daemon.ask(`/platform/${name}`, {
          method: "POST",
          headers,
          body: "{no json",
        });
        expect([status, JSON.parse(body)]).toMatchObject([401, { code: "invalid_user_context" }]);
      }
    }
    expect((await daemon.health()).runtime.restarts).toBe(0);
  });

  test("refuses bodies that are not JSON, have another shape or are too long, and does nothing", async () => {
    const long = JSON.stringify({ revision: "2", env: { A: "x".repeat(1024 * 1024) } });
    for (const name of CONTROLS) {
      for (const [body, expected] of [
        ["{no json", [400, "invalid_request"]],
        ["[]", [400, "invalid_request"]],
        ["null", [400, "invalid_request"]],
        ['{"unknown": 1}', [400, "invalid_request"]],
        [long, [413, "body_too_large"]],
      ] as const) {
        const [status, { code }] = await daemon.control(name, body);
        expect([name, body.slice(0, 20), status, code]).toEqual([name, body.slice(0, 20), ...expected]);
      }
    }
    expect((await daemon.health()).runtime.restarts).toBe(0);
  });

  test("refuses a body without a length once it exceeds the limit", async () => {
    const { status, body } = await daemon.ask("/platform/env", {
      method: "POST",
      headers: { "x-platform-user-context": daemon.context(), "transfer-encoding": "chunked" },
      body: " ".repeat(1024 * 1024 + 1),
    });
    expect([status, JSON.parse(body)]).toMatchObject([413, { code: "body_too_large" }]);
  });

  test("accepts a body that waits for 100 Continue, and accepts only POST", async () => {
    const body = '{"revision": "1", "env": {}}';
    const call = request({
      socketPath: daemon.layout.socket,
      path: "/platform/env",
      method: "POST",
      headers: {
        "x-platform-user-context": daemon.context(),
        expect: "100-continue",
        "content-length": body.length,
      },
      agent: false,
    });
    call.flushHeaders();
    await once(call, "continue");
    call.end(body);
    const [answer] = (await once(call, "response")) as [IncomingMessage];
    expect(answer.resume().statusCode).toBe(200);
    for (const name of CONTROLS) {
      expect((await daemon.ask(`/platform/${name}`)).status).toBe(405);
      expect((await daemon.ask(`/platform/${name}/`, { method: "POST", body: "{}" })).status).toBe(404);
    }
  });

  test("an abort without a run in progress is answered, and twice counts once [X20, A02]", async () => {
    for (let time = 0; time < 2; time += 1)
      expect(await daemon.control("abort")).toEqual([200, { aborted: false }]);
    expect((await daemon.health()).runtime.restarts).toBe(0);
  });
});

test("a secret that was set before its name became reserved boots, is overridden, and can be removed", async () => {
  const daemon = await ready({
    agentEnv: { AGENT_CONFIG_DIR: "/nowhere", GIT_CONFIG_SYSTEM: "/nowhere", HTTP_PROXY: "http://nowhere" },
  });
  expect(await environmentOf(daemon)).toMatchObject({ GIT_CONFIG_SYSTEM: daemon.layout.gitConfigFile });
  const env = { AGENT_CONFIG_DIR: null, GIT_CONFIG_SYSTEM: null, HTTP_PROXY: null };
  const [status, answer] = await daemon.control("env", { revision: "2", env });
  expect([status, answer["changed"]]).toEqual([200, Object.keys(env)]);
});

/** One daemon takes all of them: what is refused leaves nothing behind. */
describe("a change of the environment is refused", () => {
  let daemon: Running;
  beforeAll(async () => {
    daemon = await Running.start({ agentEnv: { KEPT: "kept value", TAKEN: "taken value" } });
    await daemon.logged("ready");
  });
  afterAll(() => daemon.dispose());

  test.each([
    ["PLATFORM_TOKEN", "reserved_name"],
    ["platform_x", "reserved_name"],
    ["LD_PRELOAD", "unsafe_name"],
    ["NODE_OPTIONS", "unsafe_name"],
    ["PATH", "unsafe_name"],
    ["HTTP_PROXY", "unsafe_name"],
    ["lower", "invalid_name"],
    ["A=B", "invalid_name"],
    ["", "invalid_name"],
    ["A,B", "invalid_name"],
    ["__proto__", "invalid_name"],
  ])("of the name %j, for the whole set and for a removal [X18, S01, S02, S03, S05]", async (name, code) => {
    for (const value of code === "unsafe_name" ? ['"a value"'] : ['"a value"', "null"]) {
      const body = `{"revision": "2", "env": {"GOOD": "good", ${JSON.stringify(name)}: ${value}}}`;
      const [status, answer] = await daemon.control("env", body);
      expect([status, answer["code"]]).toEqual([400, code]);
    }
    expect((await daemon.health()).runtime.restarts).toBe(0);
    expect(Object.keys(await environmentOf(daemon))).not.toContain("GOOD");
  });

  test.each([
    ["64 KiB and a byte", "x".repeat(64 * 1024 + 1), "invalid_value"],
    ["nothing", "", "invalid_value"],
    ["a NUL", "canary\0secret", "invalid_value"],
    ["a number", 7, "invalid_value"],
    ["an object", {}, "invalid_value"],
  ])("to %s, without quoting it [X18, S04]", async (_, value, code) => {
    const [status, answer] = await daemon.control("env", { revision: "2", env: { A: value } });
    expect([status, answer["code"]]).toEqual([400, code]);
    expect(JSON.stringify(answer)).not.toMatch(/canary|xxx/);
  });

  test("with an after_turn that is neither true nor false", async () => {
    const [status, { code }] = await daemon.control("env", { revision: "2", env: { A: "x" }, after_turn: 1 });
    expect([status, code]).toEqual([400, "invalid_request"]);
  });

  test("without a revision", async () => {
    for (const revision of [undefined, null, 2, "", "a b", "x".repeat(129)]) {
      const [status, { code }] = await daemon.control("env", { revision, env: {} });
      expect([revision, status, code]).toEqual([revision, 400, "invalid_request"]);
    }
  });
});

describe("a change of the environment", () => {
  const secrets = { agentEnv: { KEPT: "kept value", TAKEN: "taken value" } };

  test("is in the restarted runtime's environment, with names and revision, before the answer", async () => {
    const daemon = await ready({
      ...secrets,
      environment: { PLATFORM_PROJECT_SECRET_NAMES: "KEPT,TAKEN", PLATFORM_PROJECT_SECRETS_REVISION: "1" },
    });
    const env = { ADDED: "line one\nline twö", TAKEN: null, KEPT: "kept value", NEVER_THERE: null };
    expect(await daemon.control("env", { revision: "2", env })).toEqual([
      200,
      { changed: ["ADDED", "TAKEN"], revision: "2", restarted: true, turn_interrupted: false },
    ]);
    const environment = await environmentOf(daemon);
    expect(environment).toMatchObject({
      ADDED: "line one\nline twö",
      KEPT: "kept value",
      PLATFORM_PROJECT_SECRET_NAMES: "ADDED,KEPT",
      PLATFORM_PROJECT_SECRETS_REVISION: "2",
    });
    expect(Object.keys(environment)).not.toContain("TAKEN");
    expect((await daemon.health()).runtime).toMatchObject({ state: "ready", restarts: 1 });
  });

  test("is in no log, and the runtime's output does not show its values [S06]", async () => {
    const daemon = await ready();
    const value = "a-canary-of-the-environment";
    await daemon.control("env", { revision: "2", env: { PROJECT_SECRET: value } });
    await daemon.ask("/crash");
    await daemon.logged("agent runtime", { state: "ready", run: 3 });
    expect((await daemon.health()).runtime.last_exit?.output).toContain("about to crash with [redacted]");
    expect(daemon.output).not.toContain(value);
    expect(daemon.output).toContain("PROJECT_SECRET");
  });

  test("is still present after the next crash", async () => {
    const daemon = await ready(secrets);
    await daemon.control("env", { revision: "2", env: { ADDED: "added value" } });
    await daemon.ask("/crash").catch(() => undefined);
    await daemon.logged("agent runtime", { state: "ready", run: 3 });
    expect((await environmentOf(daemon))["ADDED"]).toBe("added value");
  });

  test("that the runtime does not survive is reported, and is not undone", async () => {
    const flag = "FAILS";
    const script = `[ -z "$${flag}" ] || exit 7; exec "$@"`;
    const daemon = await ready({ prefix: ["sh", "-c", script, "prefix"] });
    // It is told after some crashes in a row, long before the machine gives the runtime up.
    const [status, answer] = await daemon.control("env", { revision: "2", env: { [flag]: "1" } });
    expect([status, answer]).toMatchObject([
      502,
      { code: "runtime_failed", details: { changed: [flag], revision: "2", restarted: true } },
    ]);
    expect((await daemon.control("env", { revision: "3", env: { [flag]: null } }))[0]).toBe(200);
  });
});

/** One daemon gets one after another: their revisions grow. */
describe("a further change of the environment", () => {
  let daemon: Running;
  beforeAll(async () => {
    daemon = await Running.start({ agentEnv: { KEPT: "kept value", TAKEN: "taken value" } });
    await daemon.logged("ready");
  });
  afterAll(() => daemon.dispose());

  test("with the same revision changes nothing, sequentially or concurrently [A02]", async () => {
    const change = { revision: "2", env: { ADDED: "first value" } };
    const answers = await Promise.all([daemon.control("env", change), daemon.control("env", change)]);
    expect(answers.map(([, { restarted }]) => restarted).toSorted()).toEqual([false, true]);
    const [status, answer] = await daemon.control("env", { revision: "2", env: { ADDED: "second value" } });
    expect([status, answer]).toEqual([
      200,
      { changed: [], revision: "2", restarted: false, turn_interrupted: false },
    ]);
    expect((await environmentOf(daemon))["ADDED"]).toBe("first value");
    expect((await daemon.health()).runtime.restarts).toBe(1);
  });

  test("that is repeated after a newer one undoes nothing [A02]", async () => {
    await daemon.control("env", { revision: "9", env: { ADDED: "older value" } });
    await daemon.control("env", { revision: "10", env: { ADDED: "newer value" } });
    const [, answer] = await daemon.control("env", { revision: "9", env: { ADDED: "older value" } });
    expect(answer).toMatchObject({ revision: "10", restarted: false });
    expect((await environmentOf(daemon))["ADDED"]).toBe("newer value");
  });

  test("that changes no value stores the revision and restarts nothing", async () => {
    expect((await daemon.control("env", { revision: "11", env: { KEPT: "kept value" } }))[1]).toMatchObject({
      changed: [],
      restarted: false,
    });
    await daemon.control("refresh");
    expect((await environmentOf(daemon))["PLATFORM_PROJECT_SECRETS_REVISION"]).toBe("11");
  });

  test("keeps uncommitted work", async () => {
    const file = join(daemon.layout.workspace, "mine.txt");
    writeFileSync(file, "mine\n");
    await daemon.control("env", { revision: "12", env: { ADDED: "added value" } });
    expect(readFileSync(file, "utf8")).toBe("mine\n");
  });

  test("to more than 1 MiB in total is refused, even if each call is small enough [S04]", async () => {
    expect((await daemon.control("env", { revision: "13", env: part("A") }))[0]).toBe(200);
    const [status, { code }] = await daemon.control("env", { revision: "14", env: part("B") });
    expect([status, code]).toEqual([400, "secrets_too_large"]);
    expect(Object.keys(await environmentOf(daemon))).not.toContain("B0");
  });
});

test("calls run one at a time: each answer is true when it is given [A02]", async () => {
  const daemon = await ready();
  const after = daemon.pushFromElsewhere({ "new.txt": "new\n" });
  const answers = await Promise.all([
    daemon.control("refresh"),
    daemon.control("env", { revision: "1", env: { A: "first" } }),
    daemon.control("env", { revision: "2", env: { A: "second" } }),
  ]);
  expect(answers.map(([status]) => status)).toEqual([200, 200, 200]);
  expect(answers[0]?.[1]["repo"]).toMatchObject({ after });
  const { runtime } = await daemon.health();
  expect(runtime).toMatchObject({ state: "ready", restarts: 3 });
  expect((await environmentOf(daemon))["A"]).toBe("second");
});

test("processes that a call started end with the daemon", async () => {
  const daemon = await ready();
  const pid = join(daemon.directory, "filter-pid");
  daemon.pushFromElsewhere({ "a.slow": "x", ".gitattributes": "*.slow filter=slow\n" });
  await daemon.git("config", "filter.slow.smudge", `echo $$ > '${pid}'; sleep 1000`);
  const refreshing = daemon.control("refresh").catch(() => null);
  await expect.poll(() => existsSync(pid), { timeout: WAIT_MS }).toBe(true);
  const filter = Number(readFileSync(pid, "utf8"));
  expect(await daemon.end("SIGTERM")).toBe(0);
  expect(isThere(filter)).toBe(false);
  await refreshing;
});
