/** dashboard/elements/icons.ts: the icons that the page names, from the package of Lucide's, so that no build reads the other 1,800. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import * as Schema from "effect/Schema";

/** Their names at Lucide. */
const ICONS = [
  "check",
  "circle-alert",
  "circle-check",
  "circle-dashed",
  "circle-dot",
  "circle-pause",
  "circle-x",
  "copy",
  "file-text",
  "git-pull-request",
  "globe",
  "lightbulb",
  "loader-circle",
  "moon",
  "move-right",
  "pencil",
  "search",
  "square-terminal",
  "trash",
  "wrench",
];

const Package = Schema.fromJsonString(
  Schema.Struct({ icons: Schema.Record(Schema.String, Schema.Struct({ body: Schema.String })) }),
);

const HEAD = `/** The page's icons, from the package @iconify-json/lucide. \`npm run docs\` writes this file; scripts/icons.ts names them. */

/*! @license Lucide - ISC License, Copyright (c) 2026 Lucide Icons and Contributors. Some are of Feather - MIT License, Copyright (c) 2013-present Cole Bemis. */

/** Its shapes, in a square of 24. */
export type IconNode = readonly (readonly [
  shape: "circle" | "path" | "rect",
  attributes: Readonly<Record<string, string>>,
])[];
`;

/** Lines and colours of all icons are the style sheet's. */
const STYLE = /^(?:fill|stroke(?:-\w+)?)$/;

const attributes = (text: string): string =>
  [...text.matchAll(/([\w-]+)="([^"]*)"/g)]
    .filter(([, name = ""]) => !STYLE.test(name))
    .map(([, name, value]) => `${name}: ${JSON.stringify(value)}`)
    .join(", ");

const shapes = (body: string): string =>
  [...body.matchAll(/<(\w+) ([^>]*)\/>/g)]
    .map(([, shape, text = ""]) => `[${JSON.stringify(shape)}, { ${attributes(text)} }]`)
    .join(", ");

const constant = (name: string): string => name.replaceAll("-", "_").toUpperCase();

export const icons = (): string => {
  const file = fileURLToPath(import.meta.resolve("@iconify-json/lucide/icons.json"));
  const all = Schema.decodeSync(Package)(readFileSync(file, "utf8")).icons;
  const lines = ICONS.map(
    (name) => `export const ${constant(name)}: IconNode = [${shapes(all[name]?.body ?? "")}];\n`,
  );
  return `${HEAD}\n${lines.join("")}`;
};
