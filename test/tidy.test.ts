/** The repository's own manners (CONTRIBUTING.md): what no compiler, linter or import rule looks at. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const ROOT = path.join(import.meta.dirname, "..");

/** Files under version control that have text, in git's order; safe.directory: the checkout may be another user's. */
const FILES = execFileSync("git", ["-c", "safe.directory=*", "ls-files", "-z"], {
  cwd: ROOT,
  encoding: "utf8",
})
  .split("\0")
  .filter((file) => file !== "" && !/\.(?:backup|zst)$/.test(file) && existsSync(path.join(ROOT, file)));

const read = (file: string): string => readFileSync(path.join(ROOT, file), "utf8");
const inFolder = (folder: string): readonly string[] => FILES.filter((file) => file.startsWith(`${folder}/`));

/** Programs, migrations and scripts: what a person reads from top to bottom. */
const CODE = FILES.filter((file) => /\.(?:ts|js|mjs|cjs|sql|sh)$/.test(file));
/** Kept by a test that writes them. */
const GENERATED = new Set(["migrations/schema.sql"]);
/** The schema at its beginning, in sections. Later migrations have one subject each. */
const BASELINE = "migrations/0001_baseline.sql";

/** `file:line text` of every line that matches. */
const matches = (files: readonly string[], pattern: RegExp): readonly string[] =>
  files.flatMap((file) =>
    read(file)
      .split("\n")
      .flatMap((line, index) => (pattern.test(line) ? [`${file}:${index + 1} ${line.trim()}`] : [])),
  );

test("keeps every file within 600 lines", () => {
  const long = CODE.filter((file) => !GENERATED.has(file) && file !== BASELINE)
    .map((file) => ({ file, lines: read(file).split("\n").length - 1 }))
    .filter(({ lines }) => lines > 600);
  expect(long).toEqual([]);
});

test("names no path of a machine and no package registry", () => {
  const places = /(?<![\w/.])[/](?:home|Users|work)[/]\w|registry[.]\w+[.](?:org|com)/;
  expect(matches(FILES, places)).toEqual([]);
});

test("locks packages by their hash and leaves their source to the installer", () => {
  expect(matches(["package-lock.json"], /"resolved":/)).toEqual([]);
  expect(read("package-lock.json")).toContain('"integrity": "sha512-');
});

test("pins every package to one exact version", () => {
  const { dependencies, devDependencies, optionalDependencies } = JSON.parse(read("package.json"));
  const pinned = /^(?:npm:@?[\w/-]+@)?\d+\.\d+\.\d+(?:-[\w.]+)?$/;
  const loose = Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies }).filter(
    ([, version]) => typeof version !== "string" || !pinned.test(version),
  );
  expect(loose).toEqual([]);
});

test("has no folder or file with a meaningless name", () => {
  const vague = /(?:^|[/.-])(?:utils?|common|misc|helpers?|managers?)(?:[/.-]|$)/;
  expect(FILES.filter((file) => vague.test(file))).toEqual([]);
});

test("leaves no task for later and no test switched off", () => {
  const later = /\b(?:TO[D]O|FIX[M]E|XX[X])\b/;
  const off = /\b(?:it|test|describe)(?:\.\w+)*\.(?:only|skip|todo|fails)\b/;
  expect(matches(FILES, later)).toEqual([]);
  expect(matches(inFolder("test"), off)).toEqual([]);
});

test("numbers migrations without a gap and names each by its subject", () => {
  const names = inFolder("migrations")
    .map((file) => path.basename(file))
    .filter((name) => !["schema.sql", "README.md"].includes(name));
  const numbers = names.map((name) => /^(\d{4})_[a-z]+(?:_[a-z]+)*\.sql$/.exec(name)?.[1] ?? name);
  expect(numbers).toEqual(names.map((_, index) => String(index + 1).padStart(4, "0")));
});

test("begins each migration with its reason", () => {
  const silent = inFolder("migrations").filter(
    (file) => file.endsWith(".sql") && !read(file).startsWith("-- "),
  );
  expect(silent).toEqual([]);
});

/** How many cases each chapter of the list of threats has; a test names the case it covers at the end of its name. */
const THREATS: Readonly<Record<string, number>> = {
  W: 40, // webhook endpoint
  P: 12, // prompt templates
  M: 21, // manifest
  C: 21, // cron
  X: 25, // daemon and proxy
  A: 9, // user context
  G: 14, // git
  S: 13, // secrets and environment
  T: 19, // tokens and tenancy
  R: 12, // races and crashes
  D: 11, // conversation
  E: 27, // environments
  K: 23, // connectors
  O: 3, // outbound webhooks
  L: 6, // metrics and traces
  I: 22, // invariants
};

test("cites only existing cases of the list of threats", () => {
  const tests = inFolder("test").filter((file) => file.endsWith(".ts"));
  const cited = tests.flatMap((file) =>
    [...read(file).matchAll(/\[((?:[A-Z]\d{1,2})(?:, [A-Z]\d{1,2})*)\](?=["'`])/g)].flatMap(([, ids = ""]) =>
      ids.split(", ").map((id) => ({ file, id })),
    ),
  );
  const unknown = cited.filter(({ id }) => {
    const [letter = "", number] = [id.slice(0, 1), Number(id.slice(1))];
    // Invariants carry plain numbers, cases two digits.
    const wellFormed = letter === "I" ? `I${number}` : letter + String(number).padStart(2, "0");
    return id !== wellFormed || number < 1 || number > (THREATS[letter] ?? 0);
  });
  expect(cited.length).toBeGreaterThan(100);
  expect(unknown).toEqual([]);
});

const names = (folder: string): readonly string[] =>
  FILES.filter((file) => path.dirname(file) === folder && file.endsWith(".ts")).map((file) =>
    path.basename(file, ".ts"),
  );

test("tests each file of the domain among the domain's tests", () => {
  // Declarations alone: types, schemas and constants. And parts that the test of their reader shows (openapi).
  const declarations = new Set([
    "failure",
    "git-failure",
    "launch",
    "merge",
    "session",
    "operation",
    "schema",
  ]);
  const tests = inFolder("test/domain").map(read).join("\n");
  const untested = FILES.filter(
    (file) =>
      /^src\/domain\/.*\.ts$/.test(file) &&
      !declarations.has(path.basename(file, ".ts")) &&
      !tests.includes(`/${file}"`),
  );
  expect(untested).toEqual([]);
});

test("tests each rule and machine of a feature among the feature's tests", () => {
  const rules = FILES.filter((file) => /^src\/features\/[^/]+\/(?:rules\/|machine\.ts$)/.test(file));
  const tests = inFolder("test/features").map(read).join("\n");
  expect(rules.length).toBeGreaterThan(3);
  expect(rules.filter((file) => !tests.includes(`/${file}"`))).toEqual([]);
});

test("uses one name for one noun: definition and handler, machine and interpreter", () => {
  const shared = new Set([
    "platform",
    "access",
    "endpoints",
    "errors",
    "examples",
    "illustrate",
    "openapi",
    "schemas",
  ]);
  const definitions = names("src/http/api").filter((name) => !shared.has(name));
  expect(names("src/http/handlers")).toEqual(expect.arrayContaining(definitions));
  // The agent runtime's machine is interpreted in the sandbox, by daemon/agent/runtime.ts. The others are no machines.
  const apart = new Set([
    "step",
    "agent-runtime",
    "definition",
    "conversation-context",
    "conversation-events",
    "session-events",
    "possible",
    "transition",
    "word-types",
    "words",
  ]);
  const machines = names("src/machines").filter((name) => !apart.has(name));
  const ofFeature = /^src\/features\/(?:(?<feature>[^/]+)s\/|[^/]+\/(?<machine>[a-z-]+)-)actor\.ts$/;
  const interpreters = FILES.flatMap((file) => {
    const { feature, machine = feature } = ofFeature.exec(file)?.groups ?? {};
    return machine ?? [];
  });
  expect([...names("src/actors"), ...interpreters]).toEqual(expect.arrayContaining(machines));
});

/**
 * The programs hand their environment to config.ts, daemon/settings.ts and the command line. Git is started with our PATH.
 * The workspace program, which the daemon starts, hands its own to git. inherited.ts reads what Node itself was told about certificates. The adapter of opencode writes a program that sets its own.
 */
const ENVIRONMENT_READERS = new Set([
  "src/serve.ts",
  "src/operator.ts",
  "src/platform.ts",
  "src/git/run.ts",
  "src/starter/short.ts",
  "daemon/start.ts",
  "daemon/saving/repository.ts",
  "daemon/adapters/opencode/opencode.ts",
]);

test("reads the environment in one place for each program", () => {
  const readers = new Set(
    matches(
      [...inFolder("src"), ...inFolder("daemon")].filter((file) => file.endsWith(".ts")),
      /process\.env\b/,
    ).map((line) => line.slice(0, line.indexOf(":"))),
  );
  expect([...readers].filter((file) => !ENVIRONMENT_READERS.has(file))).toEqual([]);
});

test("takes the wait limits of tests from one place", () => {
  const tests = FILES.filter(
    (file) => /^test\/.*(?<!\.deep\.test)\.ts$/.test(file) && !/^test\/(?:bench|simulation)\//.test(file),
  );
  const own =
    /\b(?:testTimeout|hookTimeout|timeout): \d|\b(?:START_|CHILD_|REQUEST_)?TIMEOUT_MS = \d|AbortSignal\.timeout\(\d/;
  // The timeouts in the tests of actors belong to the machines, on a test clock.
  const told = tests.filter((file) => !file.startsWith("test/actors/"));
  expect(matches(told, own)).toEqual([]);
});

test("has the golden files that others rely on, within 3,000 lines together", () => {
  const goldens = [
    "migrations/schema.sql",
    "src/machines/README.md",
    "docs/operate/settings.md",
    "docs/operate/entities.md",
    "test/golden/openapi.json",
    "test/golden/routes.json",
  ];
  expect(goldens.filter((file) => !FILES.includes(file))).toEqual([]);
  expect(inFolder("test/golden/environment").length).toBeGreaterThan(0);
  const all = new Set([...goldens, ...inFolder("test/golden")]);
  const lines = [...all].reduce((sum, file) => sum + read(file).split("\n").length - 1, 0);
  expect(lines).toBeLessThanOrEqual(3_000);
});
