/** What `npm test` leaves out, the deep tests run. */
import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { WHOLE_IN_DEEP } from "../../vitest.config.ts";

const ROOT = path.join(import.meta.dirname, "../..");

test("runs every file in the deep tests of which npm test runs a sample", () => {
  const asking = globSync("test/**/*.ts", { cwd: ROOT }).filter((file) =>
    /from "[./]+\/support\/vitest\/rings\.ts"/.test(readFileSync(path.join(ROOT, file), "utf8")),
  );
  expect(asking.length).toBeGreaterThan(0);
  expect([...WHOLE_IN_DEEP].toSorted()).toEqual(asking.toSorted());
});
