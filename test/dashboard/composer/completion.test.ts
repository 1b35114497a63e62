import { describe, expect, it } from "vitest";
import {
  commandsIn,
  listingOf,
  offeredCommands,
  offeredFiles,
  ROWS_MAX,
  taken,
  tokenAt,
} from "../../../dashboard/composer/completion.ts";
import { CLAUDE_CODE } from "../../../src/domain/runtimes/claude-code.ts";
import { OPENCODE } from "../../../src/domain/runtimes/opencode.ts";
import { PLAIN } from "../../../src/domain/runtimes/plain.ts";

const known = <A>(value: A) => ({ value, problem: null });

describe("the word that opens a menu", () => {
  it.each([
    ["/", "/", 0, ""],
    ["/rev", "/", 0, "rev"],
    ["@", "@", 0, ""],
    ["Read @src/a", "@", 5, "src/a"],
    ["one\n@two", "@", 4, "two"],
  ])("is found in %j", (text, sign, begin, typed) => {
    expect(tokenAt(text, text.length)).toEqual({ sign, begin, typed });
  });

  it.each(["", "word", "Use /review", "\n/review", "mona@example.org", "@one ", "/review now"])(
    "is not in %j",
    (text) => expect(tokenAt(text, text.length)).toBeNull(),
  );

  it("ends at the caret, and is no part of a longer word", () => {
    expect(tokenAt("@one two", 4)).toEqual({ sign: "@", begin: 0, typed: "one" });
    expect(tokenAt("@one two", 2)).toBeNull();
  });
});

describe("the commands of `/`", () => {
  const commands = ["compact", "init", "review", "re-init"].map((name) => ({ name, description: null }));
  const names = (typed: string) =>
    offeredCommands(known(commands), typed)?.rows.map(({ name }) => name) ?? null;

  it("are all for the sign alone, and those that begin with the word before those that contain it", () => {
    expect(names("")).toEqual(["/compact", "/init", "/review", "/re-init"]);
    expect(names("INI")).toEqual(["/init", "/re-init"]);
    expect(names("init now")).toBeNull();
  });

  it("are none if the runtime names none", () => {
    expect(offeredCommands(known([]), "")).toBeNull();
  });

  it("say that they are awaited, or why the list is empty", () => {
    const notes = [null, "", "Send a message first."].map(
      (problem) => offeredCommands({ value: null, problem }, "")?.note,
    );
    expect(notes).toEqual(["Looking for commands…", "Looking for commands…", "Send a message first."]);
  });
});

describe("the commands of a repository", () => {
  const files = listingOf([
    ".claude/commands/greet.md",
    ".claude/commands/web/check.md",
    ".claude/settings.json",
    ".opencode/command/greet.md",
    ".opencode/commands/web/check.md",
    ".opencode/command/no name.md",
    "docs/.opencode/command/other.md",
  ]);
  const names = (form: string | null) => commandsIn(known(files), form).value?.map(({ name }) => name);

  it.each([
    [OPENCODE, ["greet", "web/check"]],
    [CLAUDE_CODE, ["greet", "check"]],
    [PLAIN, []],
  ])("are for $name the files that it looks for", ({ commandFiles }, expected) => {
    expect(names(commandFiles)).toEqual(expected);
  });

  it("are awaited with the files, but for a runtime that has none there", () => {
    const awaited = { value: null, problem: null };
    expect(commandsIn(awaited, OPENCODE.commandFiles).value).toBeNull();
    expect(commandsIn(awaited, null).value).toEqual([]);
  });
});

describe("the files of `@`", () => {
  const PATHS = [
    "README.md",
    "a file.txt",
    "docs/account.md",
    "src/account/list.ts",
    "src/account/sign in/form.ts",
    "src/main.ts",
    "src/old/account.ts",
  ];
  const rows = (typed: string) => offeredFiles(known(listingOf(PATHS)), typed)?.rows ?? null;
  const written = (typed: string) => rows(typed)?.map(({ writes }) => writes) ?? null;

  it("are those of the folder that is typed, folders first", () => {
    expect(written("")).toEqual(["@docs/", "@src/", '@"a file.txt"', "@README.md"]);
    expect(written("SRC/")).toEqual(["@src/account/", "@src/old/", "@src/main.ts"]);
    expect(rows("src/")?.[0]).toEqual({ writes: "@src/account/", name: "account/", about: "", goesOn: true });
  });

  it("are found anywhere by their names, then by their paths, then by their letters in order", () => {
    expect(written("acc")).toEqual([
      "@src/account/",
      "@docs/account.md",
      "@src/old/account.ts",
      '@"src/account/sign in/"',
      "@src/account/list.ts",
      '@"src/account/sign in/form.ts"',
    ]);
    expect(written("src/ma")).toEqual(["@src/main.ts"]);
    expect(written("smts")).toEqual(["@src/main.ts", '@"src/account/sign in/form.ts"']);
    expect(written("zz")).toBeNull();
    expect(rows("list")).toEqual([
      { writes: "@src/account/list.ts", name: "list.ts", about: "src/account/", goesOn: false },
    ]);
  });

  it("are at most so many, and say if not all are searched", () => {
    const many = Array.from({ length: 200 }, (_, n) => `f${n}`);
    const offer = offeredFiles(known(listingOf(many, 31_415)), "f");
    expect(offer?.rows).toHaveLength(ROWS_MAX);
    expect(offer?.note).toBe("Only the first 200 of 31,415 files are searched.");
  });
});

describe("taking a row", () => {
  const row = { name: "", about: "", goesOn: false };
  const take = (text: string, caret: number, writes: string, goesOn = false) => {
    const token = tokenAt(text, caret);
    return token && taken(text, token, { ...row, writes, goesOn });
  };

  it("writes it with a blank, and goes on in a folder", () => {
    expect(take("/re", 3, "/review")).toEqual({ text: "/review ", caret: 8 });
    expect(take("Read @s", 7, "@src/", true)).toEqual({ text: "Read @src/", caret: 10 });
  });

  it("keeps what is around it, with one blank behind it", () => {
    expect(take("Read @a now", 7, "@a.ts")).toEqual({ text: "Read @a.ts now", caret: 11 });
    expect(take("@a\nnext", 2, "@a.ts")).toEqual({ text: "@a.ts \nnext", caret: 6 });
  });
});
