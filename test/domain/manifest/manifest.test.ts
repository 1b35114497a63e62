import { NO_CONNECTORS } from "../../../src/domain/connector/connector.ts";
import { DEFAULT_ENVIRONMENT } from "../../../src/domain/environment/environment-source.ts";
import * as fc from "fast-check";
import * as Result from "effect/Result";
import { expect, test } from "vitest";
import { DEFAULT_CONFIG_DIR, parseConfigDir } from "../../../src/domain/manifest/config-dir.ts";
import {
  MANIFEST_LIMIT_BYTES,
  TRIGGER_LIMIT,
  fatalError,
  parseManifest,
  withAgents,
} from "../../../src/domain/manifest/manifest.ts";
import type { Manifest } from "../../../src/domain/manifest/manifest.ts";
import { NO_AGENTS } from "../../../src/domain/manifest/manifest-agents.ts";
import { OFFERED } from "../runtimes/offered.ts";
import { cron, onlyError, parse, slugs, webhook } from "./manifest-text.ts";

test("reads triggers of both types and fills the defaults in", () => {
  const manifest = parse(`
[project]
name = "demo"

[env]
required = ["ANTHROPIC_API_KEY"]
optional = ["HOOK_SECRET"]

[runtime]
config_dir = ".platform/agents"

[[triggers]]
slug = "nightly"
type = "cron"
cron = "0 30 2 * * MON-FRI"
timezone = "Europe/Berlin"
name = "Nightly tidy"
agent = "tidy"
enabled = false
prompt = """
Tidy up.
Last time was {{ cron.last_fired_at }}.
"""

[[triggers]]
slug = "on-push"
type = "webhook"
secret_env = "HOOK_SECRET"
prompt = "Look at {{ body.after }}"
`);
  expect(manifest).toEqual({
    triggers: [
      {
        slug: "nightly",
        type: "cron",
        cron: "0 30 2 * * MON-FRI",
        timezone: "Europe/Berlin",
        name: "Nightly tidy",
        agent: "tidy",
        enabled: false,
        prompt: "Tidy up.\nLast time was {{ cron.last_fired_at }}.\n",
      },
      {
        slug: "on-push",
        type: "webhook",
        secretEnv: "HOOK_SECRET",
        name: "on-push",
        agent: "default",
        enabled: true,
        prompt: "Look at {{ body.after }}",
      },
    ],
    places: new Map([
      ["nightly", { index: 0, line: 12 }],
      ["on-push", { index: 1, line: 25 }],
    ]),
    errors: [],
    env: { required: ["ANTHROPIC_API_KEY"], optional: ["HOOK_SECRET"] },
    environment: DEFAULT_ENVIRONMENT,
    agents: NO_AGENTS,
    executor: NO_CONNECTORS,
    setup: null,
    warm: 0,
    configDir: ".platform/agents",
    fatal: false,
  });
});

test("an empty manifest, and one with unrelated tables, has no triggers and no errors", () => {
  const nothing: Manifest = {
    triggers: [],
    environment: DEFAULT_ENVIRONMENT,
    agents: NO_AGENTS,
    executor: NO_CONNECTORS,
    setup: null,
    warm: 0,
    places: new Map(),
    errors: [],
    env: { required: [], optional: [] },
    configDir: DEFAULT_CONFIG_DIR,
    fatal: false,
  };
  expect(parse("")).toEqual(nothing);
  expect(parse("[project]\nname = 1\n[other]\nx = [1, 'a']\n")).toEqual(nothing);
});

test("[environment] may have a setup command, and a wrong one is an error with its line", () => {
  expect(parse('[environment]\nsetup = "npm ci"\n')).toMatchObject({
    environment: DEFAULT_ENVIRONMENT,
    agents: NO_AGENTS,
    executor: NO_CONNECTORS,
    setup: "npm ci",
    errors: [],
  });
  expect(parse('\n[environment]\nsetup = ["npm", "ci"]\n')).toMatchObject({
    setup: null,
    fatal: true,
    errors: [{ path: "environment.setup", line: 2 }],
  });
});

test("[environment] with several mistakes is refused with each of them", () => {
  const table =
    'image = 5\nwarm = 11\nsetup = ""\nsecrets = ["path"]\ndockerfile = "../Dockerfile"\nargs = { A = 1, "b c" = "" }\nport = 1\n';
  const manifest = parse(`[environment]\n${table}`);
  expect(manifest.errors.map(({ path }) => path)).toEqual([
    "environment.port",
    "environment.dockerfile",
    "environment.args",
    "environment.secrets",
    "environment.image",
    "environment.dockerfile",
    "environment.args.A",
    "environment.args.b c",
    "environment.secrets[0]",
    "environment.setup",
    "environment.warm",
  ]);
  expect(fatalError(manifest)).toMatchObject({
    path: "environment",
    line: 1,
    message: expect.stringMatching(/^environment\.port: Unknown .* environment\.warm: [^:]*\.$/),
  });
  expect(fatalError(parse("environment = 1"))).toMatchObject({ path: "environment" });
  expect(fatalError(parse(""))).toBeNull();
});

test("[triggers] with single brackets is one error with its line [M01]", () => {
  const manifest = parse('[project]\nname = "x"\n\n[triggers]\nslug = "a"\ntype = "cron"\n');
  expect(manifest.fatal).toBe(true);
  expect(onlyError(manifest)).toMatchObject({ path: "triggers", line: 4 });
  expect(onlyError(manifest).message).toContain("[[triggers]]");
});

test.each([
  "triggers = 1",
  'triggers = "a"',
  "triggers = {}",
  "triggers = { slug = 'a' }",
  "[triggers.a]\nslug = 'a'",
])("triggers that are not a list are one error: %j [M02]", (text) => {
  const manifest = parse(`\n${text}\n`);
  expect(manifest.fatal).toBe(true);
  expect(onlyError(manifest).line).toBe(2);
});

test("an inline array of triggers is accepted [M02]", () => {
  const text = "triggers = [{ slug = 'a', type = 'webhook', prompt = 'Go', secret_env = 'S' }, 1]";
  const manifest = parse(text);
  expect(slugs(manifest)).toEqual(["a"]);
  expect(onlyError(manifest)).toMatchObject({ index: 1, slug: null, path: "triggers[1]" });
});

test("[[triggers]] and [triggers] together are one error of the whole file [M03]", () => {
  const manifest = parse(`${webhook()}\n[triggers]\nslug = "b"\n`);
  expect(manifest.fatal).toBe(true);
  expect(onlyError(manifest).line).toBe(7);
});

test("a duplicate key in one entry is one error of the whole file, with its line [M04]", () => {
  const manifest = parse('[[triggers]]\nslug = "a"\nslug = "b"\n');
  expect(manifest.fatal).toBe(true);
  expect(onlyError(manifest).line).toBe(3);
});

test("a duplicate slug keeps the first and reports every other [M05]", () => {
  const manifest = parse([webhook({ prompt: '"one"' }), webhook({ prompt: '"two"' }), webhook()].join("\n"));
  expect(manifest.triggers.map(({ prompt }) => prompt)).toEqual(["one"]);
  expect(manifest.errors.map(({ slug, index, path }) => ({ slug, index, path }))).toEqual([
    { slug: "hook", index: 1, path: "triggers[1].slug" },
    { slug: "hook", index: 2, path: "triggers[2].slug" },
  ]);
});

test("a bad entry keeps its slug from a later one: no other trigger fires in its place [M05]", () => {
  const manifest = parse([webhook({ prompt: undefined }), webhook()].join("\n"));
  expect(slugs(manifest)).toEqual([]);
  expect(manifest.errors.map(({ index }) => index)).toEqual([0, 1]);
});

test.each([
  ["arrays", `a = ${"[".repeat(100_000)}`],
  ["inline tables", `a = ${"{a=".repeat(100_000)}`],
])("%s nested 100,000 deep are one clean error [M07]", (_what, text) => {
  const manifest = parse(text);
  expect(manifest.fatal).toBe(true);
  expect(onlyError(manifest).message).toMatch(/nested/);
});

test.each([
  ["key", 100_000, `a${".a".repeat(100_000)} = 1`],
  ["key", 500_000, `a${".a".repeat(500_000)} = 1`],
  ["table", 100_000, `[a${".a".repeat(100_000)}]`],
  ["table", 500_000, `[a${".a".repeat(500_000)}]`],
])("a dotted %s of %i parts is ignored or refused, but never thrown [M07]", (_what, _parts, text) => {
  const manifest = parse(text);
  expect(manifest.triggers).toEqual([]);
  expect(manifest.errors.length).toBe(manifest.fatal ? 1 : 0);
});

test("a file over 1 MiB is not parsed [M07] [M16]", () => {
  const padding = `# ${"x".repeat(MANIFEST_LIMIT_BYTES)}\n`;
  const manifest = parse(padding);
  expect(manifest.fatal).toBe(true);
  expect(onlyError(manifest).message).toContain("larger than 1048576 bytes");
  expect(parse(`#${"x".repeat(MANIFEST_LIMIT_BYTES - 1)}`).fatal).toBe(false);
});

const entry = (_: unknown, index: number): string =>
  `[[triggers]]\nslug="t${index}"\ntype="webhook"\nprompt="p"\nsecret_env="S"\n`;

test("accepts 1,000 entries and reports that the others are left out [M08]", () => {
  const manifest = parse(Array.from({ length: TRIGGER_LIMIT + 5 }, entry).join(""));
  expect(manifest.triggers).toHaveLength(TRIGGER_LIMIT);
  expect(onlyError(manifest)).toMatchObject({ index: TRIGGER_LIMIT, line: 5001 });
  expect(onlyError(manifest).message).toContain("The last 5 are ignored");
});

test("reads no more of 80,000 entries than of 1,000 [M08]", () => {
  const manifest = parse("[[triggers]]\n".repeat(80_000));
  expect(manifest.triggers).toEqual([]);
  const indexes = new Set(manifest.errors.map(({ index }) => index));
  expect(indexes.size).toBe(TRIGGER_LIMIT + 1);
  expect(manifest.errors.at(-1)?.message).toContain("The last 79000 are ignored");
});

test("a pointer to a large file is one error, as any text that is not TOML [M16]", () => {
  const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${"a".repeat(64)}\nsize 12345\n`;
  const manifest = parse(pointer);
  expect(manifest.fatal).toBe(true);
  expect(onlyError(manifest).line).toBe(1);
});

test("accepts a byte order mark and CRLF [M13]", () => {
  expect(slugs(parse(`\ufeff${webhook().replaceAll("\n", "\r\n")}`))).toEqual(["hook"]);
});

test.each([
  ["lone CR", Buffer.from(webhook().replaceAll("\n", "\r"))],
  ["NUL", Buffer.from(webhook({ prompt: '"a\0b"' }))],
  ["NUL in a comment", Buffer.from("# \0\n")],
  ["bytes that are no UTF-8", Buffer.from([0x23, 0xff, 0x0a])],
  ["UTF-16", Buffer.from(webhook(), "utf16le")],
])("refuses a file with %s [M13]", (_what, bytes) => {
  const manifest = parseManifest(bytes);
  expect(manifest.fatal).toBe(true);
  expect(manifest.errors).toHaveLength(1);
});

test("names the line of the first byte that is not UTF-8 [M13]", () => {
  const bytes = Buffer.concat([
    Buffer.from('# \u00e4\na = "\u{1f600}"\nb = "'),
    Buffer.from([0xe4, 0x22, 0x0a]),
  ]);
  expect(onlyError(parseManifest(bytes))).toMatchObject({
    line: 3,
    message: "platform.toml is not UTF-8 text.",
  });
  // A sequence that its line's end cuts short is of that line.
  expect(onlyError(parseManifest(Buffer.from([0x23, 0xe2, 0x82, 0x0a, 0x23]))).line).toBe(1);
  expect(onlyError(parseManifest(Buffer.from([0x23, 0x0a, 0x23, 0xf0, 0x9f]))).line).toBe(2);
});

test("an agent without a file is an error of its triggers; default needs none [M14]", () => {
  const manifest = parse(
    [webhook({ agent: '"review"' }), cron({ agent: '"ghost"' }), cron({ slug: '"plain"' })].join("\n"),
  );
  const checked = withAgents(manifest, { files: new Set(["review"]), offered: OFFERED });
  expect(slugs(checked)).toEqual(["hook", "plain"]);
  expect(onlyError(checked)).toMatchObject({ slug: "nightly", index: 1, path: "triggers[1].agent", line: 8 });
  expect(onlyError(checked).message).toContain(".platform/runtime/agents/ghost.md");
});

test.each([
  "../../..",
  "..",
  "a/../../b",
  "a/..",
  "/etc",
  "/",
  "",
  ".",
  "../",
  ".git/hooks",
  "a\\b",
  "a\0b",
  "a\nb",
  "a".repeat(513),
  1,
  [],
  null,
])("refuses the config directory %j [M15]", (value) => {
  expect(Result.isFailure(parseConfigDir(value))).toBe(true);
});

test("a bad config directory is an error with its line, and the default is used [M15]", () => {
  const manifest = parse(`[runtime]\nconfig_dir = "../../.."\n${webhook()}`);
  expect(slugs(manifest)).toEqual(["hook"]);
  expect(manifest.configDir).toBe(DEFAULT_CONFIG_DIR);
  expect(onlyError(manifest)).toMatchObject({ path: "runtime.config_dir", line: 2, index: null });
});

test.each([
  [".platform/runtime", ".platform/runtime"],
  ["./agents/", "agents"],
  ["a//b/./c", "a/b/c"],
  ["...", "..."],
])("reads the config directory %j as %j", (value, expected) => {
  expect(parseConfigDir(value)).toEqual(Result.succeed(expected));
});

test("returns each entry's line, and none if a prompt looks like a header", () => {
  const bad = webhook({ slug: '"BAD"' });
  expect(onlyError(parse(`${cron()}\n${bad}`)).line).toBe(7);
  expect(onlyError(parse(`${cron({ prompt: '"""\n[[triggers]]\n"""' })}\n${bad}`)).line).toBeNull();
});

test("a file that is not TOML is one error with its line and column", () => {
  const error = onlyError(parse(`${webhook()}\n[[triggers]]\nslug = \n`));
  expect(error.line).toBe(8);
  expect(error.message).toBe("platform.toml is not valid TOML: invalid value, at column 8.");
});

test("checks the names of secrets, and reports bad ones", () => {
  const manifest = parse('[env]\nrequired = ["A", "PLATFORM_X", "A"]\noptional = ["b", 1, "C"]\n');
  expect(manifest.env).toEqual({ required: ["A"], optional: ["C"] });
  expect(manifest.errors.map(({ path, line }) => [path, line])).toEqual([
    ["env.required[1]", 2],
    ["env.optional[0]", 3],
    ["env.optional[1]", 3],
  ]);
  expect(parse("env = 1").errors).toEqual([]);
  expect(onlyError(parse('[env]\nrequired = "A"\n')).path).toBe("env.required");
});

test("never throws, for any bytes, and keeps no triggers of an unreadable file", () => {
  const line = fc.constantFrom(
    "[[triggers]]",
    "[triggers]",
    "slug = 'a'",
    "slug = 'b'",
    "type = 'webhook'",
    "type = 'cron'",
    "prompt = 'p'",
    "secret_env = 'S'",
    "cron = '0 0 0 * * *'",
    "[env]",
    "[runtime]",
    "config_dir = '..'",
    "required = [1]",
    "x = {",
    '"""',
  );
  const text = fc.array(line, { maxLength: 14 }).map((lines) => Buffer.from(lines.join("\n")));
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array(), text), (bytes) => {
      const manifest = parseManifest(bytes);
      expect(manifest.fatal ? manifest.triggers : []).toEqual([]);
      expect(manifest.fatal ? manifest.errors.length : 1).toBe(1);
      expect(new Set(slugs(manifest)).size).toBe(manifest.triggers.length);
    }),
    { seed: 20261120, numRuns: 2000 },
  );
});

test("[environment] names the image of the sandboxes", () => {
  expect(parse('[environment]\nimage = "images.example.com:5000/team/tools:1.2"\n')).toMatchObject({
    environment: { kind: "image", image: "images.example.com:5000/team/tools:1.2" },
    fatal: false,
  });
});

test.each([
  ["environment = 1", "environment"],
  ["[[environment]]", "environment"],
  ["[environment]\nimage = 1", "environment.image"],
  ['[environment]\nimage = "Upper"', "environment.image"],
  ['[environment]\nimage = "../etc"', "environment.image"],
  ['[environment]\nimage = "a b"', "environment.image"],
  ['[environment]\nimage = "x"\ndocker = "y"', "environment.docker"],
])("a wrong [environment] makes the manifest unreadable, with its line: %s [E08]", (text, path) => {
  const manifest = parse(`\n\n\n${text}\n`);
  expect(manifest.fatal).toBe(true);
  expect(onlyError(manifest)).toMatchObject({ path, line: 4 });
});
