/**
 * Limits of what models may cost or use: what they count, and their words. The service refuses a call in these words, and the daemon finds
 * them in what a runtime says of it, whatever the runtime puts around them.
 */
import { utcDay } from "../conversation/usage.ts";
import { THIS_SESSION } from "../session/model-errors.ts";
import type { CountedTokens } from "../model/prices.ts";
import { parseJson } from "../../ground/record.ts";

/** The subjects of sums, in the order in which a refusal names limits. */
export const SPEND_SCOPES = ["session", "trigger", "person", "project", "account"] as const;
export type SpendScope = (typeof SPEND_SCOPES)[number];

/** `each_session`: every session of the account that has no limit of its own. */
export type LimitScope = SpendScope | "each_session";

/** A sum of what was spent: of a session, of a trigger's day, or of a month. */
export interface SpendCount {
  readonly scope: SpendScope;
  /** The id of a session, a person or a project, or `project/slug`. Empty for the account. */
  readonly subject: string;
  /** `YYYY-MM-DD` or `YYYY-MM`, in UTC. Empty: all of a session's time. */
  readonly period: string;
}

export interface LimitAmount {
  readonly unit: "usd" | "tokens";
  /** Billionths of a dollar, or tokens. */
  readonly amount: number;
}

export interface SpendSums {
  readonly tokens: number;
  /** Billionths of a dollar. */
  readonly cost: number;
}

/** A dollar has so many units of cost. */
export const NANO = 1_000_000_000;

/** What decides for what a call of a session counts. */
export interface SpendingSession {
  readonly id: string;
  readonly projectId: string;
  readonly triggerSlug: string | null;
  readonly createdBy: string;
}

/** The sessions, and so the people and projects, for which a call of a sandbox counts. */
export interface SpendingCaller {
  readonly accountId: string;
  /** The session, then the one whose agent started it, and so on. */
  readonly sessions: readonly [SpendingSession, ...SpendingSession[]];
  /** Whether the account has limits of spend. */
  readonly isLimited: boolean;
}

/** A call of a model, before it passes. */
export interface CallEstimate {
  /** Of the reservation. */
  readonly id: string;
  readonly caller: SpendingCaller;
  /** For the words of a refusal. */
  readonly model: string;
  readonly tokens: number;
  /** Billionths of a dollar. Null if the model has no known price. */
  readonly cost: number | null;
  /** Whether the session's person pays for it, with a provider of her own. */
  readonly isOwn: boolean;
}

/** The counts of a call. */
export interface CountedCall {
  /** `provider/model`. */
  readonly model: string;
  /** Null if the answer named none, as if it broke off before. */
  readonly tokens: CountedTokens | null;
  /** Tokens that the answer did not name. */
  readonly estimated: number;
  /** Billionths of a dollar. 0: the model has no known price. */
  readonly cost: number;
}

/** A call that ended. */
export interface EndedCall {
  /** Of its reservation. */
  readonly id: string;
  /** Null if it cost nothing. */
  readonly counted: CountedCall | null;
}

/** What a call adds to sums. */
export const spentBy = ({ tokens, estimated, cost }: Omit<CountedCall, "model">): SpendSums => ({
  tokens: (tokens?.input ?? 0) + (tokens?.output ?? 0) + estimated,
  cost,
});

/** A session to which limits may apply. It may not exist yet. */
export interface LimitedSession extends SpendingSession {
  readonly accountId: string;
  /** The session whose agent starts it. Null if a person or a trigger does. */
  readonly parentSessionId: string | null;
}

export const utcMonth = (now: number): string => utcDay(now).slice(0, 7);

export const triggerSubject = (projectId: string, slug: string): string => `${projectId}/${slug}`;

/**
 * The sums for which a call counts. A trigger's session counts for its trigger, and for no person. A call that a person pays for with a
 * provider of her own counts for the sessions and for her: no trigger, project or account spends anything.
 *
 * @param chain the session, then the session whose agent started it, and so on
 */
export const spendCounts = (
  chain: readonly SpendingSession[],
  { now, isOwn }: { readonly now: number; readonly isOwn: boolean },
): readonly SpendCount[] => {
  const [session] = chain;
  if (session === undefined) return [];
  const { projectId, createdBy } = session;
  const month = utcMonth(now);
  const sessions = chain.map(({ id }) => ({ scope: "session", subject: id, period: "" }) as const);
  const person = { scope: "person", subject: createdBy, period: month } as const;
  if (isOwn) return [...sessions, person];
  const slug = chain.find(({ triggerSlug }) => triggerSlug !== null)?.triggerSlug ?? null;
  return [
    ...sessions,
    slug === null
      ? person
      : { scope: "trigger", subject: triggerSubject(projectId, slug), period: utcDay(now) },
    { scope: "project", subject: projectId, period: month },
    { scope: "account", subject: "", period: month },
  ];
};

const dollars = (cost: number): string => {
  const amount = cost / NANO;
  if (Number.isInteger(amount)) return `$${amount}`;
  // Two digits that count, where there is less than ten cents.
  return amount < 0.1 && amount >= 0.000_001 ? `$${Number(amount.toPrecision(2))}` : `$${amount.toFixed(2)}`;
};

const groupDigits = (count: number): string => String(count).replaceAll(/\B(?=(?:\d{3})+$)/g, ",");

/** `$5.02`, or `200,000 tokens`. */
export const amountWords = ({ unit, amount }: LimitAmount): string =>
  unit === "usd" ? dollars(amount) : `${groupDigits(amount)} tokens`;

/** How much of a limit's unit is in sums. */
export const sumIn = ({ unit }: Pick<LimitAmount, "unit">, { cost, tokens }: SpendSums): number =>
  unit === "usd" ? cost : tokens;

/** The subject of a limit, in a sentence. @param name of the trigger, the person or the project */
export const limitFor = (scope: SpendScope, name: string): string => {
  switch (scope) {
    case "session":
      return THIS_SESSION;
    case "trigger":
      return `the trigger ${name} today`;
    case "person":
      return `${name} this month`;
    case "project":
      return `the project ${name} this month`;
    case "account":
      return "the account this month";
  }
};

/** A limit that applies, with what was spent and what is reserved for calls under way, both in its unit. */
export interface LimitState extends LimitAmount {
  readonly scope: SpendScope;
  readonly name: string;
  readonly spent: number;
  readonly reserved: number;
}

const words = (unit: LimitAmount["unit"], amount: number): string => amountWords({ unit, amount });

const ADVICE = "Raise it, then send a message.";

/** Why a call is refused, or why a fire is skipped. */
export const limitReached = ({ unit, amount, scope, name, spent, reserved }: LimitState): string => {
  const underWay = spent < amount ? `, and ${words(unit, reserved)} reserved for calls under way` : "";
  return `The limit of ${words(unit, amount)} for ${limitFor(scope, name)} is reached: ${words(unit, spent)}${underWay}. ${ADVICE}`;
};

const UNPRICED_ADVICE = "Set its price, or a limit in tokens.";

/** A limit in dollars cannot be held for a model without a price. */
export const limitNeedsPrice = (model: string, { unit, amount, scope, name }: LimitState): string =>
  `The model ${model} has no known price, and a limit of ${words(unit, amount)} applies for ${limitFor(scope, name)}. ${UNPRICED_ADVICE}`;

/** The note in the conversation when four fifths of a limit are spent. */
export const limitNears = ({ unit, amount, scope, name, spent }: LimitState): string =>
  `${Math.floor((spent * 100) / amount)} % of the limit of ${words(unit, amount)} for ${limitFor(scope, name)} is spent: ${words(unit, spent)}.`;

/** How much of a limit is spent when the conversation is told. */
export const isNear = (sum: number, amount: number): boolean => sum * 5 >= amount * 4;

const literal = (text: string): string => text.replaceAll(".", String.raw`\.`);
const REFUSAL = new RegExp(
  `The limit of [^]{1,400}?${literal(ADVICE)}|The model [^]{1,600}?${literal(UNPRICED_ADVICE)}`,
);

/** How deep errors stand in the texts of other errors. */
const DEPTH_MAX = 4;

/** The JSON in a text that has other words around it. Undefined: the text has no JSON. */
const jsonIn = (text: string): unknown => parseJson(text.slice(text.indexOf("{"), text.lastIndexOf("}") + 1));

const collectTexts = (value: unknown): readonly string[] => {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(collectTexts) : [];
};

/** A name may have quotes, which stand in JSON in another way. So JSON is read, and only other texts are searched as they are. */
const refusalIn = (value: string, depth: number): string | null => {
  for (const text of depth < DEPTH_MAX ? collectTexts(jsonIn(value)) : []) {
    const inner = refusalIn(text, depth + 1);
    if (inner !== null) return inner;
  }
  return REFUSAL.exec(value)?.[0] ?? null;
};

/** The service's refusal in what a runtime says of a failed call. */
export const spendRefusalIn = (
  text: string,
): { readonly code: "spend_limit" | "model_without_price"; readonly message: string } | null => {
  const message = refusalIn(text, 0);
  if (message === null) return null;
  return { code: message.endsWith(UNPRICED_ADVICE) ? "model_without_price" : "spend_limit", message };
};
