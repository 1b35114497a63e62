/**
 * Filters of webhook triggers: `[webhooks.<slug>]` in the manifest, apart from the canonical fields of `[[triggers]]`.
 * An authentic delivery that does not match starts nothing.
 *
 *  F1 All parts of a filter must match: one of `events`, one of `branches`, every condition of `if`, and no condition of `unless`.
 *  F2 A mistake never makes a filter less strict: a filter with an error is dropped, and its trigger is not served
 *     (domain/manifest/manifest.ts).
 *  F3 A delivery without the value that a part asks for (event, branch or field) does not match that part.
 *  F4 Matching takes bounded time, for all patterns and deliveries.
 */
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { isRecord } from "../../ground/record.ts";
import { EVENT_SKIPS, SKIP_FIELDS } from "./event-skip.ts";
import { valueAt, type JsonObject, type JsonValue } from "./prompt.ts";
import { webhookEvent, type EventHeaders, type WebhookEvent } from "./webhook-event.ts";
import { excerpt, quote } from "../text.ts";

const FilterValue = Schema.Union([Schema.String, Schema.Finite, Schema.Boolean]);
type FilterValue = typeof FilterValue.Type;

const Conditions = Schema.Array(Schema.Struct({ path: Schema.String, equals: FilterValue }));

export const WebhookFilter = Schema.Struct({
  /** `name` or `name.action`. Null means any event. */
  events: Schema.NullOr(Schema.Array(Schema.String)),
  /** Names and globs. Null means any branch, or none. */
  branches: Schema.NullOr(Schema.Array(Schema.String)),
  /** Values that paths, written as in a template, must lead to. */
  conditions: Conditions,
  /** Values that these paths must not lead to. Absent: any. */
  exceptions: Schema.optionalKey(Conditions),
  /** What fires although it starts nothing without a filter: deletions, and the service's own acts. */
  includes: Schema.Array(Schema.Literals(EVENT_SKIPS)),
});
export type WebhookFilter = typeof WebhookFilter.Type;

/** One error in a filter. `field` is null if it concerns the whole entry. */
export interface FilterFault {
  readonly field: string | null;
  readonly message: string;
}

const FIELDS: ReadonlySet<string> = new Set([
  "events",
  "branches",
  "if",
  "unless",
  ...Object.values(SKIP_FIELDS),
]);
const FIELD_NAMES = `${[...FIELDS].slice(0, -1).join(", ")} or ${[...FIELDS].at(-1)}`;
const LIST_LIMIT = 50;
const EVENT_LENGTH = 200;
/** F4: the limit for a branch's name and for a pattern. No code host has longer names. */
const BRANCH_LENGTH = 256;
const CONDITION_LIMIT = 20;
const PATH_LENGTH = 256;
const VALUE_LENGTH = 1024;
/** How many unknown fields of one entry are named. */
const OTHERS_NAMED = 10;

/** Reads one table of `[webhooks]`, a value from the TOML parser. */
export const readWebhookFilter = (entry: unknown): Result.Result<WebhookFilter, readonly FilterFault[]> => {
  if (!isRecord(entry))
    return Result.fail([{ field: null, message: `A filter must be a table with ${FIELD_NAMES}.` }]);
  const reader = new FilterReader(entry);
  reader.checkFields();
  const events = reader.list("events", checkEvent);
  const branches = reader.list("branches", checkBranch);
  const conditions = reader.conditions("if");
  const exceptions = reader.conditions("unless");
  const includes = EVENT_SKIPS.filter((skip) => reader.flag(SKIP_FIELDS[skip]));
  return reader.faults.length > 0
    ? Result.fail(reader.faults)
    : Result.succeed({
        events,
        branches,
        conditions,
        ...(exceptions.length > 0 && { exceptions }),
        includes,
      });
};

/** Whether a delivery matches (F1, F3). `variables` are those of the trigger's template. */
export const matchesFilter = (
  { events, branches, conditions, exceptions = [] }: WebhookFilter,
  event: WebhookEvent,
  variables: JsonObject,
): boolean =>
  (events === null || matchesEvent(events, event)) &&
  (branches === null || matchesBranch(branches, event)) &&
  conditions.every(({ path, equals }) => valueAt(variables, path) === equals) &&
  !exceptions.some(({ path, equals }) => valueAt(variables, path) === equals);

/** Whether the filter excludes a delivery. Without a filter, no delivery is excluded. */
export const isFiltered = (
  filter: WebhookFilter | undefined,
  delivery: { readonly headers: EventHeaders; readonly body: JsonValue; readonly variables: JsonObject },
): boolean =>
  filter !== undefined &&
  !matchesFilter(filter, webhookEvent(delivery.headers, delivery.body), delivery.variables);

const matchesEvent = (events: readonly string[], { name, action }: WebhookEvent): boolean =>
  name !== null && (events.includes(name) || (action !== null && events.includes(`${name}.${action}`)));

const matchesBranch = (branches: readonly string[], { branch }: WebhookEvent): boolean =>
  branch !== null &&
  branch.length <= BRANCH_LENGTH &&
  branches.some((pattern) => matchesGlob(pattern, branch));

/**
 * `*` matches any characters except `/`, `**` matches any. All possible positions in the pattern advance together, so
 * the work is the product of both lengths (F4).
 */
const matchesGlob = (pattern: string, text: string): boolean => {
  if (!pattern.includes("*")) return pattern === text;
  const tokens = pattern.match(/\*\*+|[^]/g) ?? [];
  let positions = passStars(tokens, [true]);
  for (const unit of text.split("")) {
    const next: boolean[] = [];
    for (const [at, token] of tokens.entries()) {
      if (positions[at] !== true) continue;
      if (token === "*" ? unit !== "/" : token.startsWith("*")) next[at] = true;
      else if (token === unit) next[at + 1] = true;
    }
    positions = passStars(tokens, next);
  }
  return positions[tokens.length] === true;
};

/** A star may match the empty text. */
const passStars = (tokens: readonly string[], positions: boolean[]): boolean[] => {
  for (const [at, token] of tokens.entries())
    if (positions[at] === true && token.startsWith("*")) positions[at + 1] = true;
  return positions;
};

/** Returns the error in a text, or null. */
type Check = (text: string) => string | null;

/** Takes fields out of an entry and collects their errors. */
class FilterReader {
  readonly faults: FilterFault[] = [];
  private readonly entry: Readonly<Record<string, unknown>>;

  constructor(entry: Readonly<Record<string, unknown>>) {
    this.entry = entry;
  }

  checkFields(): void {
    const names = Object.keys(this.entry);
    if (!names.some((name) => FIELDS.has(name)))
      this.refuse(null, `A filter must have at least one of ${FIELD_NAMES}.`);
    for (const other of names.filter((name) => !FIELDS.has(name)).slice(0, OTHERS_NAMED))
      this.refuse(
        excerpt(other),
        `Unknown field ${quote(other)}. A filter has the fields ${[...FIELDS].join(", ")}.`,
      );
  }

  list(field: "events" | "branches", check: Check): readonly string[] | null {
    const value = this.entry[field];
    if (value === undefined) return null;
    if (!Array.isArray(value) || value.length === 0 || value.length > LIST_LIMIT) {
      this.refuse(field, `${field} must be a list of 1 to ${LIST_LIMIT} strings.`);
      return null;
    }
    for (const [at, item] of value.entries()) {
      const problem = typeof item === "string" ? check(item) : `${field} must be a list of strings.`;
      if (problem !== null) this.refuse(`${field}[${at}]`, problem);
    }
    return value.filter((item) => typeof item === "string");
  }

  conditions(field: "if" | "unless"): WebhookFilter["conditions"] {
    const value = this.entry[field];
    if (value === undefined) return [];
    const entries = isRecord(value) ? Object.entries(value) : [];
    if (entries.length === 0 || entries.length > CONDITION_LIMIT) {
      this.refuse(
        field,
        `${field} must be a table of 1 to ${CONDITION_LIMIT} conditions, for example { "body.action" = "opened" }.`,
      );
    }
    for (const [path, equals] of entries) {
      const problem = checkCondition(path, equals);
      if (problem !== null) this.refuse(`${field}.${excerpt(path)}`, problem);
    }
    return entries.map(([path, equals]) => ({ path, equals: equals as FilterValue }));
  }

  flag(field: string): boolean {
    const { [field]: value = false } = this.entry;
    if (typeof value !== "boolean") this.refuse(field, `${field} must be true or false.`);
    return value === true;
  }

  private refuse(field: string | null, message: string): void {
    this.faults.push({ field, message });
  }
}

const checkEvent: Check = (event) => {
  if (event === "ping" || event.startsWith("ping."))
    return "A ping never starts a session, so events must not include it.";
  return event.trim() === event && event !== "" && event.length <= EVENT_LENGTH && !/\p{Cc}/u.test(event)
    ? null
    : `${quote(event)} must be the name of an event, for example "push" or "pull_request.opened".`;
};

const checkBranch: Check = (branch) => {
  if (branch.startsWith("refs/"))
    return `${quote(branch)} must be the name of a branch, without refs/heads/.`;
  return branch.trim() === branch &&
    branch !== "" &&
    branch.length <= BRANCH_LENGTH &&
    !/\p{Cc}/u.test(branch)
    ? null
    : `${quote(branch)} must be the name of a branch of 1 to ${BRANCH_LENGTH} characters. * matches any character except /.`;
};

const PATH = /^(?:body(?:\.[A-Za-z0-9_-]+)*|headers\.(?:content_type|user_agent|forwarded_for))$/;

const checkCondition = (path: string, equals: unknown): string | null => {
  if (isRecord(equals))
    return `${quote(path)} is a table. Write the whole path in quotes, for example "body.action" = "opened".`;
  if (path.length > PATH_LENGTH || !PATH.test(path))
    return `${quote(path)} must be a path below body, for example "body.action", or a header that templates can use.`;
  if (typeof equals === "string" && equals.length > VALUE_LENGTH)
    return `The value of ${quote(path)} must have at most ${VALUE_LENGTH} characters.`;
  return Schema.is(FilterValue)(equals)
    ? null
    : `The value of ${quote(path)} must be a string, a number or true or false.`;
};
