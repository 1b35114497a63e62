/** Every agent runtime of an installation, with its real program, behind a provider of the account (docs/operate/runtimes.md). */
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import * as Effect from "effect/Effect";
import { afterAll, afterEach, beforeAll, describe, it } from "vitest";
import { addRuntime, listRuntimes } from "../../src/cli/operator/runtimes/runtimes.ts";
import { ACP } from "../../src/domain/runtimes/acp.ts";
import { CLAUDE_CODE } from "../../src/domain/runtimes/claude-code.ts";
import { CODEX } from "../../src/domain/runtimes/codex.ts";
import { GEMINI } from "../../src/domain/runtimes/gemini.ts";
import { OPENCODE } from "../../src/domain/runtimes/opencode.ts";
import type { Runtime } from "../../src/domain/runtimes/runtime.ts";
import { RUNTIME_CASES, type RuntimeSubject, Talk } from "../conformance/runtime.ts";
import { gitOk } from "../git/git-client.ts";
import { TalkingModel } from "../support/servers/talking-model.ts";
import { TEST_MS } from "../support/patience.ts";
import { sandboxesStartHere } from "../support/requirements.ts";
import { LiveSession } from "../support/service/live-session.ts";
import { Installation, type Json, type Life } from "../support/service/process-service.ts";
import { useRunDatabase } from "../support/service/run-database.ts";

/** The packages stay for the next run: together they have a gigabyte. */
const CACHE = path.resolve(import.meta.dirname, "../../node_modules/.cache/runtimes");
const KEY = "sk-canary-of-the-account";

interface Row extends RuntimeSubject {
  readonly record: Runtime;
  /** Null: it is not added. */
  readonly version: string | null;
  readonly table: string;
}

const row = (
  name: string,
  record: Runtime,
  { provider, version = null, table = "" }: { provider: string; version?: string | null; table?: string },
): Row => ({
  name,
  record,
  provider,
  version,
  table: `runtime = "${record.name}"\n${table}`,
  lacks: record.lacks,
});

const ROWS: readonly Row[] = [
  row("opencode", OPENCODE, { provider: "chat" }),
  row("opencode-acp", ACP, { provider: "chat", table: 'command = ["opencode", "acp"]' }),
  row("claude-code", CLAUDE_CODE, { provider: "messages", version: "2.1.332" }),
  row("codex", CODEX, { provider: "responses", version: "0.171.0" }),
  row("gemini", GEMINI, { provider: "gemini", version: "0.61.0" }),
];

const MANIFEST = ROWS.flatMap(({ name, record, provider, table }) =>
  record.permissions.map(
    (permissions) => `[agents.${name}-${permissions}]
${table}
model = "${provider}/talking"
permissions = "${permissions}"
instructions = "instructions.md"
`,
  ),
).join("\n");

/** Adds the packages that the cache lacks. */
const addPackages = async (environment: Readonly<Record<string, string>>): Promise<void> => {
  const present = await Effect.runPromise(listRuntimes(environment));
  for (const { record, version } of ROWS) {
    const { name, packaged } = record;
    if (packaged === null || version === null) continue;
    const wish = { name, version, packaged, integrity: null };
    if (!present.some((one) => one.name === name && one.tree.version === version))
      // oxlint-disable-next-line no-await-in-loop -- npm is busy enough with one
      await Effect.runPromise(addRuntime(environment, wish));
  }
};

const addProviders = async (life: Life, base: string): Promise<void> => {
  const { origin } = new URL(base);
  const kinds = [
    ["chat", "openai-compatible", base],
    ["messages", "anthropic", origin],
    ["responses", "openai", base],
    ["gemini", "gemini", origin],
  ] as const;
  const models = ["talking", "second"];
  for (const [name, kind, base_url] of kinds) {
    const both = [
      { name, key: KEY },
      { name: `bad-${name}`, key: "sk-of-no-account" },
    ];
    for (const one of both)
      // oxlint-disable-next-line no-await-in-loop -- their order is that of the menus
      await life.call("POST", "/v1/model-providers", { ...one, kind, base_url, models, try: false });
  }
};

/** Why cases failed. */
const reasons: string[] = [];
/** What became of each case. */
const outcomes = new Map<string, Map<string, string>>();

describe.runIf(sandboxesStartHere)("an agent runtime", () => {
  const database = useRunDatabase();
  const model = new TalkingModel(KEY);
  let installation: Installation;
  let life: Life;
  let pid: string;

  beforeAll(async () => {
    installation = await Installation.open();
    mkdirSync(CACHE, { recursive: true });
    life = await installation.start({
      ...database(),
      PLATFORM_IMAGES_DIR: CACHE,
      PLATFORM_LLM_TIERS: "[]",
      PLATFORM_CONNECTOR_ALLOW_HOSTS: "127.0.0.1",
      PLATFORM_AGENT_RUNTIMES: "claude-code,codex,gemini",
    });
    await addPackages({
      PATH: process.env["PATH"] ?? "",
      PLATFORM_DATA_DIR: installation.dataDir,
      PLATFORM_IMAGES_DIR: CACHE,
    });
    await addProviders(life, await model.start());
    const repository = await installation.repository(MANIFEST);
    writeFileSync(path.join(repository, "instructions.md"), "INSTRUCTIONS-OF-THE-TABLE\n");
    writeFileSync(path.join(repository, "AGENTS.md"), "WORDS-OF-AGENTS-MD\n");
    await gitOk(repository, "add", ".");
    await gitOk(repository, "commit", "--quiet", "-m", "Add words");
    pid = await life.project(repository);
  }, TEST_MS * 2);
  afterAll(async () => {
    process.stderr.write(table());
    model.stop();
    await life?.end("SIGTERM");
    await installation?.close();
  }, TEST_MS);

  describe.each(ROWS)("$name", (subject) => {
    let talk: Talk | null = null;
    let others: Talk[] = [];
    const start = async (body: Json): Promise<Talk> => {
      const started = new Talk(await LiveSession.startIn(life, pid, body));
      others.push(started);
      return started;
    };
    const noted = outcomes.set(subject.name, new Map()).get(subject.name);

    afterEach(async ({ task }) => {
      for (const other of others) await other.session.stop().catch(() => undefined);
      others = [];
      // The next case gets another one if this one is still at work.
      if (task.result?.state !== "pass") {
        await talk?.session.stop().catch(() => undefined);
        talk = null;
      }
    }, TEST_MS);
    afterAll(() => talk?.session.stop(), TEST_MS);

    it.each(RUNTIME_CASES)(
      "$name",
      async ({ name, ability, run }) => {
        const reason = ability === null ? undefined : subject.lacks[ability];
        talk ??= new Talk(await LiveSession.startIn(life, pid, { agent_name: `${subject.name}-allow` }));
        const place = { life, pid, model, key: KEY };
        noted?.set(name, "failed");
        const held = await run({ subject, place, talk, start }).then(
          () => true,
          (error: unknown) => {
            if (reason !== undefined) return false;
            reasons.push(`${subject.name}: ${name}: ${String(error).slice(0, 1200)}`);
            throw error;
          },
        );
        if (held && reason !== undefined) throw new Error(`the record says that it cannot: ${reason}`);
        noted?.set(name, held ? "held" : "declared");
      },
      TEST_MS,
    );
  });
});

/** The outcomes, a line for each case. */
const table = (): string => {
  const names = [...outcomes.keys()];
  const width = Math.max(...RUNTIME_CASES.map(({ name }) => name.length));
  const line = (first: string, cells: readonly string[]) =>
    `${first.padEnd(width)}  ${cells.map((cell) => cell.padEnd(12)).join("  ")}\n`;
  return `\n${line("", names)}${RUNTIME_CASES.map(({ name }) =>
    line(
      name,
      names.map((one) => outcomes.get(one)?.get(name) ?? "-"),
    ),
  ).join("")}\n${reasons.join("\n")}\n`;
};
