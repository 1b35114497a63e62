/** Facts of the program that documents of docs/use repeat match the program. */
import { expect, test } from "vitest";
import { parseManifest } from "../../src/domain/manifest/manifest.ts";
import { MODEL_PROVIDERS } from "../../src/domain/sandbox/model.ts";
import { codeBlocks, files, read } from "../support/documents.ts";

const DOCUMENTS = files("docs/use/*.md");

test("lists each provider of models with its secrets and its model", () => {
  const rows = read("docs/use/models.md")
    .split("\n")
    .filter((line) => /^\| `[\w-]+`\s*\| `[A-Z_]+`/.test(line))
    .map((line) => [...line.matchAll(/`([^`]+)`/g)].map(([, text]) => text).join(" "));
  expect(rows).toEqual(MODEL_PROVIDERS.map(({ id, keys, model }) => `${id} ${keys.join(" ")} ${model}`));
});

/** The manifest that docs/use/triggers.md writes, which the parts on other pages belong to. */
const manifest = (): string => {
  const [, written = ""] = /<<'END'\n([\s\S]*?)\nEND$/m.exec(read("docs/use/triggers.md")) ?? [];
  return written;
};

/** The same without a table, for a part that shows another one of that name. A table ends with an empty line. */
const manifestBeside = (part: string): string => {
  const text = manifest();
  const [table] = /^\[webhooks\.[\w-]+\]$/m.exec(part) ?? [];
  const start = table === undefined ? -1 : text.indexOf(table);
  return start < 0 ? text : text.slice(0, start) + text.slice(text.indexOf("\n\n", start));
};

test("shows manifests that parse without an error", () => {
  const parts = DOCUMENTS.flatMap((file) =>
    codeBlocks(read(file)).filter(({ language }) => language === "toml"),
  ).map(({ text }) => text);
  expect(parts.length).toBeGreaterThan(1);
  for (const part of ["", ...parts]) {
    const text = part.includes("[env]") ? part : `${manifestBeside(part)}\n${part}`;
    const { errors, triggers } = parseManifest(new TextEncoder().encode(text));
    expect(errors, text).toEqual([]);
    expect(triggers.length).toBe(part.includes("[env]") ? 0 : 2);
  }
});
