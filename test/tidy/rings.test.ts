/** Which ring runs a file: what `npm test` leaves out, `npm run test:real` or the deep tests run. */
import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { REPLACE_GLOBALS, WHOLE_IN_DEEP } from "../../vitest.config.ts";
import fast, { WITH_POSTGRES } from "../fast.config.ts";

const ROOT = path.join(import.meta.dirname, "../..");

test("runs every file in the deep tests of which npm test runs a sample", () => {
  const asking = globSync("test/**/*.ts", { cwd: ROOT }).filter((file) =>
    /from "[./]+\/support\/vitest\/rings\.ts"/.test(readFileSync(path.join(ROOT, file), "utf8")),
  );
  expect(asking.length).toBeGreaterThan(0);
  expect([...WHOLE_IN_DEEP].toSorted()).toEqual(asking.toSorted());
});

test("gives a process of its own to a file that replaces its globals", () => {
  const replacing = globSync("test/**/*.test.ts", { cwd: ROOT }).filter((file) =>
    /\bvi\.(?:useFakeTimers|stubGlobal)\(/.test(readFileSync(path.join(ROOT, file), "utf8")),
  );
  expect([...REPLACE_GLOBALS].toSorted()).toEqual(replacing.toSorted());
});

test("leaves Chromium to npm run test:real, except for the file that shows the page as a whole", () => {
  const browsing = globSync("test/**/*.test.ts", { cwd: ROOT }).filter((file) =>
    /^import [^;]*\b(?:hasChromium|useBrowser)\b/m.test(readFileSync(path.join(ROOT, file), "utf8")),
  );
  expect(browsing.length).toBeGreaterThan(10);
  expect(browsing.filter((file) => !/\.(?:real|deep)\.test\.ts$/.test(file))).toEqual([
    "test/dashboard/frame/page.test.ts",
  ]);
});

test("leaves files that ask for a database out of npm run test:fast", () => {
  const included = (fast.test?.projects ?? []).flatMap((project) =>
    typeof project === "object" && "test" in project ? (project.test?.include ?? []) : [],
  );
  const files = globSync(included, { cwd: ROOT }).filter((file) => !/\.(?:real|deep)\.test\.ts$/.test(file));
  const asking = files.filter((file) =>
    /from "[./]+\/support\/(?:postgres\/|service\/service\.ts)/.test(
      readFileSync(path.join(ROOT, file), "utf8"),
    ),
  );
  expect(files.length).toBeGreaterThan(100);
  expect(asking.toSorted()).toEqual([...WITH_POSTGRES].toSorted());
});
