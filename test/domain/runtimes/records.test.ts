/** What every record of a runtime keeps to. */
import { globSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { ACP } from "../../../src/domain/runtimes/acp.ts";
import { CLAUDE_CODE } from "../../../src/domain/runtimes/claude-code.ts";
import { CODEX } from "../../../src/domain/runtimes/codex.ts";
import { GEMINI } from "../../../src/domain/runtimes/gemini.ts";
import { OPENCODE } from "../../../src/domain/runtimes/opencode.ts";
import { PLAIN } from "../../../src/domain/runtimes/plain.ts";
import { NO_QUESTIONS } from "../../../src/domain/runtimes/protocol.ts";
import { PERMISSIONS } from "../../../src/domain/runtimes/runtime.ts";

/** A line with the kinds of model providers: one of them has the name of a runtime. */
const KINDS = '"openai-compatible"';

const RECORDS = [ACP, CLAUDE_CODE, CODEX, GEMINI, OPENCODE, PLAIN];

it.each(RECORDS.map((record) => [record.name, record] as const))("holds for %s", (_, record) => {
  const { command, takesCommand, mode, modes, models, modelVariable, permissions, conversation } = record;
  // Someone names the program.
  expect(command === null).toBe(takesCommand);
  if (mode !== null) expect(modes).toContain(mode);
  if (modelVariable !== null) expect(models).toBe("own");
  for (const one of permissions) expect(PERMISSIONS).toContain(one);
  for (const file of record.history ?? []) expect(file).toMatch(/^\.[a-z]+\/(?!.*\.\.)[^/].*[^/]$/);
  expect(record.lacks.questions).toBe(record.adapter === "acp" ? NO_QUESTIONS : undefined);
  if (!conversation) expect([models, modes, permissions, record.instructions]).toEqual([null, [], [], false]);
});

it("lets nothing outside the records ask for the name of a runtime that is no adapter", () => {
  const names = RECORDS.filter(({ name, adapter }) => name !== adapter).map(({ name }) => name);
  const files = globSync("{src,daemon,dashboard}/**/*.{ts,tsx,js}", { exclude: ["**/node_modules/**"] });
  expect(files.length).toBeGreaterThan(500);
  const asking = files.filter(
    (file) =>
      !file.startsWith("src/domain/runtimes/") &&
      readFileSync(file, "utf8")
        .split("\n")
        .some((line) => !line.includes(KINDS) && names.some((name) => line.includes(`"${name}"`))),
  );
  expect(asking).toEqual([]);
});
