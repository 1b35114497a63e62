/** How many files of the service name one field, one endpoint and one setting: docs/walks.md says which. */
import { expect, test } from "vitest";
import { files, read } from "../support/documents.ts";

const SOURCES = files("src/*.ts");

test.each([
  {
    what: "a field of a record, and where its value is known",
    name: /\b(?:declaredBytes|declared_bytes)\b/,
    places: [
      "src/http/api/examples/records.ts",
      "src/http/api/triggers/webhook-refusals.ts",
      "src/http/webhooks/webhooks.ts",
      "src/store/ports/triggers/webhook-refusals.ts",
      "src/store/postgres/triggers/webhook-refusals.ts",
    ],
  },
  {
    what: "an endpoint",
    name: /\bendBrowser\b/,
    places: [
      "src/http/api/examples/operations.ts",
      "src/http/api/identity.ts",
      "src/http/handlers/identity.ts",
    ],
  },
  {
    what: "a setting",
    name: /\bPLATFORM_INSPECT_PORT\b/,
    places: ["src/settings/config.ts", "src/settings/settings.ts"],
  },
])("$what is named in these files only", ({ name, places }) => {
  expect(SOURCES.length).toBeGreaterThan(900);
  expect(SOURCES.filter((file) => name.test(read(file)))).toEqual(places);
});
