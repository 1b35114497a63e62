import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { definitions } from "../../scripts/definitions.ts";
import { eventLabels } from "../../scripts/event-labels.ts";
import { icons } from "../../scripts/icons.ts";
import { wireSchemas } from "../../scripts/wire.ts";

test.each([
  { file: "dashboard/wire-schemas.d.ts", text: wireSchemas },
  { file: "src/cli/endpoint/definitions.ts", text: definitions },
  { file: "dashboard/elements/icons.ts", text: icons },
  { file: "dashboard/notifications/events.ts", text: eventLabels },
])("$file is written from its source (else: npm run docs)", ({ file, text }) => {
  expect(readFileSync(path.join(import.meta.dirname, "../..", file), "utf8")).toBe(text());
});
