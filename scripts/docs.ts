/** Writes the generated documents, the page's types and icons, and the command line's definitions: `npm run docs`. The tests in test/tidy compare them with their sources. */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { definitions } from "./definitions.ts";
import { entitiesPage } from "./entities-page.ts";
import { eventLabels } from "./event-labels.ts";
import { icons } from "./icons.ts";
import { settingsPage } from "./settings-page.ts";
import { wireSchemas } from "./wire.ts";

const ROOT = path.join(import.meta.dirname, "..");

const PAGES: Readonly<Record<string, () => string>> = {
  "docs/operate/settings.md": settingsPage,
  "dashboard/wire-schemas.d.ts": wireSchemas,
  "src/cli/endpoint/definitions.ts": definitions,
  "dashboard/elements/icons.ts": icons,
  "dashboard/notifications/events.ts": eventLabels,
  "docs/operate/entities.md": () =>
    entitiesPage(readFileSync(path.join(ROOT, "migrations/schema.sql"), "utf8")),
};

for (const [file, page] of Object.entries(PAGES)) writeFileSync(path.join(ROOT, file), page());
