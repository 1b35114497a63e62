import { expect, it } from "vitest";
import { command } from "../../src/cli/command.ts";
import { nextWords } from "../../src/cli/commands/completion.ts";
import { runHere } from "../support/service/command-line.ts";

const one = (name: string, options: Readonly<Record<string, { readonly about: string }>> = {}) =>
  command({ name, about: name, options, run: () => Promise.resolve("writes") });
const COMMANDS = [one("cake bake", { glazed: { about: "" } }), one("cake eat"), one("wash")];

it.each([
  [[], ["cake", "wash"]],
  [["cake"], ["bake", "eat"]],
  [
    ["--json", "cake", "bake", "round"],
    ["--glazed", "--json", "--help"],
  ],
  [["nothing"], []],
])("after %j come %j", (before, next) => {
  expect(nextWords(before, COMMANDS)).toEqual(next);
});

it("gives shells a script, and the words that they ask for", async () => {
  for (const shell of ["bash", "zsh", "fish"])
    expect((await runHere(["completion", shell])).stdout).toContain("platform completion words");
  expect((await runHere(["completion", "words", "--", "projects"])).stdout.split("\n")).toContain("create");
  expect((await runHere(["completion", "cmd"])).code).toBe(2);
});
