/** Own subscriptions in real sandboxes: two small programs stand for a runtime with a token and one with a file that it renews. */
import { randomUUID } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { installedAt } from "../../../src/domain/runtimes/installed.ts";
import { CLAUDE_CODE } from "../../../src/domain/runtimes/claude-code.ts";
import { CODEX } from "../../../src/domain/runtimes/codex.ts";
import type { Runtime } from "../../../src/domain/runtimes/runtime.ts";
import { RuntimeStore } from "../../../src/sandbox/runtimes/store.ts";
import { TEST_MS } from "../../support/patience.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { LiveSession, POLL } from "../../support/service/sessions/live-session.ts";
import { Installation, type Json, type Life } from "../../support/service/process-service.ts";
import { useRunDatabase } from "../../support/service/run-database.ts";

const TOKEN = "sk-ant-oat01-canary-of-ann";
const auth = (access_token: string, at: string): string =>
  JSON.stringify({
    last_refresh: at,
    tokens: { access_token, refresh_token: `refresh-of-${access_token}`, account_id: "acc-1" },
  });
const FIRST = auth("canary-first-access-token", "2026-01-01T00:00:00Z");
const RENEWED = auth("canary-second-access-token", "2026-01-02T00:00:00Z");

/** An agent that says what it finds of its sign-in, renews its file, and leaves a process behind. */
const PROGRAM = `
const { existsSync, readFileSync, readdirSync, statSync, writeFileSync } = require("node:fs");
const { spawn } = require("node:child_process");
const file = process.env.HOME + "/.codex/auth.json";
const ACTS = {
  look: () => {
    const { CLAUDE_CODE_OAUTH_TOKEN: token = "none", ANTHROPIC_BASE_URL: provider = "none" } = process.env;
    const mode = existsSync(file) ? (statSync(file).mode & 0o777).toString(8) : "none";
    const kept = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")).last_refresh : "none";
    return ["token", token.length, "provider", provider, "file", mode, kept].join(" ") + " " + (token === "none" ? "" : token);
  },
  renew: () => (writeFileSync(file, ${JSON.stringify(RENEWED)}), "renewed canary-second-access-token"),
  leave: () => "left " + spawn("sleep", ["7199"], { detached: true, stdio: "ignore" }).pid,
  count: () => {
    const commands = readdirSync("/proc").filter((name) => existsSync("/proc/" + name + "/cmdline"));
    return "sleeping " + commands.filter((name) => readFileSync("/proc/" + name + "/cmdline", "utf8").includes("7199")).length;
  },
};
const send = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));
const RESULTS = {
  initialize: () => ({ protocolVersion: 1, agentCapabilities: {} }),
  "session/new": () => ({ sessionId: "s" }),
  "session/set_mode": () => ({}),
  "session/prompt": ({ prompt }) => {
    const act = ACTS[prompt.at(-1).text.trim()] ?? (() => "heard");
    const content = { type: "text", text: act() };
    send({ method: "session/update", params: { sessionId: "s", update: { sessionUpdate: "agent_message_chunk", content } } });
    return { stopReason: "end_turn" };
  },
};
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id !== undefined && method in RESULTS) send({ id, result: RESULTS[method](params) });
});
`;

const MANIFEST = '[agents.token]\nruntime = "claude-code"\n\n[agents.file]\nruntime = "codex"\n';

/** The program in the place of a runtime's package on this node. */
const install = async (images: string, { name, packaged }: Runtime): Promise<void> => {
  if (packaged === null || packaged === "entry") throw new Error(`${name} has no package`);
  const store = new RuntimeStore(path.join(images, "runtimes"));
  const draft = await store.openDraft();
  const root = path.join(draft, "root");
  const words = installedAt(packaged, { place: root, node: "node", arch: process.arch, files: "" });
  for (const file of [...words.command, ...Object.values(words.variables)].filter((one) =>
    one.startsWith(root),
  )) {
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, PROGRAM, { mode: 0o755 });
  }
  const digest = `sha256:${name.length.toString(16).padStart(64, "0")}`;
  await store.keep(draft, name, {
    digest,
    version: "1.0.0",
    integrity: "sha512-none",
    packages: 1,
    bytes: 1,
  });
};

const itemsOf = async (session: LiveSession) =>
  (await session.call("GET", "conversation"))["items"] as readonly Json[];

describe.runIf(sandboxesStartHere)("an own subscription in a real sandbox", () => {
  const database = useRunDatabase();
  let installation: Installation;
  let life: Life;
  let images: string;
  let pid: string;
  let ben: string;

  beforeAll(async () => {
    installation = await Installation.open();
    // The users of sandboxes read what is in it.
    images = mkdtempSync(path.join(tmpdir(), "images-"));
    chmodSync(images, 0o755);
    await install(images, CLAUDE_CODE);
    await install(images, CODEX);
    life = await installation.start({
      ...database(),
      PLATFORM_IMAGES_DIR: images,
      PLATFORM_LLM_TIERS: "[]",
      PLATFORM_AGENT_RUNTIMES: "claude-code,codex",
    });
    const provider = { name: "acme", kind: "anthropic", key: "k", models: ["large"], try: false };
    await life.call("POST", "/v1/model-providers", provider);
    pid = await life.project(await installation.repository(MANIFEST));
    await life.call("PUT", "/v1/me/subscriptions/claude-code", { content: TOKEN });
    await life.call("PUT", "/v1/me/subscriptions/codex", { content: FIRST });
    ben = await member("Ben");
  }, TEST_MS);
  afterAll(async () => {
    await life?.end("SIGTERM");
    await installation?.close();
    rmSync(images, { recursive: true, force: true });
  }, TEST_MS);

  /** The token of another member. */
  const member = async (name: string): Promise<string> => (await life.member(pid, name)).token;
  /** What the agent says to a message. */
  const told = async (session: LiveSession, text: string, token?: string): Promise<string> => {
    const id = randomUUID();
    const body = { id, text };
    await (token === undefined
      ? session.call("POST", "messages", body)
      : life.call("POST", `${session.path}/messages`, body, token));
    const answer = async () =>
      (await itemsOf(session)).find(
        ({ role, status, turn_id: turn }) => role === "agent" && status === "completed" && turn === id,
      );
    await expect.poll(answer, POLL).toBeDefined();
    return JSON.stringify((await answer())?.["content"]);
  };

  it(
    "is a variable of the runtime, is masked, and is gone with its processes before another person's message is heard",
    async () => {
      const session = await LiveSession.startIn(life, pid, { agent_name: "token" });
      const own = await told(session, "look");
      expect(own).toContain(`token ${TOKEN.length} provider none`);
      expect(own).toContain("[redacted]");
      expect(await told(session, "leave")).toContain("left");
      expect(await told(session, "count")).toContain("sleeping 1");
      expect(await told(session, "look", ben)).toContain(
        "token 4 provider http://llm.platform.internal/acme",
      );
      expect(await told(session, "count")).toContain("sleeping 0");
      const all = JSON.stringify(await itemsOf(session));
      expect(all).toContain("Ben sent a message to the agent, so the own subscription");
      expect(all).not.toContain(TOKEN);
      expect(life.log.join("\n")).not.toContain(TOKEN);
      await session.stop();
    },
    TEST_MS,
  );

  it(
    "is a file of the agent's user, which is taken back renewed after a turn, and is brought to the next sandbox",
    async () => {
      const session = await LiveSession.startIn(life, pid, { agent_name: "file" });
      expect(await told(session, "look")).toContain("file 600 2026-01-01T00:00:00Z");
      await told(session, "renew");
      const kept = async () => {
        const { subscriptions } = await life.call("GET", "/v1/me/subscriptions");
        return (subscriptions as readonly Json[]).find(({ runtime }) => runtime === "codex")?.["renewed_at"];
      };
      await expect.poll(kept, POLL).toMatch(/^\d{4}-/);
      await session.stop();
      const next = await LiveSession.startIn(life, pid, { agent_name: "file" });
      expect(await told(next, "look")).toContain("file 600 2026-01-02T00:00:00Z");
      expect(await told(next, "look", ben)).toContain("file none");
      await next.stop();
    },
    TEST_MS,
  );
});
