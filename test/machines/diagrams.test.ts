import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { machinesPage } from "../../scripts/diagrams.ts";

test("the page of diagrams matches the machines (else: npm run diagrams)", () => {
  const page = readFileSync(new URL("../../src/machines/README.md", import.meta.url), "utf8");
  expect(page).toBe(machinesPage());
});
