/**
 * The filters of a manifest's webhook triggers: the tables `[webhooks.<slug>]`. A filter with an error disables its
 * trigger (domain/trigger/webhook-filter.ts, F2). Other errors in the tables are reported beside the good entries.
 */
import * as Result from "effect/Result";
import { isRecord } from "../../ground/record.ts";
import { lineMatching, type EntryPlace, type ManifestError } from "./manifest-error.ts";
import type { Table } from "./toml.ts";
import type { TriggerDefinition } from "../trigger/trigger.ts";
import { readWebhookFilter, type FilterFault } from "../trigger/webhook-filter.ts";

/** How many filters without a trigger are named. A file of a megabyte could hold fifty thousand. */
const STRAYS_NAMED = 100;

interface Entries {
  readonly triggers: readonly TriggerDefinition[];
  readonly places: ReadonlyMap<string, EntryPlace>;
}

interface Filtered {
  readonly triggers: readonly TriggerDefinition[];
  readonly errors: readonly ManifestError[];
}

/**
 * Joins triggers with their filters.
 *
 * @param webhooks the value of `webhooks`; undefined if the file has none.
 */
export const withFilters = (entries: Entries, webhooks: unknown, text: string): Filtered => {
  if (webhooks === undefined) return { triggers: entries.triggers, errors: [] };
  if (!isRecord(webhooks)) return withoutWebhooks(entries, text);
  const errors = strayErrors(entries, webhooks, text);
  const triggers = entries.triggers.flatMap((trigger) => {
    const { slug } = trigger;
    if (trigger.type !== "webhook" || !Object.hasOwn(webhooks, slug)) return [trigger];
    const filter = readWebhookFilter(webhooks[slug]);
    if (Result.isSuccess(filter)) return [{ ...trigger, filter: filter.success }];
    const index = entries.places.get(slug)?.index ?? null;
    errors.push(...filter.failure.map((fault) => toManifestError(fault, { slug, index, text })));
    return [];
  });
  return { triggers, errors };
};

/** It is unknown which triggers have filters, so no webhook trigger is served. */
const withoutWebhooks = ({ triggers }: Entries, text: string): Filtered => ({
  triggers: triggers.filter(({ type }) => type !== "webhook"),
  errors: [
    {
      slug: null,
      index: null,
      path: "webhooks",
      message:
        "Write filters as one table for each trigger, [webhooks.<slug>]. Webhook triggers do not run until this is fixed.",
      line: lineMatching(text, /^[ \t]*(?:\[\[?[ \t]*)?webhooks\b/),
    },
  ],
});

const strayErrors = ({ triggers, places }: Entries, webhooks: Table, text: string): ManifestError[] => {
  const types = new Map(triggers.map(({ slug, type }) => [slug, type]));
  const strays = Object.keys(webhooks).flatMap((slug) => {
    const type = types.get(slug);
    if (type !== undefined && type !== "webhook")
      return [
        {
          slug,
          message: `The trigger ${slug} is a ${type} trigger. Only webhook triggers can have filters.`,
        },
      ];
    // An entry that is itself wrong is reported as such.
    return places.has(slug) ? [] : [{ slug, message: "No trigger has this slug." }];
  });
  return strays.slice(0, STRAYS_NAMED).map(({ slug, message }) => ({
    slug: slug !== "" && slug.length <= 128 ? slug : null,
    index: places.get(slug)?.index ?? null,
    path: `webhooks.${slug.slice(0, 128)}`,
    message,
    line: headerLine(text, slug),
  }));
};

interface FilterPlace {
  readonly slug: string;
  readonly index: number | null;
  readonly text: string;
}

const toManifestError = (
  { field, message }: FilterFault,
  { slug, index, text }: FilterPlace,
): ManifestError => ({
  slug,
  index,
  path: field === null ? `webhooks.${slug}` : `webhooks.${slug}.${field}`,
  message: `${message} The trigger does not run until its filter is fixed.`,
  line: headerLine(text, slug),
});

const HEADER = /^[ \t]*\[[ \t]*webhooks[ \t]*\.[ \t]*(?:"([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+))[ \t]*\]/;

/** The line of a filter's header. Null if no line, or more than one, looks like it. */
const headerLine = (text: string, slug: string): number | null => {
  const lines = text.split("\n").flatMap((line, index) => {
    const [, double, single, bare] = HEADER.exec(line) ?? [];
    return (double ?? single ?? bare) === slug ? [index + 1] : [];
  });
  return lines.length === 1 ? (lines[0] ?? null) : null;
};
