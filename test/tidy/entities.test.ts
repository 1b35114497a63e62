import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { entitiesPage } from "../../scripts/entities-page.ts";

const read = (file: string): string => readFileSync(path.join(import.meta.dirname, "../..", file), "utf8");
const SCHEMA = read("migrations/schema.sql");

test("the picture of entities matches the schema (else: npm run docs)", () => {
  expect(read("docs/operate/entities.md")).toBe(entitiesPage(SCHEMA));
});

test("a table that the page does not describe is an error", () => {
  const more = `${SCHEMA}\nCREATE TABLE orders (\n  id uuid NOT NULL,\n  CONSTRAINT orders_pkey PRIMARY KEY (id)\n);\n`;
  expect(() => entitiesPage(more)).toThrow("does not say what a row of orders is");
});

test("a column that refers to no known table is an error", () => {
  const changed = SCHEMA.replace(
    /(CREATE TABLE session_sandboxes \([^;]*?)  node_id text NOT NULL,/,
    "$1  order_id uuid NOT NULL,\n  node_id text NOT NULL,",
  );
  expect(() => entitiesPage(changed)).toThrow("session_sandboxes.order_id refers to no known table");
});
