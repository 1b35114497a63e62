/** A service that offers every agent runtime, with its real program, behind providers of the account that lead to a scripted model. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { gzipSync } from "node:zlib";
import * as Effect from "effect/Effect";
import {
  addEntry,
  addRuntime,
  listRuntimes,
} from "../../../../src/installation/operator/runtimes/runtimes.ts";
import { ACP } from "../../../../src/domain/runtimes/acp.ts";
import { CLAUDE_CODE } from "../../../../src/domain/runtimes/claude-code.ts";
import { CODEX } from "../../../../src/domain/runtimes/codex.ts";
import { GEMINI } from "../../../../src/domain/runtimes/gemini.ts";
import { machineName } from "../../../../src/domain/runtimes/installed.ts";
import { OPENCODE } from "../../../../src/domain/runtimes/opencode.ts";
import type { Runtime } from "../../../../src/domain/runtimes/runtime.ts";
import { ENTRY_PREFIX, offeredRuntimes, PACKAGED } from "../../../../src/domain/runtimes/runtimes.ts";
import { gitOk } from "../../../git/git-client.ts";
import { sha256, tarOf } from "../../machine/image-archives.ts";
import { promptOf, type TalkingModel } from "../../servers/talking-model.ts";
import type { Installation, Life } from "../process-service.ts";

/** The packages stay for the next run: together they have a gigabyte. */
const CACHE = path.resolve(import.meta.dirname, "../../../../node_modules/.cache/runtimes");
/** A branch with CLAUDE.md and without AGENTS.md. */
export const CLAUDE_BRANCH = "with-claude-md";
/** The key of the account's providers. */
export const PROVIDER_KEY = "sk-canary-of-the-account";

export interface RuntimeRow {
  readonly name: string;
  readonly record: Runtime;
  /** The account's provider that it uses. Null: it uses no model. */
  readonly provider: string | null;
  /** Null: it is not added. */
  readonly version: string | null;
  readonly table: string;
}

const row = (
  name: string,
  record: Runtime,
  {
    provider,
    version = null,
    table = "",
  }: { provider: string | null; version?: string | null; table?: string },
): RuntimeRow => ({ name, record, provider, version, table: `runtime = "${record.name}"\n${table}` });

export const RUNTIME_ROWS: readonly RuntimeRow[] = [
  row("opencode", OPENCODE, { provider: "chat" }),
  row("opencode-acp", ACP, { provider: "chat", table: 'command = ["opencode", "acp"]' }),
  row("claude-code", CLAUDE_CODE, { provider: "messages", version: "2.1.332" }),
  row("codex", CODEX, { provider: "responses", version: "0.171.0" }),
  row("gemini", GEMINI, { provider: "gemini", version: "0.61.0" }),
];

/** A program of our own that does the steps itself. It is added as an entry of a registry. */
const OWN_PROGRAM = path.resolve(import.meta.dirname, "../../programs/sandboxes/stepping-agent");
const OWN_ID = path.basename(OWN_PROGRAM);
const [, OWN_RECORD = ACP] = offeredRuntimes({ adapter: OPENCODE.adapter, command: [OPENCODE.name] }, [
  `${ENTRY_PREFIX}${OWN_ID}`,
]);
export const OWN_ROW = row("ours", OWN_RECORD, { provider: null });

/** Adds the program of our own by a registry and an archive on a server of this machine. */
const addOwn = async (environment: Readonly<Record<string, string>>): Promise<void> => {
  const archive = gzipSync(await tarOf([{ name: `bin/${OWN_ID}`, content: readFileSync(OWN_PROGRAM) }]));
  const server = createServer(({ url, headers: { host } }, answer) => {
    const target = {
      archive: `http://${host}/archive`,
      cmd: `./bin/${OWN_ID}`,
      sha256: sha256(archive).slice("sha256:".length),
    };
    const binary = { [`linux-${machineName(process.arch)}`]: target };
    const agents = [{ id: OWN_ID, version: "1.0.0", distribution: { binary } }];
    answer.end(url === "/archive" ? archive : JSON.stringify({ agents }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const registry = `http://127.0.0.1:${(server.address() as AddressInfo).port}/registry.json`;
  const wish = { id: OWN_ID, version: null, integrity: null, registry };
  await Effect.runPromise(addEntry(environment, wish)).finally(() => server.close());
};

/** One command of the project in the place of each runtime that has such: `/greet`. */
const COMMANDS = [
  [".opencode/command/greet.md", "---\ndescription: Greets.\n---\nWORDS-OF-THE-COMMAND for $ARGUMENTS\n"],
  [".claude/commands/greet.md", "---\ndescription: Greets.\n---\nWORDS-OF-THE-COMMAND for $ARGUMENTS\n"],
  [".gemini/commands/greet.toml", 'description = "Greets."\nprompt = "WORDS-OF-THE-COMMAND for {{args}}"\n'],
] as const;

/**
 * Agents of each runtime: one for each answer to permissions (`codex-allow`), one whose model is refused (`codex-falls`), and one that plans
 * first (`gemini-plan`). A trigger starts one that asks (`gemini-asks`).
 */
const manifestOf = (rows: readonly RuntimeRow[]): string =>
  rows
    .flatMap(({ name, record, provider, table }) => {
      const agent = (kind: string, rest: string) => `[agents.${name}-${kind}]
${table}
instructions = "instructions.md"
${rest}
`;
      const own = provider === null ? "" : `model = "${provider}/talking"`;
      const falls = `model = "${provider}/broke"\npermissions = "allow"\nfallback = ["${name}-allow"]`;
      return [
        ...record.permissions.map((answer) => agent(answer, `${own}\npermissions = "${answer}"`)),
        // The manifest refuses it.
        ...(record.lacks.model_changes === undefined && provider !== null ? [agent("falls", falls)] : []),
        ...(record.plan === null
          ? []
          : [agent("plan", `${own}\npermissions = "allow"\nmode = "${record.plan.mode}"`)]),
        ...(record.permissions.includes("ask") ? [triggerOf(name)] : []),
      ];
    })
    .join("\n");

const triggerOf = (name: string): string => `[[triggers]]
slug = "${name}-asks"
type = "cron"
cron = "0 0 3 1 1 *"
agent = "${name}-ask"
prompt = '''${promptOf([{ run: "touch ran.txt && echo ran-$((40 + 2))" }, { say: "I go without it." }])}'''
`;

/** Adds the packages that the cache lacks. */
const addPackages = async (
  rows: readonly RuntimeRow[],
  environment: Readonly<Record<string, string>>,
): Promise<void> => {
  const present = await Effect.runPromise(listRuntimes(environment));
  for (const { record, version } of rows) {
    const { name } = record;
    const packaged = PACKAGED.get(name);
    if (packaged === undefined || version === null) continue;
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
  const models = ["talking", "second", "broke"];
  for (const [name, kind, base_url] of kinds) {
    const both = [
      { name, key: PROVIDER_KEY },
      { name: `bad-${name}`, key: "sk-of-no-account" },
    ];
    for (const one of both)
      // oxlint-disable-next-line no-await-in-loop -- their order is that of the menus
      await life.call("POST", "/v1/model-providers", { ...one, kind, base_url, models, try: false });
  }
};

/**
 * Starts the service, and makes a project with an agent for each of these runtimes.
 *
 * @param settings beyond those of the runtimes
 */
export const startWithRuntimes = async (
  installation: Installation,
  model: TalkingModel,
  {
    rows,
    settings,
  }: { readonly rows: readonly RuntimeRow[]; readonly settings: Readonly<Record<string, string>> },
): Promise<{ readonly life: Life; readonly pid: string }> => {
  mkdirSync(CACHE, { recursive: true });
  const life = await installation.start({
    PLATFORM_IMAGES_DIR: CACHE,
    PLATFORM_LLM_TIERS: "[]",
    PLATFORM_CONNECTOR_ALLOW_HOSTS: "127.0.0.1",
    PLATFORM_AGENT_RUNTIMES: [...PACKAGED.keys(), `${ENTRY_PREFIX}${OWN_ID}`].join(","),
    ...settings,
  });
  const environment = {
    PATH: process.env["PATH"] ?? "",
    PLATFORM_DATA_DIR: installation.dataDir,
    PLATFORM_IMAGES_DIR: CACHE,
  };
  await addPackages(rows, environment);
  if (rows.includes(OWN_ROW)) await addOwn(environment);
  await addProviders(life, await model.start());
  const repository = await installation.repository(manifestOf(rows));
  writeFileSync(path.join(repository, "instructions.md"), "INSTRUCTIONS-OF-THE-TABLE\n");
  writeFileSync(path.join(repository, "AGENTS.md"), "WORDS-OF-AGENTS-MD\n");
  for (const [file, text] of COMMANDS) {
    mkdirSync(path.dirname(path.join(repository, file)), { recursive: true });
    writeFileSync(path.join(repository, file), text);
  }
  await gitOk(repository, "add", ".");
  await gitOk(repository, "commit", "--quiet", "-m", "Add words");
  const branch = (await gitOk(repository, "branch", "--show-current")).trim();
  await gitOk(repository, "switch", "--quiet", "--create", CLAUDE_BRANCH);
  await gitOk(repository, "rm", "--quiet", "AGENTS.md");
  writeFileSync(path.join(repository, "CLAUDE.md"), "WORDS-OF-CLAUDE-MD\n");
  await gitOk(repository, "add", ".");
  await gitOk(repository, "commit", "--quiet", "-m", "Add other words");
  await gitOk(repository, "switch", "--quiet", branch);
  return { life, pid: await life.project(repository) };
};
