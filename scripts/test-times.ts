/**
 * `npm run test:times`: how long the tests take, by folder, and the ten slowest files, for each command. Use it on a machine that does
 * nothing else: CONTRIBUTING.md records its figures. Names of commands after `--` choose some: `test:fast`, `test`, `test:real`.
 *
 * The seconds of files are added up. Files run side by side, so their sum is more than the command's own time.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

const ROOT = path.join(import.meta.dirname, "..");
const CONFIGS: Readonly<Record<string, string>> = {
  "test:fast": "test/fast.config.ts",
  test: "vitest.config.ts",
  "test:real": "test/real.config.ts",
};
const SLOWEST = 10;

interface FileResult {
  readonly name: string;
  readonly startTime: number;
  readonly endTime: number;
}

/** `test/http/change-requests/git.test.ts` is of `test/http`. A file below `test` itself is of `test`. */
const folderOf = (file: string): string => file.split("/").slice(0, -1).slice(0, 2).join("/");

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1).padStart(8)} s`;

/** Runs a command's tests. @returns the time of each file in ms, the longest first */
const timesOf = (config: string): readonly { readonly file: string; readonly ms: number }[] => {
  const directory = mkdtempSync(path.join(tmpdir(), "times-"));
  const results = path.join(directory, "results.json");
  spawnSync(
    process.execPath,
    [
      path.join(ROOT, "node_modules/vitest/vitest.mjs"),
      "run",
      `--config=${config}`,
      "--reporter=json",
      `--outputFile=${results}`,
    ],
    { cwd: ROOT, stdio: ["ignore", "ignore", "inherit"] },
  );
  const { testResults } = JSON.parse(readFileSync(results, "utf8")) as {
    readonly testResults: readonly FileResult[];
  };
  rmSync(directory, { recursive: true });
  return testResults
    .map(({ name, startTime, endTime }) => ({ file: path.relative(ROOT, name), ms: endTime - startTime }))
    .toSorted((one, other) => other.ms - one.ms);
};

const print = (command: string, config: string): void => {
  const began = performance.now();
  const times = timesOf(config);
  const lines = [
    `\nnpm run ${command}: ${times.length} files in ${seconds(performance.now() - began).trim()}`,
  ];
  const folders = Map.groupBy(times, ({ file }) => folderOf(file));
  const sums = [...folders].map(([folder, files]) => ({
    folder,
    count: files.length,
    ms: files.reduce((sum, { ms }) => sum + ms, 0),
  }));
  for (const { folder, count, ms } of sums.toSorted((one, other) => other.ms - one.ms))
    lines.push(`${seconds(ms)}  ${folder} (${count})`);
  lines.push("the slowest files:");
  for (const { file, ms } of times.slice(0, SLOWEST)) lines.push(`${seconds(ms)}  ${file}`);
  process.stdout.write(`${lines.join("\n")}\n`);
};

const chosen = process.argv.slice(2);
for (const [command, config] of Object.entries(CONFIGS)) {
  if (chosen.length === 0 || chosen.includes(command)) print(command, config);
}
