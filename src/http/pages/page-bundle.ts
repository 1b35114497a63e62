/** Bundles the page (decision 0095): one script for each reader, and one for each page that is loaded when it is opened. */
import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import * as Schema from "effect/Schema";

const Content = Schema.Struct({ name: Schema.String, plain: Schema.Uint8ArrayFromBase64 });
export type Content = typeof Content.Type;

const PageBundle = Schema.fromJsonString(
  Schema.Struct({
    /** Scripts and styles. */
    files: Schema.Array(Content),
    /** The name of each entry's file, by the name that `index.html` has for it. */
    entries: Schema.Record(Schema.String, Schema.String),
    /** The scripts that the first one imports. */
    parts: Schema.Array(Schema.String),
  }),
);
export type PageBundle = typeof PageBundle.Type;

export const encodeBundle = Schema.encodeSync(PageBundle);
const decodeBundle = Schema.decodeSync(PageBundle);

const BUNDLER = path.join(import.meta.dirname, "page-bundler.ts");
/** What a bundle depends on, beside the page. */
export const BUNDLE_SOURCES: readonly string[] = [
  import.meta.filename,
  BUNDLER,
  ...[
    "counted.ts",
    "duration.ts",
    "text.ts",
    "conversation/growing.ts",
    "conversation/row-texts.ts",
    "conversation/tool-words.ts",
    "trigger/cron-days.ts",
    "trigger/templates.ts",
    "trigger/placeholders.ts",
    "save/reasons.ts",
    "save/shown.ts",
    "service/news-words.ts",
    "session/activity-words.ts",
    "session/begun.ts",
    "session/failure.ts",
    "session/model-errors.ts",
    "session/ssh-host.ts",
    "session/title.ts",
    "person/own-session.ts",
    "model/menu.ts",
  ].map((file) => path.join(import.meta.dirname, "../../domain", file)),
];

/** Fifteen times the page's size. */
const OUTPUT_BYTES_MAX = 32 * 1024 * 1024;
/** It takes two seconds of CPU time. */
const DEADLINE_MS = 5 * 60_000;

const execute = promisify(execFile);

/**
 * Vite takes 250 MB, so it runs in a separate process.
 *
 * @param directory has the page's sources
 */
export const bundlePage = async (directory: string): Promise<PageBundle> => {
  // Fails as an import does where development packages are missing (build-cache.ts).
  import.meta.resolve("vite");
  const { stdout } = await execute(process.execPath, [BUNDLER, directory], {
    // Libraries choose their code by it, and tests have another value.
    env: { NODE_ENV: "production" },
    maxBuffer: OUTPUT_BYTES_MAX,
    timeout: DEADLINE_MS,
  });
  return decodeBundle(stdout);
};
