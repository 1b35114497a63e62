/** Colours of code, without a page. */
import { describe, expect, it } from "vitest";
import { colourLines } from "../../../dashboard/code/colour.ts";
import { type Language, languageNamed, languageOfFile } from "../../../dashboard/code/languages.ts";

const wanted = { isWanted: () => true };

/** The looks of a text, line by line, with what has them. */
const looks = async (language: Language, text: string): Promise<readonly string[]> => {
  const lines = (await colourLines(language, text.split("\n"), wanted)) ?? [];
  expect(lines.map((pieces) => pieces.map((piece) => piece.text).join("")).join("\n")).toBe(text);
  return lines.map((pieces) =>
    pieces
      .filter(({ look }) => look !== "")
      .map((piece) => `${piece.look.slice("code-".length)}(${piece.text.trim()})`)
      .join(" "),
  );
};

describe("the language of a code", () => {
  it.each([
    ["src/main.ts", "typescript"],
    ["web/App.JSX", "tsx"],
    ["Dockerfile", "docker"],
    ["deploy/Dockerfile.web", "docker"],
    ["Makefile", "make"],
    ["a/b.c", "c"],
    ["notes", null],
    ["constructor", null],
    ["a/", null],
  ])("of %s is %s", (path, language) => {
    expect(languageOfFile(path)).toBe(language);
  });

  it("is what is behind the fence", () => {
    expect(["py", "Bash", "js", "json", "", "elvish"].map(languageNamed)).toEqual([
      "python",
      "shellscript",
      "typescript",
      "jsonc",
      null,
      null,
    ]);
  });
});

describe("colours", () => {
  it("are found in steps that also end within a line, while its rules are made ready", async () => {
    const code = ["fun sum(sizes: List<Int>): Int {", "  return sizes.sum() // all"];
    let [ms, steps] = [0, 0];
    const isWanted = () => (steps += 1) > 0;
    // Each look at this clock is a second later, so each step ends as soon as it may.
    const inSteps = await colourLines("kotlin", code, { isWanted, clock: () => (ms += 1000) });
    expect(steps).toBeGreaterThan(20);
    // Now all rules are ready, and the clock stands.
    steps = 0;
    expect(await colourLines("kotlin", code, { isWanted, clock: () => 0 })).toEqual(inSteps);
    expect(steps).toBe(1);
  });

  it("are those of the language, and change no character", async () => {
    expect(await looks("typescript", 'const x: Name = say("hi", 3); // why\n\n')).toEqual([
      'keyword(const) type(Name) function(say) string("hi") number(3) comment(// why)',
      "",
      "",
    ]);
    expect(await looks("python", "def greet(name):\n    return f'Hi {name}'")).toEqual([
      "keyword(def) function(greet) attribute(name)",
      expect.stringContaining("keyword(return)"),
    ]);
  });

  it("know what was begun many lines above", async () => {
    const lines = await looks("typescript", `/*\n${"why\n".repeat(250)}*/ run()`);
    expect(lines[240]).toBe("comment(why)");
    expect(lines.at(-1)).toBe("comment(*/) function(run)");
  });

  it("leave a line plain that no screen can hold", async () => {
    expect(await looks("typescript", `"${"a".repeat(2000)}"\nrun()`)).toEqual(["", "function(run)"]);
  });

  it("end when they are not needed any more", async () => {
    expect(await colourLines("toml", ["a = 1"], { isWanted: () => false })).toBeNull();
  });

  it.each<[Language, string]>([
    ["c", "int main(void) { return 0; }"],
    ["css", "a { color: red; }"],
    ["diff", "+added"],
    ["docker", "FROM debian"],
    ["go", "func main() {}"],
    ["html", '<a href="x">y</a>'],
    ["ini", "a = 1"],
    ["java", "class A { int b = 1; }"],
    ["jsonc", '{ "a": true }'],
    ["kotlin", "fun main() {}"],
    ["make", "all: build"],
    ["markdown", "# Title"],
    ["rust", "fn main() {}"],
    ["shellscript", 'echo "$HOME"'],
    ["sql", "SELECT 1"],
    ["toml", "a = 1"],
    ["tsx", "const a = <b>c</b>;"],
    ["yaml", "a: true"],
  ])("exist for %s", async (language, text) => {
    expect((await looks(language, text)).join("")).not.toBe("");
  });
});
