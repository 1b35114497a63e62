import { describe, expect, it } from "vitest";
import { command, type Command } from "../../src/cli/command.ts";
import { ACTIVITY_WORDS } from "../../src/domain/session/activity-words.ts";
import { commands } from "../../src/assembly/commands.ts";
import { parseAddress } from "../../src/cli/configuration.ts";
import { readLine, wantsJson } from "../../src/cli/grammar.ts";
import { helpText } from "../../src/cli/help.ts";
import { VERSION } from "../../src/cli/program.ts";
import {
  fieldLines,
  table,
  tableFor,
  safeLine,
  safeJson,
  safeLines,
  type Window,
} from "../../src/cli/terminal.ts";
import { operatorCommands } from "../../src/installation/operator/commands.ts";
import packageFile from "../../package.json" with { type: "json" };

const ALL: readonly Command[] = [...commands, ...operatorCommands];
const made: readonly Command[] = [
  command({
    name: "cake bake",
    about: "Bake",
    takes: ["KIND", "[SIZE]"],
    inProject: true,
    options: { filling: { value: "TEXT", about: "The filling" }, glazed: { about: "With a glaze" } },
    run: () => Promise.resolve("writes"),
  }),
  command({ name: "eat", about: "Eat", run: () => Promise.resolve("writes") }),
];
const WINDOW: Window = {
  columns: 100,
  hasColours: false,
  hasShortIds: true,
  now: Date.parse("2026-11-20T12:00:00.000Z"),
};
const read = (...line: readonly string[]) => readLine(line, made);

describe("a command line", () => {
  it("accepts options and switches in any position", () => {
    const wish = { kind: "run", command: made[0], json: true, project: "p" };
    const options = { filling: "plum", glazed: true };
    const given = { KIND: "round", SIZE: undefined };
    for (const line of [
      ["cake", "bake", "round", "--filling", "plum", "--glazed", "--project", "p", "--json"],
      ["--json", "cake", "bake", "--filling=plum", "--glazed", "--project=p", "round"],
      ["cake", "--json", "bake", "--project", "p", "--glazed", "--filling", "plum", "--", "round"],
    ])
      expect(read(...line)).toEqual({ ...wish, given, options, rest: [] });
  });

  it("accepts a value that begins with a hyphen only if it cannot be another option", () => {
    expect(read("cake", "bake", "x", "--filling=--json")).toMatchObject({
      options: { filling: "--json" },
      json: false,
    });
    expect(read("cake", "bake", "x", "--filling", "-")).toMatchObject({ options: { filling: "-" } });
    expect(read("cake", "bake", "--", "--glazed")).toMatchObject({
      given: { KIND: "--glazed" },
      options: { glazed: false },
    });
    expect(() => read("cake", "bake", "x", "--filling", "--json")).toThrow("--filling=VALUE");
  });

  it.each([
    [["cake", "bake"], "KIND is missing"],
    [["cake", "bake", "a", "b", "SECRET"], "Unexpected argument after [SIZE]"],
    [["cake", "bake", "a", "--cream=SECRET"], "Unknown option --cream"],
    [["cake", "bake", "a", "--__proto__", "x"], "Unknown option --__proto__"],
    [["cake", "bake", "a", "--glazed=SECRET"], "--glazed takes no value"],
    [["cake", "bake", "a", "--filling"], "--filling needs a value"],
    [["cake", "bake", "a", "--filling", "x", "--filling", "SECRET"], "--filling is given twice"],
    [["eat", "--project", "SECRET"], "Unknown option --project"],
    [["cake"], "Missing command after platform cake"],
    [["cake", "burn"], "Unknown command platform cake burn. See"],
    [["cake", "bak"], "Unknown command platform cake bak. Did you mean `platform cake bake`? See"],
    [["cale"], "Unknown command platform cale. Did you mean `platform cake`? See"],
    [["cake", "bake", "a", "--fillin", "SECRET"], "Unknown option --fillin. Did you mean --filling? See"],
    [[], "Missing command"],
    [["--json"], "Missing command"],
    [["--project", "SECRET", "eat"], "Options come after the command"],
    [["platform_pat_SECRET"], "Unknown command. See"],
  ])("%j is refused with a sentence that repeats no value", (line, sentence) => {
    expect(() => read(...line)).toThrow(sentence);
    expect(() => read(...line)).not.toThrow("SECRET");
    expect(() => read(...line)).toThrow(expect.objectContaining({ exit: 2, code: "usage" }));
  });

  it("shows help for all commands, for a group and for one command", () => {
    expect(read("--help")).toEqual({ kind: "help", about: "", json: false });
    expect(read("cake", "--help")).toEqual({ kind: "help", about: "cake", json: false });
    expect(read("cake", "bake", "-h")).toEqual({ kind: "help", about: "cake bake", json: false });
    expect(read("help", "cake", "bake")).toEqual({ kind: "help", about: "cake bake", json: false });
    expect(read("--version")).toEqual({ kind: "version", json: false });
  });

  it("reports its error as JSON if it says so before the end of its options", () => {
    expect([wantsJson(["x", "--json"]), wantsJson(["x", "--", "--json"])]).toEqual([true, false]);
  });
});

describe("the help", () => {
  it("names every command, all its options, and each exit code", () => {
    const overview = helpText("", ALL);
    for (const { name, takes, options, about } of ALL) {
      const [group = "", more] = name.split(" ");
      expect(overview).toMatch(new RegExp(`^ {2}${group} `, "m"));
      if (more !== undefined) expect(helpText(group, ALL)).toContain(`  ${[name, ...takes].join(" ")}`);
      const own = helpText(name, ALL);
      expect(own).toContain(`${about}.\n`);
      for (const option of ["json", "help", ...Object.keys(options)])
        expect(own).toMatch(new RegExp(`^ {2}--${option} `, "m"));
    }
    const codes = overview.slice(overview.indexOf("Exit codes:"));
    expect([...codes.matchAll(/\b[0-6]\b/g)].map(([code]) => code).join("")).toBe("0123456");
    expect(helpText("cr", ALL).split("\n  ")).toHaveLength(
      1 + ALL.filter(({ name }) => name.startsWith("cr ")).length,
    );
  });

  it("has an example of each command that people use most, and each is a line that is understood", () => {
    const examples = ALL.flatMap(({ name, example }) => (example === null ? [] : [[name, example] as const]));
    for (const [name, example] of examples) {
      const words = [...example.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? "");
      expect(readLine(words, ALL)).toMatchObject({ kind: "run", command: { name } });
      expect(helpText(name, ALL)).toContain(`Example:\n  platform ${example}`);
    }
    expect(examples.map(([name]) => name)).toEqual(
      expect.arrayContaining([
        "sessions create",
        "sessions chat",
        "sessions wait",
        "triggers new",
        "cr merge",
        "projects create",
      ]),
    );
  });

  it("has the version of the package", () => {
    expect(VERSION).toBe(packageFile.version);
  });
});

describe("an address", () => {
  it.each([
    ["http://127.0.0.1:8080", "http://127.0.0.1:8080/v1"],
    [" https://agents.example.org/ ", "https://agents.example.org/v1"],
    ["https://example.org/platform/v1/", "https://example.org/platform/v1"],
    ["agents.example.org", null],
    ["ftp://example.org", null],
    ["https://user:secret@example.org", null],
    ["https://example.org/?x=1", null],
    ["https://example.org/#x", null],
    ["", null],
  ])("%j is kept as %j", (written, kept) => {
    expect(parseAddress(written)).toBe(kept);
  });
});

describe("output", () => {
  it("is a table whose columns fit their content, with long words cut at a terminal only", () => {
    const long = `ü ${"ü".repeat(78)}`;
    const rows = [["1", "x"], ["22", long]]; // prettier-ignore
    const atTerminal = tableFor(WINDOW);
    expect(atTerminal(["A", "NAME"], rows, "none")).toBe(`A   NAME\n1   x\n22  ü ${"ü".repeat(57)}…`);
    expect(tableFor(null)(["A", "NAME"], rows, "none")).toBe(`A   NAME\n1   x\n22  ${long}`);
    expect(atTerminal(["A"], [], "none")).toBe("none");
  });

  it("is a table that never cuts an address, an id or a path", () => {
    const atTerminal = tableFor(WINDOW);
    const address = `https://platform.example.com/v1/webhooks/projects/${"0".repeat(36)}/on-push`;
    expect(atTerminal(["WHEN"], [[address]], "none")).toBe(`WHEN\n${address}`);
    const filePath = `${"a b/".repeat(20)}c`;
    expect(atTerminal(["FILE"], [[filePath]], "none")).toBe(`FILE\n${filePath}`);
  });

  it("is a table whose last column fits a narrow window, if it has words", () => {
    const narrow = tableFor({ ...WINDOW, columns: 20 });
    expect(narrow(["A", "NAME"], [["four", "one two three four five"]], "")).toBe(
      "A     NAME\nfour  one two three…",
    );
  });

  it("is a table whose cells stand below their row if they do not fit a narrow window", () => {
    const narrow = tableFor({ ...WINDOW, columns: 20 });
    const address = "x".repeat(18);
    expect(
      narrow(
        ["A", "URL"],
        [
          ["four", address],
          ["five", "short"],
        ],
        "",
      ),
    ).toBe(
      // prettier-ignore
      `A     URL\nfour\n  ${address}\nfive  short`,
    );
    const wide = narrow(["A", "B", "C", "NAME"], [["four", "y".repeat(12), "c", "a long name of it"]], "");
    expect(wide).toBe(
      `A     B             \n  C  NAME\nfour  ${"y".repeat(12)}\n  c  a long name of…`.replaceAll(
        / +$/gm,
        "",
      ),
    );
    expect(wide.split("\n").every((line) => line.length <= 20)).toBe(true);
  });

  it("is a table with the ends of ids, but of those that other programs need", () => {
    const id = "0190f3b2-0000-7000-8000-0000deadbeef";
    expect(tableFor(WINDOW)(["SESSION", "BRANCH"], [[id, id]], "")).toBe(`SESSION   BRANCH\ndeadbeef  ${id}`);
    expect(tableFor(WINDOW)(["SESSION OR REASON"], [[id]], "")).toBe("SESSION OR REASON\ndeadbeef");
    expect(tableFor(WINDOW)(["SENDER'S ID"], [[id]], "")).toBe(`SENDER'S ID\n${id}`);
    expect(tableFor({ ...WINDOW, hasShortIds: false })(["TOKEN"], [[id]], "")).toBe(`TOKEN\n${id}`);
    expect(tableFor(null)(["SESSION"], [[id]], "")).toBe(`SESSION\n${id}`);
  });

  it.each([
    ["2026-11-20 11:59Z", "1 min. ago"],
    ["2026-11-20 12:00Z", "this minute"],
    ["2026-11-20 15:00Z", "in 3 hr."],
    ["2026-11-18 12:00Z", "2 days ago"],
    ["2026-01-18 12:00Z", "2026-01-18"],
    ["on 2026-11-20 11:59Z", "on 2026-11-20 11:59Z"],
  ])("is a table with the time from now: %s is %s", (instant, words) => {
    expect(tableFor(WINDOW)(["AT"], [[instant]], "")).toBe(`AT\n${words}`);
    expect(tableFor(null)(["AT"], [[instant]], "")).toBe(`AT\n${instant}`);
  });

  it("is a table with the state of every session in colour, and with no other words", () => {
    const coloured = tableFor({ ...WINDOW, hasColours: true });
    for (const { word } of Object.values(ACTIVITY_WORDS)) {
      expect(coloured(["STATE"], [[`${word}, archived`]], "")).toContain(`\u001b[`);
      expect(coloured(["NAME"], [[word]], "")).not.toContain("\u001b");
    }
  });

  it("is a table with states in colour, where the terminal has colours", () => {
    const rows = [["failed", "x"], ["odd", "y"]]; // prettier-ignore
    expect(tableFor({ ...WINDOW, hasColours: true })(["STATUS", "A"], rows, "")).toBe(
      "STATUS  A\n\u001b[31mfailed\u001b[39m  x\nodd     y",
    );
    expect(tableFor(WINDOW)(["STATUS", "A"], rows, "")).toBe("STATUS  A\nfailed  x\nodd     y");
  });

  it("is a table with one line for a title of several lines", () => {
    expect(table(["NAME"], [["Write NOTES.md\r\n\trun: ls\u001b"]], "none")).toBe(
      "NAME\nWrite NOTES.md run: ls\\x1b",
    );
  });

  it("escapes a terminal's control characters, and keeps the lines of a text", () => {
    expect(
      fieldLines([
        ["failure", "one\ntwo\u001b\n"],
        ["of", null],
        ["id", "x"],
      ]),
    ).toBe("failure  one\n         two\\x1b\nid       x");
    expect(safeLine("a\tb\nc\u0000\u007f\u0085\u2066")).toBe("a\\x09b\\x0ac\\x00\\x7f\\x85\\u2066");
    expect(safeLines("a\tb\nc\rd")).toBe("a\tb\nc\\x0dd");
    const value = { "k\u009b": 'v\u007f\u202e\u2028"\\' };
    const pretty = safeJson(JSON.stringify(value, null, 2));
    expect(pretty).toMatch(/^[\n -~]*$/);
    expect(JSON.parse(pretty)).toEqual(value);
  });
});
