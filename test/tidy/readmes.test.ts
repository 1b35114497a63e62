/** A folder that is too large to read as a list has a README: what is here, the way through it, where to add one. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const ROOT = path.join(import.meta.dirname, "..", "..");
const ROOMS = ["src", "daemon", "migrations", "test", "dashboard", "scripts"];
/** A README is needed above this number of files, itself not counted. */
const FILES_MAX = 15;
const LINES_MAX = 40;
/** A test writes it from the machines (test/machines/diagrams.test.ts). */
const GENERATED = "src/machines/README.md";

const FILES = execFileSync("git", ["-c", "safe.directory=*", "ls-files", "-z", "--", ...ROOMS], {
  cwd: ROOT,
  encoding: "utf8",
})
  .split("\0")
  .filter((file) => file !== "" && existsSync(path.join(ROOT, file)));

const isReadme = (file: string): boolean => path.basename(file) === "README.md";
const read = (file: string): string => readFileSync(path.join(ROOT, file), "utf8");

test("has a README in every folder of more than fifteen files", () => {
  const sizes = new Map<string, number>();
  for (const file of FILES.filter((each) => !isReadme(each))) {
    const folder = path.dirname(file);
    sizes.set(folder, (sizes.get(folder) ?? 0) + 1);
  }
  const large = [...sizes].filter(([, files]) => files > FILES_MAX).map(([folder]) => folder);
  expect(large.length).toBeGreaterThan(10);
  expect(large.filter((folder) => !FILES.includes(`${folder}/README.md`))).toEqual([]);
});

test("keeps every README of a folder within forty lines", () => {
  const long = FILES.filter((file) => isReadme(file) && file !== GENERATED)
    .map((file) => ({ file, lines: read(file).split("\n").length - 1 }))
    .filter(({ lines }) => lines > LINES_MAX);
  expect(long).toEqual([]);
});

test("has only links to existing files in every README of a folder", () => {
  const broken = FILES.filter(isReadme).flatMap((file) =>
    [...read(file).matchAll(/\]\((?!https?:|#)([^)#]+)/g)]
      .map(([, target = ""]) => target)
      .filter((target) => !existsSync(path.join(ROOT, path.dirname(file), target)))
      .map((target) => `${file} ${target}`),
  );
  expect(broken).toEqual([]);
});
