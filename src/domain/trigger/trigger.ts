/**
 * Trigger definitions and the manifest entries that they are read from (spec.md 2.4, 7.2). An entry is either accepted
 * whole, or refused with every reason at once. Only the canonical field names count (threats.md M10).
 */
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { isRecord } from "../../ground/record.ts";
import { DEFAULT_AGENT, AGENT_NAME_RULE, isAgentName } from "../sandbox/agent.ts";
import { parseCron } from "./cron.ts";
import { PROMPT_LIMIT_BYTES } from "./prompt.ts";
import { checkSecretName, SECRET_NAME_LIMIT } from "../secret/secret.ts";
import { WebhookFilter } from "./webhook-filter.ts";
import { isZoneName } from "./zone.ts";
import { excerpt, isBlank, isLongerThan, isOneLine, quote } from "../text.ts";

/** The zone of a schedule that names none. */
export const DEFAULT_TIMEZONE = "UTC";
/** The longest human label, in Unicode characters (threats.md M12). */
const TRIGGER_NAME_LIMIT = 200;

/** How many unknown fields of one entry are named. A file of a megabyte could hold a hundred thousand. */
const OTHERS_NAMED = 10;

const SLUG = /^[a-z0-9][a-z0-9_-]{0,127}$/;
const SECRET_ENV = /^[A-Z_][A-Z0-9_]*$/;

/** Whether a text is a valid slug, in a manifest and in a URL (spec.md 8, threats.md W26). */
export const isTriggerSlug = (text: string): boolean => SLUG.test(text);

const common = {
  slug: Schema.String,
  name: Schema.String,
  /** The template of its sessions' titles (title.ts). */
  title: Schema.optionalKey(Schema.String),
  prompt: Schema.String,
  agent: Schema.String,
  enabled: Schema.Boolean,
};
const CronTrigger = Schema.Struct({
  ...common,
  type: Schema.tag("cron"),
  /** Six fields, as written. */
  cron: Schema.String,
  /** IANA name. */
  timezone: Schema.String,
});
const WebhookTrigger = Schema.Struct({
  ...common,
  type: Schema.tag("webhook"),
  /** The name of the project secret that holds the HMAC secret. */
  secretEnv: Schema.String,
  /** From `[webhooks.<slug>]`. Without it, every delivery fires. */
  filter: Schema.optionalKey(WebhookFilter),
});

/** A valid entry with its defaults filled in. The store keeps it and actors use it. */
export const TriggerDefinition = Schema.Union([CronTrigger, WebhookTrigger]);
export type TriggerDefinition = typeof TriggerDefinition.Type;
export type CronTriggerDefinition = typeof CronTrigger.Type;
export type WebhookTriggerDefinition = typeof WebhookTrigger.Type;

/** One error in an entry. `field` is null if it concerns the whole entry. */
export interface EntryFault {
  readonly field: string | null;
  readonly message: string;
}

const COMMON_FIELDS: readonly string[] = ["slug", "type", "prompt", "name", "title", "agent", "enabled"];
const CRON_FIELDS: readonly string[] = ["cron", "timezone"];
const WEBHOOK_FIELDS: readonly string[] = ["secret_env"];

/** Reads one entry of `[[triggers]]`, a value from the TOML parser. */
export const readTriggerEntry = (entry: unknown): Result.Result<TriggerDefinition, readonly EntryFault[]> => {
  if (!isRecord(entry))
    return Result.fail([{ field: null, message: "A trigger must be a table of fields." }]);
  const reader = new EntryReader(entry);
  const slug = reader.text("slug", checkSlug);
  const fields = {
    slug,
    name: reader.text("name", checkLabel("name"), slug),
    ...(entry["title"] !== undefined && { title: reader.text("title", checkLabel("title")) }),
    prompt: reader.text("prompt", checkPrompt),
    agent: reader.text("agent", checkAgent, DEFAULT_AGENT),
    enabled: reader.flag("enabled", true),
  };
  const trigger = readByType(reader, fields);
  return reader.faults.length > 0 || trigger === null ? Result.fail(reader.faults) : Result.succeed(trigger);
};

type CommonFields = Omit<CronTriggerDefinition, "type" | "cron" | "timezone">;

const readByType = (reader: EntryReader, fields: CommonFields): TriggerDefinition | null => {
  switch (reader.text("type", checkType)) {
    case "cron":
      reader.refuseOthers([...COMMON_FIELDS, ...CRON_FIELDS], "cron");
      return {
        ...fields,
        type: "cron",
        cron: reader.text("cron", checkCron),
        timezone: reader.text("timezone", checkTimezone, DEFAULT_TIMEZONE),
      };
    case "webhook":
      reader.refuseOthers([...COMMON_FIELDS, ...WEBHOOK_FIELDS], "webhook");
      return { ...fields, type: "webhook", secretEnv: reader.text("secret_env", checkSecretEnv) };
    default:
      reader.refuseOthers([...COMMON_FIELDS, ...CRON_FIELDS, ...WEBHOOK_FIELDS], "cron or webhook");
      return null;
  }
};

/** Returns the error in a text, or null. */
type Check = (text: string) => string | null;

/** Takes fields out of an entry and collects their errors. Values returned after an error are never used. */
class EntryReader {
  readonly faults: EntryFault[] = [];
  private readonly entry: Readonly<Record<string, unknown>>;

  constructor(entry: Readonly<Record<string, unknown>>) {
    this.entry = entry;
  }

  /** A text field. Required if it has no fallback. */
  text(field: string, check: Check, fallback?: string): string {
    const value = this.entry[field];
    if (value === undefined) {
      return fallback ?? this.refuse(field, `${field} is required.`);
    }
    if (typeof value !== "string") return this.refuse(field, `${field} must be a string.`);
    const problem = check(value);
    return problem === null ? value : this.refuse(field, problem);
  }

  flag(field: string, fallback: boolean): boolean {
    const value = this.entry[field] ?? fallback;
    if (typeof value === "boolean") return value;
    this.refuse(field, `${field} must be true or false, without quotes.`);
    return fallback;
  }

  refuseOthers(names: readonly string[], type: string): void {
    const others = Object.keys(this.entry).filter((field) => !names.includes(field));
    for (const field of others.slice(0, OTHERS_NAMED)) {
      this.refuse(
        field,
        `Unknown field ${quote(field)}. A ${type} trigger has the fields ${names.join(", ")}.`,
      );
    }
  }

  private refuse(field: string, message: string): string {
    this.faults.push({ field: excerpt(field), message });
    return "";
  }
}

const checkSlug: Check = (slug) =>
  isTriggerSlug(slug)
    ? null
    : `slug ${quote(slug)} must have 1 to 128 characters of a-z, 0-9, _ and -, and begin with a letter or digit.`;

const checkType: Check = (type) =>
  type === "cron" || type === "webhook" ? null : `type ${quote(type)} must be "cron" or "webhook".`;

const checkLabel =
  (field: "name" | "title"): Check =>
  (label) => {
    if (isBlank(label) || isLongerThan(label, TRIGGER_NAME_LIMIT))
      return `${field} must have 1 to ${TRIGGER_NAME_LIMIT} characters.`;
    return isOneLine(label) ? null : `${field} must be one line without control characters.`;
  };

const checkPrompt: Check = (prompt) => {
  if (isBlank(prompt)) return "prompt must not be empty.";
  return Buffer.byteLength(prompt, "utf8") > PROMPT_LIMIT_BYTES
    ? `prompt must have at most ${PROMPT_LIMIT_BYTES} bytes.`
    : null;
};

const checkAgent: Check = (agent) =>
  isAgentName(agent) ? null : `agent ${quote(agent)} ${AGENT_NAME_RULE}.`;

const checkCron: Check = (cron) => {
  const schedule = parseCron(cron);
  return Result.isFailure(schedule) ? schedule.failure : null;
};

const checkTimezone: Check = (zone) =>
  isZoneName(zone)
    ? null
    : `timezone ${quote(zone)} must be a name of the IANA time zone database in its exact case, such as Europe/Berlin.`;

/** A trigger whose secret could never be stored would refuse each delivery. */
const checkSecretEnv: Check = (name) => {
  if (!SECRET_ENV.test(name) || name.length > SECRET_NAME_LIMIT)
    return `secret_env ${quote(name)} must be the name of a secret: 1 to ${SECRET_NAME_LIMIT} characters of A-Z, 0-9 and _, not beginning with a digit.`;
  const issue = checkSecretName(name);
  return issue === null ? null : `secret_env ${quote(name)}: ${issue.message}`;
};
