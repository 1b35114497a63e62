import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { wireSchemas } from "../../scripts/wire.ts";

test("the page's types are those of the API's definitions (else: npm run docs)", () => {
  const file = path.join(import.meta.dirname, "../..", "dashboard/wire-schemas.d.ts");
  expect(readFileSync(file, "utf8")).toBe(wireSchemas());
});
