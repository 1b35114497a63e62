/**
 * Prompt templates (spec.md 6, api.md 4 "Rendering") and the variables that each kind of fire provides.
 *
 * Rules:
 *  T1 Placeholders are those of placeholders.ts. Anything else in braces stays as written (threats.md P04).
 *  T2 A token is a path of own properties and array indexes. A path that leads nowhere renders as "" (P01, P02).
 *  T3 One pass: inserted text is never scanned again (P05, P06).
 *  T4 The work is linear in the template, and ends at the first byte over the limit (P07, P08).
 *  T5 The result fits an environment string: at most 96 KiB of well-formed UTF-8 without NUL (P09, P11).
 */
import { isUtf8 } from "node:buffer";
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { nextPlaceholder } from "./placeholders.ts";

/** A JSON value. Bodies come from `JSON.parse` and are never spread or assigned (threats.md W23). */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/** The longest prompt with which a session begins, written or rendered, in bytes. An environment string ends at 128 KiB (threats.md fact 3). */
export const PROMPT_LIMIT_BYTES = 96 * 1024;
/** The deepest JSON body that is kept as JSON. `JSON.stringify` overflows at about 10,000 levels (threats.md W22). */
export const BODY_DEPTH_LIMIT = 256;
/** The longest header value that reaches a template, in UTF-16 units (threats.md W37). */
export const HEADER_VALUE_LIMIT = 1024;

/** The rendered prompt is over the limit: the fire fails with 500 `prompt_too_large` and may be replayed. */
export class PromptTooLarge extends Schema.TaggedError<PromptTooLarge>()("PromptTooLarge", {
  limit_bytes: Schema.Int,
}) {
  override readonly message = `The rendered prompt is larger than ${PROMPT_LIMIT_BYTES} bytes.`;
}

/** Renders a template with one fire's variables. A missing value is an empty string, never an error. */
export const renderPrompt = (
  template: string,
  variables: JsonObject,
): Result.Result<string, PromptTooLarge> => {
  const output = new CappedText(PROMPT_LIMIT_BYTES);
  let copiedEnd = 0;
  let placeholder = nextPlaceholder(template, 0);
  while (placeholder !== null && output.fits) {
    output.append(template.slice(copiedEnd, placeholder.start));
    output.append(renderValue(valueAt(variables, placeholder.token)));
    copiedEnd = placeholder.end;
    placeholder = nextPlaceholder(template, copiedEnd);
  }
  output.append(template.slice(copiedEnd));
  return output.fits
    ? Result.succeed(output.text)
    : Result.fail(new PromptTooLarge({ limit_bytes: PROMPT_LIMIT_BYTES }));
};

/** Text that stops growing once it exceeds its limit, so that a flood of placeholders costs no more than the limit. */
class CappedText {
  private written = "";
  private bytes = 0;
  private readonly limit: number;

  constructor(limit: number) {
    this.limit = limit;
  }

  get fits(): boolean {
    return this.bytes <= this.limit;
  }

  append(part: string): void {
    if (!this.fits) return;
    // A UTF-16 unit is at least one byte of UTF-8, so a value that is far too long need not be measured.
    this.bytes += part.length > this.limit ? part.length : Buffer.byteLength(part, "utf8");
    if (this.fits) this.written += part;
  }

  /**
   * NUL is removed only here. It counts towards the limit: otherwise values of NULs alone would cost unbounded work.
   */
  get text(): string {
    return this.written.replaceAll("\0", "").toWellFormed();
  }
}

const ARRAY_INDEX = /^(?:0|[1-9][0-9]{0,9})$/;

/**
 * Follows a dotted path over own properties. An empty segment (`a..b`, `.a`, `a.`) matches nothing, like a missing key.
 */
export const valueAt = (variables: JsonValue, path: string): JsonValue | undefined => {
  let value: JsonValue | undefined = variables;
  for (const segment of path.split(".")) {
    if (segment === "" || typeof value !== "object" || value === null) return undefined;
    if (isArray(value)) value = ARRAY_INDEX.test(segment) ? value[Number(segment)] : undefined;
    else value = Object.hasOwn(value, segment) ? value[segment] : undefined;
  }
  return value;
};

/** `Array.isArray` does not narrow read-only arrays. */
const isArray = (value: JsonValue): value is readonly JsonValue[] => Array.isArray(value);

const renderValue = (value: JsonValue | undefined): string => {
  if (value === undefined || value === null) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
};

/** The trigger's variables in every fire's template. */
export interface FiredTrigger {
  readonly slug: string;
  readonly type: "cron" | "webhook";
  /** Of a schedule: its line and zone. */
  readonly cron?: string;
  readonly timezone?: string;
}

/** spec.md 6 "On every fire": `kind` is always the literal git. */
const triggerVariables = ({ slug, type }: FiredTrigger): JsonObject => ({ slug, type, kind: "git" });

/** spec.md 6 "Cron fires": there is no top-level `fired_at`. */
export const cronVariables = (
  trigger: FiredTrigger,
  fire: {
    readonly schedule: string;
    readonly timezone: string;
    /** The due instant in milliseconds since 1970, even if the fire had to wait (api.md 4). */
    readonly dueAtMs: number;
    /** The trigger's last fire before this one. Null before the first. */
    readonly lastFiredAtMs: number | null;
  },
): JsonObject => ({
  trigger: triggerVariables(trigger),
  cron: {
    schedule: fire.schedule,
    timezone: fire.timezone,
    fired_at: isoInstant(fire.dueAtMs),
    last_fired_at: fire.lastFiredAtMs === null ? "" : isoInstant(fire.lastFiredAtMs),
  },
});

/**
 * A cron fire's prompt before it is rendered. It is kept with a waiting fire, because `last_fired_at` is only known
 * when the fire starts.
 */
export interface CronTemplate {
  readonly prompt: string;
  readonly slug: string;
  readonly schedule: string;
  readonly timezone: string;
  readonly dueAtMs: number;
}

/** Renders a cron fire's prompt when it fires (api.md 4 "Cron"). */
export const renderCronPrompt = (
  { prompt, slug, ...fire }: CronTemplate,
  lastFiredAtMs: number | null,
): Result.Result<string, PromptTooLarge> =>
  renderPrompt(prompt, cronVariables({ slug, type: "cron" }, { ...fire, lastFiredAtMs }));

/** The three headers that templates can use, as Node's `headers` gives them. */
export interface WebhookHeaders {
  readonly contentType: string | undefined;
  readonly userAgent: string | undefined;
  readonly forwardedFor: string | undefined;
}

/** spec.md 6 "Webhook fires". `body` is the result of `parseWebhookBody`. */
export const webhookVariables = (
  trigger: FiredTrigger,
  fire: { readonly firedAtMs: number; readonly body: JsonValue; readonly headers: WebhookHeaders },
): JsonObject => ({
  trigger: triggerVariables(trigger),
  fired_at: isoInstant(fire.firedAtMs),
  body: fire.body,
  headers: {
    content_type: headerText(fire.headers.contentType),
    user_agent: headerText(fire.headers.userAgent),
    forwarded_for: headerText(fire.headers.forwardedFor),
  },
});

/**
 * spec.md 6 "Manual fires". `text` and `source` are "" if the caller omits them. A schedule's have `cron` as well, so that its prompt
 * reads as at a due instant.
 */
export const manualVariables = (
  trigger: FiredTrigger,
  fire: {
    readonly firedAtMs: number;
    /** Id of the user who fired it. */
    readonly actor: string;
    readonly text: string;
    readonly source: string;
    /** As of `cronVariables`. */
    readonly lastFiredAtMs: number | null;
  },
): JsonObject => ({
  ...(trigger.cron !== undefined &&
    trigger.timezone !== undefined &&
    cronVariables(trigger, {
      schedule: trigger.cron,
      timezone: trigger.timezone,
      dueAtMs: fire.firedAtMs,
      lastFiredAtMs: fire.lastFiredAtMs,
    })),
  trigger: triggerVariables(trigger),
  fired_at: isoInstant(fire.firedAtMs),
  source: "manual",
  actor: fire.actor,
  message: { text: fire.text, source: fire.source },
});

const isoInstant = (atMs: number): string => new Date(atMs).toISOString();

/** One line of plain text, cut at the limit. Control characters become blanks (threats.md W37). */
export const headerText = (value: string | undefined): string =>
  (value ?? "")
    .slice(0, HEADER_VALUE_LIMIT)
    // eslint-disable-next-line no-control-regex -- they are what is taken out
    .replaceAll(/[\u0000-\u001f\u007f]/g, " ");

/**
 * A webhook's body as templates see it (spec.md 6). It is read as JSON whatever the content type is. A byte order mark
 * is removed (threats.md W15), and an empty body becomes `{}` (W12). A body that is not UTF-8, not JSON, or nested
 * deeper than `BODY_DEPTH_LIMIT` becomes `{raw: text}`, with replacement characters for invalid bytes (W13, W14, W22).
 * The last of repeated keys counts. Numbers are doubles, as everywhere in JSON (W24).
 *
 * A form whose field `payload` contains JSON, as GitHub sends it, becomes that JSON. Plain JSON is tried first: many
 * programs send it under the content type of forms.
 */
export const parseWebhookBody = (bytes: Uint8Array, contentType?: string): JsonValue => {
  const text = new TextDecoder("utf-8").decode(bytes);
  if (text === "") return {};
  // A replacement character was either sent as such, or stands for invalid bytes: only then check the bytes.
  if (text.includes("\ufffd") && !isUtf8(bytes)) return { raw: text };
  const body = parseJson(text) ?? (isForm(contentType) ? parsePayload(text) : null);
  return body === null ? { raw: text } : body.json;
};

const parseJson = (text: string): { readonly json: JsonValue } | null => {
  try {
    const json = JSON.parse(text) as JsonValue;
    return isDeeperThan(json, BODY_DEPTH_LIMIT) ? null : { json };
  } catch {
    return null;
  }
};

/** Whether a content type is a form's. */
export const isForm = (contentType: string | undefined): boolean =>
  /^[ \t]*application\/x-www-form-urlencoded[ \t]*(?:;|$)/i.test(contentType ?? "");

const PAYLOAD = "payload=";

/**
 * The field is cut out of the text, because a body of 25 MiB may have millions of fields. A second `payload` field is
 * ambiguous.
 */
const parsePayload = (text: string): { readonly json: JsonValue } | null => {
  const from = text.startsWith(PAYLOAD) ? 0 : text.indexOf(`&${PAYLOAD}`) + 1;
  if (from === 0 && !text.startsWith(PAYLOAD)) return null;
  const end = text.indexOf("&", from);
  if (end !== -1 && text.includes(`&${PAYLOAD}`, end)) return null;
  const value = text.slice(from + PAYLOAD.length, end === -1 ? text.length : end);
  try {
    return parseJson(decodeURIComponent(value.replaceAll("+", " ")).replace(/^\ufeff/, ""));
  } catch {
    return null;
  }
};

const isDeeperThan = (value: JsonValue, levels: number): boolean => {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  for (const inner of isArray(value) ? value : Object.values(value)) {
    if (isDeeperThan(inner, levels - 1)) return true;
  }
  return false;
};
