import { expect } from "vitest";
import { parseManifest } from "../../../src/domain/manifest/manifest.ts";
import type { ManifestError } from "../../../src/domain/manifest/manifest-error.ts";
import type { Manifest } from "../../../src/domain/manifest/manifest.ts";

export const parse = (text: string): Manifest => parseManifest(Buffer.from(text));

/** One webhook trigger with a field added or replaced; `undefined` leaves a field out. */
export const webhook = (fields: Readonly<Record<string, string | undefined>> = {}): string => {
  const all = { slug: '"hook"', type: '"webhook"', prompt: '"Go"', secret_env: '"HOOK_SECRET"', ...fields };
  const lines = Object.entries(all).map(([key, value]) => (value === undefined ? "" : `${key} = ${value}\n`));
  return `[[triggers]]\n${lines.join("")}`;
};
export const cron = (fields: Readonly<Record<string, string | undefined>> = {}): string =>
  webhook({ type: '"cron"', cron: '"0 0 2 * * *"', secret_env: undefined, slug: '"nightly"', ...fields });

export const onlyError = (manifest: Manifest): ManifestError => {
  expect(manifest.errors).toHaveLength(1);
  const [error] = manifest.errors;
  if (error === undefined) throw new Error("no error");
  return error;
};
export const slugs = (manifest: Manifest): readonly string[] => manifest.triggers.map(({ slug }) => slug);
