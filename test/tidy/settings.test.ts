import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { settingsPage } from "../../scripts/settings-page.ts";
import { SETTINGS } from "../../src/settings/settings.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const PAGE = "docs/operate/settings.md";

const read = (file: string): string => readFileSync(path.join(ROOT, file), "utf8");

test("the page of settings matches src/settings/settings.ts (else: npm run docs)", () => {
  expect(read(PAGE)).toBe(settingsPage());
});

test("config.ts reads each setting once", () => {
  const sources = ["src/settings/config.ts", "src/settings/cluster-config.ts", "src/settings/model-config.ts"]
    .map(read)
    .join("\n");
  const names = [...sources.matchAll(/"((?:PLATFORM|OTEL)_[A-Z_]+|DATABASE_URL)"/g)].map(([, name]) => name);
  expect(names.toSorted()).toEqual(Object.keys(SETTINGS).toSorted());
});

/** The service injects variables of these names into sandboxes too: the contract describes those. */
const INJECTED_TOO = new Set(["PLATFORM_LLM_API_KEY", "PLATFORM_LLM_BASE_URL"]);

test("no other document has a table of settings", () => {
  const documents = execFileSync("git", ["-c", "safe.directory=*", "ls-files", "-z", "*.md"], {
    cwd: ROOT,
    encoding: "utf8",
  })
    .split("\0")
    .filter((file) => file !== "" && file !== PAGE && existsSync(path.join(ROOT, file)));
  const rows = documents.flatMap((file) =>
    read(file)
      .split("\n")
      .filter((line) => /^\|\s*`[A-Z_]+`/.test(line))
      .flatMap((line) =>
        [...(line.split("|")[1] ?? "").matchAll(/`([A-Z_]+)/g)]
          .map(([, name = ""]) => name)
          .filter((name) => Object.hasOwn(SETTINGS, name) && !INJECTED_TOO.has(name))
          .map((name) => `${file}: ${name}`),
      ),
  );
  expect(rows).toEqual([]);
});
