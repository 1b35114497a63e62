/**
 * The real agent runtime in a real sandbox uses a tool of a connector, with a credential that is nowhere in the sandbox and nowhere
 * in plain text in the service's files. The service is killed in between, or has no gateway when the runtime starts.
 */
import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { followLink, hasChromium, launch, newPage } from "../../dashboard/browser-window.ts";
import { filesWith } from "../../support/machine/files-with.ts";
import { startMcpServer, textResult, type McpServer } from "../../support/servers/mcp-server.ts";
import { promptOf, TalkingModel } from "../../support/servers/talking-model.ts";
import { commitToSample } from "../../support/service/sessions/live-session.ts";
import { Installation, type Json, type Life } from "../../support/service/process-service.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { TEST_MS, WAIT_MS } from "../../support/patience.ts";
import { deepTest } from "../../support/vitest/rings.ts";

const POLL = { timeout: WAIT_MS, interval: 100 };
const CREDENTIAL = "credential-of-the-wiki-42";
/** Finds the credential, and not itself. */
const PATTERN = "credential-of-the-wik[i]-42";
/** The credential is as new as the test, so only a file that has changed since can hold it. Both tries are within this time. */
const CHANGED_WITHIN_MINUTES = (2 * TEST_MS) / 60_000;
const SEARCH = [
  `changed=$(mktemp)`,
  `find / \\( -path /proc -o -path /sys -o -path /dev \\) -prune -o -type f -cmin -${CHANGED_WITHIN_MINUTES} -print0 2>/dev/null > $changed`,
  `found=$(xargs -0 grep -laE '${PATTERN}' < $changed 2>/dev/null)`,
  `running=$(cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | grep -caE '${PATTERN}')`,
  `echo "in files: [$found], in processes: $running"`,
].join("; ");

const manifest = (url: string): string => `
[[connectors]]
slug = "wiki"
kind = "mcp"
url = "${url}"
auth = "bearer"
direct = ["read"]
[[connectors.tools]]
match = "publish"
policy = "ask"
[[connectors.tools]]
match = "*"
policy = "allow"
`;

/** As a person does who looks at the session. */
const approveOnPage = async (life: Life, session: string): Promise<void> => {
  const browser = await launch();
  try {
    const { page } = await newPage(browser);
    await followLink(page, String((await life.call("POST", "/dashboard/links"))["url"]));
    await page.getByRole("heading", { name: "Home" }).waitFor();
    await page.goto(`${life.url}/${session}`);
    await page.getByRole("button", { name: "Approve: wiki publish" }).click();
    await page.getByText("wiki publish is approved.").waitFor();
    await page.getByText("The agent asks to call").waitFor({ state: "detached" });
  } finally {
    await browser.close();
  }
};

const step = (name: string, given: object) => ({ tools: [[name, given]] as const });

describe.runIf(sandboxesStartHere)("an agent in a sandbox", () => {
  const model = new TalkingModel();
  let server: McpServer;
  let installation: Installation;
  let life: Life;
  let settings: Readonly<Record<string, string>>;
  let pid = "";
  beforeAll(async () => {
    server = await startMcpServer([
      { name: "read", description: "Reads a page of the wiki." },
      { name: "write", description: "Writes a page of the wiki." },
      { name: "publish", description: "Publishes a page of the wiki." },
    ]);
    // A server that echoes what it gets.
    server.answers.set("read", ({ headers }) => textResult(`the page, asked with ${headers.authorization}`));
    installation = await Installation.open();
    settings = {
      PLATFORM_LLM_BASE_URL: await model.start(),
      PLATFORM_CONNECTOR_ALLOW_HOSTS: "127.0.0.1",
    };
    const file = path.join(installation.directory, "platform.toml");
    const known = path.join(installation.sample, "platform.toml");
    writeFileSync(file, `${readFileSync(known, "utf8")}\n${manifest(server.url)}`);
    commitToSample(installation, { "platform.toml": file });
    life = await installation.start(settings);
    pid = await life.project(installation.sample);
    const connector = `/v1/projects/${pid}/connectors/wiki`;
    await life.call("PUT", `${connector}/credential`, { value: CREDENTIAL });
    const { pin } = await life.call("GET", `${connector}/catalogue`);
    await life.call("POST", `${connector}/catalogue`, { action: "accept", pin });
  }, TEST_MS);
  afterAll(async () => {
    await life?.end("SIGTERM");
    await installation?.close();
    await server?.close();
    model.stop();
  }, TEST_MS);

  const calls = async (): Promise<readonly Json[]> =>
    (await life.call("GET", `/v1/projects/${pid}/executor/calls`))["calls"] as readonly Json[];

  /** Sends a message. @returns the conversation after the agent's answer. */
  const answerTo = async (target: string, text: string): Promise<string> => {
    const message = randomUUID();
    await life.call("POST", `${target}/messages`, { id: message, text });
    const isAnswered = async () =>
      ((await life.call("GET", `${target}/conversation`))["items"] as readonly Json[]).some(
        ({ turn_id: turn, role, kind }) => turn === message && role === "agent" && kind === "message",
      );
    await expect.poll(isAnswered, POLL).toBe(true);
    return life.text(`${target}/conversation.json`);
  };

  it(
    "uses a connector's tool by name and by search, also after the service was killed, and finds no credential",
    async () => {
      server.calls.length = 0;
      const prompt = promptOf([
        step("platform-executor_wiki_read", { page: "home" }),
        step("platform-executor_find_tools", { query: "write" }),
        step("platform-executor_call_tool", { name: "wiki_write", arguments: { page: "home" } }),
        { say: "Written." },
      ]);
      const sessions = `/v1/projects/${pid}/sessions`;
      const { id } = await life.call("POST", sessions, { initial_prompt: prompt });
      const target = `${sessions}/${String(id)}`;
      const lastTurn = async () => (await life.call("GET", target))["last_turn"];
      await expect.poll(lastTurn, POLL).toMatchObject({ state: "completed", error: null });
      expect(server.calls.map(({ tool, arguments: given }) => [tool, given])).toEqual([
        ["read", { page: "home" }],
        ["write", { page: "home" }],
      ]);
      expect(server.calls.map(({ headers }) => headers.authorization)).toEqual([
        `Bearer ${CREDENTIAL}`,
        `Bearer ${CREDENTIAL}`,
      ]);
      expect((await calls()).slice(0, 2).map(({ tool, outcome }) => [tool, outcome])).toEqual([
        ["write", "ok"],
        ["read", "ok"],
      ]);

      await life.end("SIGKILL");
      life = await installation.start(settings);
      const second = promptOf([
        step("platform-executor_wiki_read", { page: "again" }),
        step("bash", { command: SEARCH, description: "Search" }),
        { say: "Searched." },
      ]);
      await life.call("POST", `${target}/messages`, { id: randomUUID(), text: second });
      const conversation = (): Promise<string> => life.text(`${target}/conversation.json`);
      await expect.poll(conversation, POLL).toContain("in files: [], in processes: 0");
      expect(server.calls.at(-1)?.arguments).toEqual({ page: "again" });
      const everything = [
        await conversation(),
        await life.text(`${target}/logs?follow=0`),
        JSON.stringify(await calls()),
      ].join("\n");
      expect(everything).toContain("the page, asked with Bearer [redacted]");
      expect(everything).not.toContain(CREDENTIAL);
      // The rows and the journal of the database, and what the service keeps of the sandbox.
      expect(filesWith(CREDENTIAL, installation.dataDir)).toEqual([]);
      await life.call("POST", `${target}/stop`);
    },
    TEST_MS,
  );

  deepTest(
    "gets the result of a call that a person approves while it waits, and of one that is approved after a kill",
    async () => {
      server.calls.length = 0;
      server.answers.set("publish", ({ arguments: given }) =>
        textResult(`published ${(given as Json)["page"] as string}`),
      );
      const approvals = `/v1/projects/${pid}/approvals`;
      const found = async () =>
        ((await life.call("GET", `${approvals}?status=pending`))["approvals"] as readonly Json[])[0];
      const waiting = async (page: string): Promise<string> => {
        await expect.poll(found, POLL).toMatchObject({ tool: "publish", arguments: { page } });
        return String((await found())?.["id"]);
      };
      const prompt = promptOf([
        step("platform-executor_call_tool", { name: "wiki_publish", arguments: { page: "one" } }),
        { say: "The first is done." },
      ]);
      const sessions = `/v1/projects/${pid}/sessions`;
      const { id } = await life.call("POST", sessions, { initial_prompt: prompt });
      const target = `${sessions}/${String(id)}`;
      const conversation = (): Promise<string> => life.text(`${target}/conversation.json`);
      const first = await waiting("one");
      if (hasChromium) await approveOnPage(life, `#/projects/${pid}/sessions/${String(id)}`);
      else await life.call("POST", `${approvals}/${first}/approve`);
      await expect.poll(conversation, POLL).toContain("published one");
      const lastTurn = async () => (await life.call("GET", target))["last_turn"];
      await expect.poll(lastTurn, POLL).toMatchObject({ state: "completed", error: null });

      const second = promptOf([
        step("platform-executor_call_tool", { name: "wiki_publish", arguments: { page: "two" } }),
        { say: "The second is done." },
      ]);
      await life.call("POST", `${target}/messages`, { id: randomUUID(), text: second });
      const late = await waiting("two");
      await life.end("SIGKILL");
      life = await installation.start(settings);
      await life.call("POST", `${approvals}/${late}/approve`);
      await expect.poll(conversation, POLL).toContain("published two");
      const delivered = async () =>
        ((await life.call("GET", approvals))["approvals"] as readonly Json[]).map((one) => [
          one["id"] === late,
          one["status"],
          one["delivered_at"] !== null,
        ]);
      await expect.poll(delivered, POLL).toEqual([
        [true, "done", true],
        [false, "done", true],
      ]);
      expect(server.calls.map(({ arguments: given }) => given)).toEqual([{ page: "one" }, { page: "two" }]);
      const items = JSON.parse(await conversation()) as { readonly items: readonly Json[] };
      const told = items.items.filter(({ author }) => (author as Json | null)?.["kind"] === "service");
      expect(told.filter(({ kind }) => kind === "message")).toHaveLength(1);
      // Each call says that it waits. Who approved it is a note of that person.
      expect(told.filter(({ kind }) => kind === "note")).toHaveLength(2);
      await life.call("POST", `${target}/stop`);
    },
    TEST_MS,
  );

  deepTest(
    "has tools in the session that began while the gateway was away",
    async () => {
      await life.end("SIGTERM");
      life = await installation.start(settings, "shut");
      server.calls.length = 0;
      const read = promptOf([step("platform-executor_wiki_read", { page: "home" }), { say: "Tried." }]);
      const refused = life.refusal();
      const sessions = `/v1/projects/${pid}/sessions`;
      const { id } = await life.call("POST", sessions, { initial_prompt: read });
      const target = `${sessions}/${String(id)}`;
      await refused;
      const lastTurn = async () => (await life.call("GET", target))["last_turn"];
      await expect.poll(lastTurn, POLL).toMatchObject({ state: "completed", error: null });
      expect(server.calls).toEqual([]);
      life.openGateway();
      // opencode connects again in a moment. Before that, its model is told that the tool does not exist.
      await expect.poll(() => answerTo(target, read), POLL).toContain("the page, asked with");
      expect(server.calls[0]).toMatchObject({ tool: "read", arguments: { page: "home" } });
      await life.call("POST", `${target}/stop`);
    },
    TEST_MS,
  );

  deepTest(
    "starts a session with the platform's own tool, and sees a connector's tool that is accepted in mid-session",
    async () => {
      server.tools = [...server.tools, { name: "late", description: "Comes late." }];
      const connector = `/v1/projects/${pid}/connectors/wiki`;
      const changed = path.join(installation.directory, "late.toml");
      const known = path.join(installation.sample, "platform.toml");
      writeFileSync(
        changed,
        readFileSync(known, "utf8").replace('direct = ["read"]', 'direct = ["read", "late"]'),
      );
      commitToSample(installation, { "platform.toml": changed });
      pid = await life.project(installation.sample);
      const wiki = connector.replace(/projects\/[^/]+/, `projects/${pid}`);
      const accept = async () => {
        const { pin } = await life.call("GET", `${wiki}/catalogue`);
        await life.call("POST", `${wiki}/catalogue`, { action: "accept", pin });
      };
      await life.call("PUT", `${wiki}/credential`, { value: CREDENTIAL });
      const prompt = promptOf([
        step("platform-executor_call_tool", {
          name: "platform_start_session",
          arguments: { prompt: promptOf([{ say: "The child is done." }]), name: "the child" },
        }),
        { say: "The child is started." },
      ]);
      const sessions = `/v1/projects/${pid}/sessions`;
      const { id } = await life.call("POST", sessions, { initial_prompt: prompt });
      const target = `${sessions}/${String(id)}`;
      const lastTurn = async () => (await life.call("GET", target))["last_turn"];
      await expect.poll(lastTurn, POLL).toMatchObject({ state: "completed", error: null });
      const children = (await life.call("GET", `${sessions}?parent_session_id=${String(id)}`))["sessions"];
      expect(children).toEqual([expect.objectContaining({ name: "the child", parent_session_id: id })]);
      await accept();
      server.calls.length = 0;
      const late = promptOf([step("platform-executor_wiki_late", { page: "x" }), { say: "Called." }]);
      // The runtime hears of the tool in a moment. Before that, its model is told that the tool does not exist.
      await expect.poll(() => answerTo(target, late), POLL).toContain("late ran");
      expect(server.calls[0]).toMatchObject({ tool: "late", arguments: { page: "x" } });
      for (const one of [target, `${sessions}/${String((children as readonly Json[])[0]?.["id"])}`])
        await life.call("POST", `${one}/stop`);
    },
    TEST_MS,
  );
});
