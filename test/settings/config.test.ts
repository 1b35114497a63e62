import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import * as Effect from "effect/Effect";
import { describe, expect, test } from "vitest";
import { readConfig, type Environment } from "../../src/settings/config.ts";
import { MAIL_SERVER_EXPECTED } from "../../src/domain/service/mail-server.ts";
import { SETTINGS } from "../../src/settings/settings.ts";
import { INSTALLABLE_EXPECTED } from "../../src/domain/runtimes/runtimes.ts";
import { freshDatabase } from "../support/postgres/postgres.ts";
import { settingProblems } from "../support/settings.ts";

const read = (environment: Environment) => readConfig(environment, "/work");

/** Every setting that is a time, with the knob it turns and its default. */
const DURATIONS = [
  ["PLATFORM_BOOT_TIMEOUT_MS", "bootTimeoutMs", 120_000],
  ["PLATFORM_MANIFEST_SYNC_MS", "manifestSyncMs", 60_000],
  ["PLATFORM_CATCHUP_WINDOW_MS", "catchupWindowMs", 3_600_000],
  ["PLATFORM_QUEUE_TTL_MS", "queueTtlMs", 86_400_000],
  ["PLATFORM_CLONE_CREDENTIAL_TTL_MS", "cloneCredentialTtlMs", 3_600_000],
  ["PLATFORM_TRIGGER_SCHEDULER_INTERVAL_MS", "schedulerIntervalMs", 60_000],
  ["PLATFORM_ACTOR_IDLE_MS", "actorIdleMs", 60_000],
  ["PLATFORM_RECOVERY_INTERVAL_MS", "recoveryIntervalMs", 5_000],
  ["PLATFORM_IDLE_TIMEOUT_MS", "idleTimeoutMs", 900_000],
  ["PLATFORM_REQUEST_TTL_MS", "requestTtlMs", 1_800_000],
  ["PLATFORM_MAX_TURN_MS", "maxTurnMs", 14_400_000],
  ["PLATFORM_SAVE_TIMEOUT_MS", "saveTimeoutMs", 60_000],
  ["PLATFORM_NODE_GRACE_MS", "nodeGraceMs", 60_000],
  ["PLATFORM_SETUP_TIMEOUT_MS", "setupTimeoutMs", 600_000],
  ["PLATFORM_SANDBOX_ORPHAN_MS", "sandboxOrphanMs", 86_400_000],
  ["PLATFORM_BUILD_TIMEOUT_MS", "buildTimeoutMs", 1_800_000],
  ["PLATFORM_ENVIRONMENT_REFRESH_MS", "environmentRefreshMs", 604_800_000],
  ["PLATFORM_ENVIRONMENT_BASES_MS", "environmentBasesMs", 21_600_000],
] as const;

/** Not a whole number from 1 to a year's milliseconds, written in digits alone; `|` ends each. */
const BAD_TIMES =
  "0|-1|-60000|NaN|1e12|1000000000000|31536000001|1e3| 5|5 |5\n| |+5|1.5|0x10|1_000|60s|Infinity|\u0665|1e400".split(
    "|",
  );

test("the table of times is complete", () => {
  const knobs = Object.keys(read({})).filter((knob) => knob.endsWith("Ms"));
  const kept = ["auditRetentionMs", "fireRetentionMs", "makeRoomAfterMs", "saveEveryMs"];
  expect(knobs.toSorted()).toEqual([...DURATIONS.map(([, knob]) => knob), ...kept].toSorted());
});

test.each([
  ["the ledger", "PLATFORM_FIRE_RETENTION_MS", "fireRetentionMs", 2_592_000_000],
  ["the audit record", "PLATFORM_AUDIT_RETENTION_MS", "auditRetentionMs", 31_536_000_000],
] as const)("%s is kept for at least a day", (_, name, knob, fallback) => {
  const refusal = (value: string) =>
    `${name} is ${JSON.stringify(value)}; expected a whole number from 86400000 to 31536000000`;
  for (const value of [...BAD_TIMES, "86399999"])
    expect(settingProblems({ [name]: value })).toEqual([refusal(value)]);
  expect(read({ [name]: "86400000" })[knob]).toBe(86_400_000);
  expect(read({})[knob]).toBe(fallback);
});

test("saves while an agent works can be turned off", () => {
  const name = "PLATFORM_SAVE_EVERY_MS";
  for (const value of BAD_TIMES.slice(1))
    expect(settingProblems({ [name]: value })).toEqual([
      `${name} is ${JSON.stringify(value)}; expected a whole number from 0 to 31536000000`,
    ]);
  expect(read({ [name]: "0" }).saveEveryMs).toBe(0);
  expect(read({}).saveEveryMs).toBe(300_000);
});

test("resting sessions make room after ten minutes, after others, or never", () => {
  const after = ["", "1", "0"].map((minutes) => read({ PLATFORM_MAKE_ROOM_AFTER_MINUTES: minutes }));
  expect(after.map(({ makeRoomAfterMs }) => makeRoomAfterMs)).toEqual([600_000, 60_000, null]);
});

describe.each(DURATIONS)("%s", (name, knob, fallback) => {
  test.each(BAD_TIMES)("refuses %j with the name, the value and the expected form [C21]", (value) => {
    expect(settingProblems({ [name]: value })).toEqual([
      `${name} is ${JSON.stringify(value)}; expected a whole number from 1 to 31536000000`,
    ]);
  });

  test.each(["1", "0005", "60000", "31536000000"])("accepts %j [C21]", (value) => {
    expect(read({ [name]: value })[knob]).toBe(Number(value));
  });

  test.each([undefined, ""])("uses its default for %j", (value) => {
    expect(read({ [name]: value })[knob]).toBe(fallback);
  });
});

test.each([
  ["PLATFORM_PORT", "65536", "a whole number from 0 to 65535"],
  ["PLATFORM_PORT", "-1", "a whole number from 0 to 65535"],
  ["PLATFORM_PORT", "8e3", "a whole number from 0 to 65535"],
  ["PLATFORM_INSPECT_PORT", "x", "a whole number from 0 to 65535"],
  ["PLATFORM_METRICS_PORT", "65536", "a whole number from 0 to 65535"],
  ["OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", "an http or https URL"],
  ["PLATFORM_QUEUE_MAX", "0", "a whole number from 1 to 10000000"],
  ["PLATFORM_PUBLIC_URL", "ftp://example.org", "an http or https URL"],
  [
    "PLATFORM_PREVIEW_URL",
    "https://preview.example.com",
    "an http or https URL whose host begins with `*.`, without a path",
  ],
  ["PLATFORM_PUBLIC_URL", "example.org", "an http or https URL"],
  ["PLATFORM_PUBLIC_URL", "https://example.org/?x=1", "an http or https URL without ? and #"],
  ["PLATFORM_PUBLIC_URL", "https://example.org/#f", "an http or https URL without ? and #"],
  [
    "PLATFORM_PUBLIC_URL",
    "https://example.org/agents/",
    "an http or https URL without a path: the service needs a host name of its own",
  ],
  ["PLATFORM_LLM_BASE_URL", "file:///etc", "an http or https URL"],
  ["PLATFORM_SANDBOX_PROVIDER", "Local", "one of auto, gvisor, local, docker, kubernetes, simulated"],
  ["PLATFORM_LOCAL_FORM", "chroot", "one of auto, bubblewrap, namespaces"],
  ["PLATFORM_NAME", "x".repeat(41), "a name of 1 to 40 characters in one line"],
  ["PLATFORM_NODE_HOST", "0.0.0.0", "an IP address of loopback or of a private network"],
  ["PLATFORM_NODE_PORT", "65536", "a whole number from 0 to 65535"],
  ["PLATFORM_NODE_URL", "https://node-1", "an http URL with only a host and a port"],
  ["PLATFORM_AGENT_ADAPTER", "none", "one of opencode, acp, plain"],
  ["PLATFORM_AGENT_RUNTIMES", "codex,acp", INSTALLABLE_EXPECTED],
  [
    "PLATFORM_DEFAULT_MODELS",
    "claude",
    'a JSON object from provider to model id, such as {"anthropic": "claude-sonnet-4-6"}',
  ],
  ["PLATFORM_LLM_MODEL", "two words", "a model id of 1 to 200 letters, digits and . _ : @ + / -"],
  [
    "PLATFORM_IMAGE_REGISTRY",
    "images.example.com",
    "a registry's host and a path in lower case, for example images.example.com/team/platform, with http:// before it only if the registry has no TLS",
  ],
])("refuses %s=%j: expected %s", (name, value, expected) => {
  expect(settingProblems({ [name]: value })).toEqual([
    `${name} is ${JSON.stringify(value)}; expected ${expected}`,
  ]);
});

const HOSTS =
  "host names or IP addresses without scheme, port, path and wildcard, for example git.example.com,10.0.0.7";
const PATTERNS =
  "host names without scheme, port and path, *. before a domain for all hosts below it, or * alone, for example api.example.com,*.example.org";

/** The settings that list hosts, with what they expect. */
const HOST_LISTS = [
  ["PLATFORM_WEBHOOK_ALLOW_HOSTS", HOSTS],
  ["PLATFORM_GIT_ALLOW_HOSTS", HOSTS],
  ["PLATFORM_CONNECTOR_ALLOW_HOSTS", HOSTS],
  ["PLATFORM_EGRESS_ALLOW", PATTERNS],
] as const;

describe.each(HOST_LISTS)("%s", (name, expected) => {
  test.each([
    "https://git.example.com/",
    "git.example.com:8443",
    "git.example.com/team",
    "10.0.0.0/8",
    "a.example.com b.example.com",
    ".example.com",
    "[::1]:80",
    "git*.example.com",
    "*.*.example.com",
  ])("refuses %j, which no host can match", (entry) => {
    expect(settingProblems({ [name]: `good.example.com, ${entry}` })).toEqual([
      `${name} is ${JSON.stringify(entry)}; expected ${expected}`,
    ]);
  });

  test("does not show a password in a URL", () => {
    const refused = settingProblems({ [name]: "https://user:canary@git.example.com" });
    expect(refused).toEqual([`${name} is "(hidden)"; expected ${expected}`]);
  });
});

test("lists of trusted hosts have them as addresses have them, and only egress has wildcards", () => {
  const written = "Git.Example.com, git.example.com.,my_server,127.0.0.1, [::1],fd00:0::7,localhost";
  const hosts = [
    "git.example.com",
    "git.example.com",
    "my_server",
    "127.0.0.1",
    "::1",
    "fd00::7",
    "localhost",
  ];
  expect(read({ PLATFORM_WEBHOOK_ALLOW_HOSTS: written }).webhookAllowHosts).toEqual(hosts);
  expect(read({ PLATFORM_GIT_ALLOW_HOSTS: written }).gitAllowHosts).toEqual(hosts);
  expect(read({ PLATFORM_CONNECTOR_ALLOW_HOSTS: written }).connectorAllowHosts).toEqual(hosts);
  for (const wildcard of ["*", "*.example.com"])
    expect(settingProblems({ PLATFORM_GIT_ALLOW_HOSTS: wildcard })).toHaveLength(1);
  const patterns = ["*", "*.Example.org", "Example.org.", "10.0.0.1", "[::1]", "::1"];
  expect(read({ PLATFORM_EGRESS_ALLOW: patterns.join(" ,") }).egressAllow).toEqual(patterns);
});

test("what a setting expects stands after the word expected, as one phrase", () => {
  const structured = Object.entries(SETTINGS).filter(([, { kind }]) => kind === "structured");
  const refused = settingProblems(Object.fromEntries(structured.map(([name]) => [name, "? !".repeat(20)])));
  expect(refused).toHaveLength(structured.length);
  for (const line of refused) {
    expect(line).toMatch(/"; expected [a-z`]/);
    expect(line).not.toMatch(/\w\.(?: |$)/);
  }
  const unknown = settingProblems({ PLATFORM_DEFAULT_MODELS: '{"acme": "x"}' });
  expect(unknown).toEqual([
    expect.stringMatching(/; expected only the providers managed, anthropic, .*, without "acme"$/),
  ]);
});

test("tiers of a gateway have no effect without it, and their form is checked", () => {
  const [url, tiers] = ["PLATFORM_LLM_BASE_URL", "PLATFORM_LLM_TIERS"];
  expect(settingProblems({ [tiers]: "pro" })).toEqual([
    `${tiers} is "pro"; expected a JSON list of free, pro, enterprise, such as ["pro"]`,
  ]);
  expect(settingProblems({ [url]: "file:///etc", [tiers]: '["pro"]' })).toHaveLength(1);
  expect(read({ [tiers]: '["pro"]' }).llm).toBeNull();
  expect(read({ [url]: "https://llm.example.com/v1", [tiers]: '["pro"]' }).llm?.tiers).toEqual(["pro"]);
});

test("refuses a first token that no request could use, and does not show it", () => {
  for (const token of ["abc", "platform_pat_short", `platform_sbx_${"a".repeat(43)}`])
    expect(settingProblems({ PLATFORM_BOOTSTRAP_TOKEN: token })).toEqual([
      'PLATFORM_BOOTSTRAP_TOKEN is "(hidden)"; expected platform_pat_ and 27 to 128 letters, digits, _ or -',
    ]);
  expect(read({ PLATFORM_BOOTSTRAP_TOKEN: `platform_pat_${"a".repeat(43)}` }).bootstrapToken).not.toBeNull();
});

test("refuses the address of another database, and does not show its password", () => {
  const expected =
    "expected the address of a Postgres database, for example postgres://user:password@db.example.com:5432/platform";
  expect(settingProblems({ DATABASE_URL: "mysql://root:canary@127.0.0.1/x" })).toEqual([
    `DATABASE_URL is "mysql://…"; ${expected}`,
  ]);
  expect(settingProblems({ DATABASE_URL: "db.example.com:5432/x" })).toEqual([
    `DATABASE_URL is "(hidden)"; ${expected}`,
  ]);
  expect(read({ DATABASE_URL: "postgres://user@db/x", PGPASSWORD: "word" }).databaseUrl).toBe(
    "postgres://user@db/x?password=word",
  );
});

test("starts opencode in the mode of its adapter, or the given command", () => {
  expect(read({}).runtimes[0].command.slice(0, 2)).toEqual(["opencode", "serve"]);
  expect(read({ PLATFORM_AGENT_ADAPTER: "acp" }).runtimes[0].command).toEqual(["opencode", "acp"]);
  const given = { PLATFORM_AGENT_ADAPTER: "acp", PLATFORM_AGENT_COMMAND: "our-agent --acp" };
  expect(read(given).runtimes[0].command).toEqual(["our-agent", "--acp"]);
  expect(read({ PLATFORM_AGENT_RUNTIMES: "codex, gemini" }).runtimes.map(({ name }) => name)).toEqual([
    "opencode",
    "codex",
    "gemini",
    "acp",
    "plain",
  ]);
});

test("names every wrong setting at once", () => {
  expect(
    settingProblems({ PLATFORM_QUEUE_TTL_MS: "0", PLATFORM_PORT: "x", PLATFORM_PUBLIC_URL: "y" }).map(
      (line) => line.split(" ")[0],
    ),
  ).toEqual(["PLATFORM_PORT", "PLATFORM_PUBLIC_URL", "PLATFORM_QUEUE_TTL_MS"]);
});

/** Starts the service as a process of its own; ends it when it is ready. */
const startService = async (directory: string, settings: Readonly<Record<string, string>>) => {
  const main = path.join(import.meta.dirname, "../../src/main.ts");
  const child = spawn(process.execPath, [main], {
    cwd: directory,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      PATH: process.env["PATH"],
      HOME: process.env["HOME"],
      PLATFORM_PORT: "0",
      PLATFORM_SANDBOX_PROVIDER: "simulated",
      ...settings,
    },
  });
  const output = { stdout: "", stderr: "" };
  child.stdout.on("data", (chunk: Buffer) => {
    output.stdout += chunk.toString("utf8");
    if (output.stdout.includes("ready ")) child.kill("SIGTERM");
  });
  child.stderr.on("data", (chunk: Buffer) => (output.stderr += chunk.toString("utf8")));
  const code = await new Promise<number | null>((resolve) => {
    child.on("close", resolve);
  });
  return { code, ...output };
};

const inDirectory = async <A>(use: (directory: string) => Promise<A>): Promise<A> => {
  const directory = mkdtempSync(path.join(tmpdir(), "platform-config-"));
  try {
    return await use(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
};

test("a start with an invalid time setting ends with 1 and a message, and claims nothing [C21]", async () => {
  const { code, stdout, stderr, left } = await inDirectory(async (directory) => ({
    ...(await startService(directory, { PLATFORM_TRIGGER_SCHEDULER_INTERVAL_MS: "0" })),
    left: readdirSync(directory),
  }));
  expect(left).toEqual([]);
  expect(code).toBe(1);
  expect(stdout).toBe("");
  expect(stderr.trimEnd().split("\n")).toEqual([
    "The service cannot start with these settings:",
    '  - PLATFORM_TRIGGER_SCHEDULER_INTERVAL_MS is "0"; expected a whole number from 1 to 31536000000',
  ]);
});

test("a start logs which zone data and which Node it uses for instants [C10]", async () => {
  const { code, stderr } = await Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(freshDatabase("migrated"), (url) =>
        Effect.promise(() =>
          inDirectory((directory) =>
            startService(directory, { DATABASE_URL: url, PLATFORM_MASTER_KEY: "a".repeat(64) }),
          ),
        ),
      ),
    ),
  );
  expect(stderr).toContain(`time zones: IANA ${process.versions["tz"]}, Node ${process.versions.node}`);
  expect(code).toBe(0);
});

test("headers for a collector are read, and a wrong value is not shown, because it may be a credential", () => {
  const settings = {
    OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318/",
    OTEL_EXPORTER_OTLP_HEADERS: "Authorization=Bearer%20x",
  };
  expect(read({}).otlp).toBeNull();
  expect(read(settings).otlp).toEqual({
    endpoint: "http://127.0.0.1:4318",
    headers: { authorization: "Bearer x" },
    serviceName: "platform",
  });
  const refused = settingProblems({ OTEL_EXPORTER_OTLP_HEADERS: "canary-credential" });
  expect(refused).toHaveLength(1);
  expect(refused[0]).toContain("OTEL_EXPORTER_OTLP_HEADERS");
  expect(refused.join("")).not.toContain("canary");
});

test("a registry's URL has TLS, unless its host is allowed, and no credentials", () => {
  const npm = "PLATFORM_PACKAGE_CACHE_NPM";
  expect(read({}).packages).toEqual({
    cacheMb: 0,
    npm: null,
    pypi: null,
    allowHosts: [],
  });
  expect(read({ [npm]: "https://npm.example.com" }).packages).toMatchObject({ cacheMb: 10_240, pypi: null });
  const local = {
    [npm]: "http://[::1]:4873/npm/",
    PLATFORM_PACKAGE_CACHE_PYPI: "https://PyPI.example.com/simple",
  };
  expect(read(local).packages).toMatchObject({
    npm: "http://[::1]:4873/npm",
    allowHosts: ["::1", "pypi.example.com"],
  });
  const refused = settingProblems({ [npm]: "https://user:canary@npm.example.com" });
  expect(refused).toEqual([expect.stringContaining(`${npm} has credentials`)]);
  expect(refused.join("")).not.toContain("canary");
});

test("says of a removed setting what holds without it", () => {
  expect(read({ PLATFORM_PACKAGE_CACHE_ALLOW_HOSTS: "" }).unknownSettings).toEqual([]);
  expect(read({ PLATFORM_PACKAGE_CACHE_ALLOW_HOSTS: "npm.example.com" }).unknownSettings).toEqual([
    "PLATFORM_PACKAGE_CACHE_ALLOW_HOSTS is no setting any more. The hosts of PLATFORM_PACKAGE_CACHE_NPM and " +
      "PLATFORM_PACKAGE_CACHE_PYPI are allowed by being named there.",
  ]);
});

test.each([
  ["PLATFORM_IDLE_TIMEOUT", "PLATFORM_IDLE_TIMEOUT_MS"],
  ["PLATFORM_IDEL_TIMEOUT_MS", "PLATFORM_IDLE_TIMEOUT_MS"],
  ["PLATFORM_PUBLIC_URI", "PLATFORM_PUBLIC_URL"],
])("says of %s, which is set, that %s may be meant", (name, meant) => {
  expect(read({ [name]: "1" }).unknownSettings).toEqual([
    `${name} is no setting, and has no effect. ${meant} may be meant.`,
  ]);
  expect(read({ [name]: "" }).unknownSettings).toEqual([]);
});

test("says nothing of settings, and of variables of other programs and of sandboxes", () => {
  const others = [
    "PLATFORM_URL",
    "PLATFORM_TOKEN",
    "PLATFORM_SESSION_ID",
    "PLATFORM_SERVICE_PORT",
    "PLATFORM_TEST_X",
    "PATH",
  ];
  const set = Object.fromEntries(others.map((name) => [name, "1"]));
  expect(read({ ...set, PLATFORM_IDLE_TIMEOUT_MS: "60000" }).unknownSettings).toEqual([]);
});

test("mail has a server and a sender, and its password is not shown", () => {
  expect(read({}).mail).toBeNull();
  const url = "smtps://platform%40example.com:pass%2Fword@mail.example.com";
  const from = "Platform <platform@example.com>";
  expect(read({ PLATFORM_SMTP_URL: url, PLATFORM_MAIL_FROM: from }).mail).toEqual({
    server: {
      host: "mail.example.com",
      port: 465,
      isSecure: true,
      login: { user: "platform@example.com", password: "pass/word" },
    },
    from,
  });
  expect(settingProblems({ PLATFORM_SMTP_URL: url })).toEqual([
    "PLATFORM_MAIL_FROM is not set; PLATFORM_SMTP_URL needs it",
  ]);
  expect(
    settingProblems({ PLATFORM_SMTP_URL: "smtp://canary@mail.example.com", PLATFORM_MAIL_FROM: from }),
  ).toEqual([`PLATFORM_SMTP_URL is "(hidden)"; expected ${MAIL_SERVER_EXPECTED}`]);
});
