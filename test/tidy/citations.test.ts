/** Every citation leads to a document or a file of this repository, and to a place in it (docs/contract/README.md). */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { coveredBy, documentFaults, idFaults, readDocument, type Fault } from "./citations.ts";
import { nameFaults, ruleFaults, rulesOf } from "./pointers.ts";

const ROOT = path.join(import.meta.dirname, "..", "..");

const FILES = execFileSync("git", ["-c", "safe.directory=*", "ls-files", "-z"], {
  cwd: ROOT,
  encoding: "utf8",
})
  .split("\0")
  .filter((file) => file !== "" && existsSync(path.join(ROOT, file)));

const read = (file: string): string => readFileSync(path.join(ROOT, file), "utf8");
const isProse = (file: string): boolean => file.endsWith(".md");

/** Goldens are generated, and this check shows wrong citations. */
const PASSED_OVER = /^test\/(?:golden|tidy)\//;
const TEXTS = new Map(
  FILES.filter((file) => /\.(?:ts|js|mjs|cjs|sql|sh|md|html|css)$/.test(file) && !PASSED_OVER.test(file)).map(
    (file) => [file, read(file)],
  ),
);

/** By the name of the file. The contract's come last, and before them those at the root. */
const rank = (file: string): number =>
  Number(!file.includes("/")) + 2 * Number(file.startsWith("docs/contract/"));
/** A document with what stands in a folder of its name: `api.md` with `api/sandbox.md`. */
const whole = (file: string): string =>
  [...TEXTS]
    .filter(([other]) => other === file || other.startsWith(`${file.slice(0, -".md".length)}/`))
    .map(([, text]) => text)
    .join("\n");
const DOCUMENTS = new Map(
  [...TEXTS.keys()]
    .filter((file) => isProse(file))
    .toSorted((a, b) => rank(a) - rank(b))
    .map((file) => [path.basename(file), readDocument(whole(file))]),
);
const IDS = DOCUMENTS.get("threats.md")?.ids ?? new Set<string>();

const told = (faults: (file: string, text: string) => readonly Fault[]): readonly string[] =>
  [...TEXTS].flatMap(([file, text]) =>
    faults(file, text).map(({ line, citation, problem }) => `${file}:${line} ${citation} (${problem})`),
  );

test("cites existing documents, sections and parts", () => {
  expect(told((file, text) => documentFaults(text, DOCUMENTS, isProse(file)))).toEqual([]);
});

test("cites existing cases and invariants", () => {
  expect(IDS.size).toBeGreaterThanOrEqual(192);
  expect(told((_file, text) => idFaults(text, IDS))).toEqual([]);
});

/** Cases without a test that carries them, each with the reason. */
const UNTESTED: Readonly<Record<string, string>> = {};

test("has a test for each case and each invariant", () => {
  const tests = [...TEXTS].flatMap(([file, text]) => (/^test\/.*\.ts$/.test(file) ? [text] : []));
  const covered = new Set(tests.flatMap((text) => coveredBy(text)));
  expect([...IDS].filter((id) => !covered.has(id)).toSorted()).toEqual(Object.keys(UNTESTED).toSorted());
});

/** A migration that ran is not edited: it may name a folder in which a file was. */
const withoutFolders = (text: string): string => text.replaceAll(/\b(?:[\w-]+\/)+(?=[\w-]+\.ts\b)/g, "");

const present = (file: string, text: string): string =>
  file.startsWith("migrations/") ? withoutFolders(text) : text;

test("names existing files", () => {
  expect(told((file, text) => nameFaults(present(file, text), FILES, isProse(file)))).toEqual([]);
});

test("cites rules that their file states", () => {
  const stated = new Map([...TEXTS].map(([file, text]) => [file, rulesOf(text)]));
  expect(told((file, text) => (isProse(file) ? [] : ruleFaults(text, stated)))).toEqual([]);
});

describe("a wrong citation is found", () => {
  const api = "## 4. Triggers\n\n**Queue.** First come.\n\n## 7. Daemon\n\n**refresh.** Forwards.\n";
  const spec = "## 3. States\n\n### 3.1 Session\n\n## Appendix\n\n### Branch model\n\n1. One.\n2. Two.\n";
  const threats = "## Facts\n\n1. One.\n\n## Faults\n\n- **W01** Yes.\n- **I1** Yes.\n";
  const documents = new Map(
    Object.entries({ "api.md": api, "spec.md": spec, "threats.md": threats }).map(([name, text]) => [
      name,
      readDocument(text),
    ]),
  );
  const problems = (text: string): readonly string[] =>
    documentFaults(text, documents).map(({ line, problem }) => `${line}: ${problem}`);

  test.each([
    ['(spec.md 3.1; api.md 4 "Queue", 7 "refresh")'],
    ["spec.md, branch model 2"],
    ["(spec 3.1), (spec, branch model 2)"],
    ['threats.md W01, fact 1; threats.md fact 1; threats.md "Faults"'],
    ['/**\n * As written there (api.md 4\n * "Queue").\n */'],
  ])("and a correct one is not: %j", (text) => {
    expect(problems(text)).toEqual([]);
  });

  test.each([
    ["(spec.md 3.2)", "spec.md has no section 3.2"],
    ["(api.md 4, 9)", "api.md has no section 9"],
    ['(api.md 4 "Cron")', 'api.md 4 has no part "Cron"'],
    ["(spec.md, branch model 3)", "spec.md branch model has no item 3"],
    ["(threats.md fact 2)", "threats.md facts has no item 2"],
    ['threats.md "Probes"', 'threats.md has no heading "Probes"'],
    ["(api.md)", "api.md is cited without a section"],
    ["(spec 3.2)", "spec.md has no section 3.2"],
    ["(spec, branch model 3)", "spec.md branch model has no item 3"],
    ["the enum (spec)", "spec.md is cited without a section"],
    ["(style.md)", "style.md does not exist"],
    ['ARCHITECTURE.md, "Shape"', "ARCHITECTURE.md does not exist"],
  ])("%j: %s", (text, problem) => {
    expect(problems(`\n// ${text}`)).toEqual([`2: ${problem}`]);
  });

  test("and ids count as covered only in the names of tests", () => {
    const text =
      'it("refuses it [W01]");\nit(`takes ${A} of B [X01, X02] [I1]`)\n// see [W02] and (W03)\nconst a = list[W04];';
    expect(coveredBy(text)).toEqual(["W01", "X01", "X02", "I1"]);
  });

  test("if it is a case, an invariant, a file or a rule", () => {
    const ids = documents.get("threats.md")?.ids ?? new Set<string>();
    expect(
      idFaults("finds it [W01, W02]\n(I1), (I01)", ids).map(({ line, citation }) => [line, citation]),
    ).toEqual([
      [1, "W02"],
      [2, "I01"],
    ]);
    expect(nameFaults("// see a/b.ts and b.ts, not c.ts", ["src/a/b.ts"], false)).toMatchObject([
      { citation: "c.ts" },
    ]);
    expect(
      nameFaults("// docs/decisions/0001, docs/decisions/0002", ["docs/decisions/0001-one.md"], false),
    ).toMatchObject([{ citation: "docs/decisions/0002" }]);
    const stated = new Map([["src/b.ts", rulesOf(" *  K1 It holds.\n *  K2 It does.")]]);
    expect(ruleFaults("// as b.ts says (K2, K3)", stated)).toMatchObject([{ citation: "K3" }]);
  });
});
