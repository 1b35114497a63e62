/** What a person types in the form of a trigger, and the trigger that it describes. */
import { ZONE } from "../elements/format.ts";
import { webhookSecretName } from "../../src/domain/trigger/templates.ts";
import type { Wish } from "./changes.ts";
import type { Trigger } from "./deliveries.ts";
import { cronOf, type Every, pickedOf } from "./schedule.ts";

/** The form's fields. They have the API's names, except for those of a picked schedule. */
export interface Typed {
  readonly slug: string;
  readonly name: string;
  readonly title: string;
  readonly prompt: string;
  readonly agent: string;
  /** `cron`: the line is typed. */
  readonly every: Every | "cron";
  /** `09:00` */
  readonly time: string;
  /** With commas, 0 is Sunday: `1,3,5`. */
  readonly weekdays: string;
  readonly day: string;
  readonly cron: string;
  readonly timezone: string;
  readonly secret_env: string;
  /** With commas. */
  readonly events: string;
  readonly branches: string;
  /** A line each: `body.action = "opened"`. */
  readonly if: string;
}

const two = (count: number): string => String(count).padStart(2, "0");

const scheduleFields = (
  cron: string | undefined,
): Pick<Typed, "every" | "time" | "weekdays" | "day" | "cron"> => {
  const picked = pickedOf(cron ?? "0 0 9 * * *");
  return {
    every: picked?.every ?? "cron",
    time: `${two(picked?.hour ?? 9)}:${two(picked?.minute ?? 0)}`,
    weekdays: (picked?.weekdays ?? [1]).join(),
    day: String(picked?.day ?? 1),
    cron: cron ?? "",
  };
};

/** The form's fields for a trigger. */
export const typedOf = (wish: Wish): Typed => ({
  slug: wish.slug ?? "",
  name: wish.name ?? "",
  title: wish.title ?? "",
  prompt: wish.prompt ?? "",
  agent: wish.agent ?? "",
  ...scheduleFields(wish.cron),
  timezone: wish.timezone ?? ZONE,
  secret_env: wish.secret_env ?? "",
  events: (wish.events ?? []).join(", "),
  branches: (wish.branches ?? []).join(", "),
  if: Object.entries(wish.if ?? {})
    .map(([path, value]) => `${path} = ${JSON.stringify(value)}`)
    .join("\n"),
});

/** A new slug takes its secret along, unless a person chose another one. */
export const withSlug = ({ slug: before, secret_env: secret }: Typed, slug: string): Partial<Typed> =>
  secret === "" || secret === webhookSecretName(before)
    ? { slug, secret_env: slug === "" ? "" : webhookSecretName(slug) }
    : { slug };

const listOf = (text: string): readonly string[] =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");

/** The weekdays that are ticked, in order. */
export const typedWeekdays = ({ weekdays }: Pick<Typed, "weekdays">): readonly number[] =>
  listOf(weekdays)
    .map(Number)
    .toSorted((one, other) => one - other);

/** The schedule's line. */
export const typedCron = (typed: Typed): string => {
  const { every, time, day, cron } = typed;
  if (every === "cron") return cron.trim();
  const [hour = 0, minute = 0] = time.split(":").map(Number);
  return cronOf({ every, hour, minute, weekdays: typedWeekdays(typed), day: Number(day) });
};

/** A value in JSON, or a text without quotes. */
const valueOf = (text: string): string | number | boolean => {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
      ? value
      : text;
  } catch {
    return text;
  }
};

const conditionsOf = (text: string): Readonly<Record<string, string | number | boolean>> =>
  Object.fromEntries(
    text
      .split("\n")
      .filter((line) => line.trim() !== "")
      .map((line) => {
        const [path = "", ...rest] = line.split("=");
        return [path.trim(), valueOf(rest.join("=").trim())];
      }),
  );

const given = <F extends string>(fields: Readonly<Record<F, string>>): Partial<Record<F, string>> =>
  Object.fromEntries(
    Object.entries<string>(fields)
      .map(([field, text]) => [field, field === "prompt" ? text : text.trim()])
      .filter(([, text]) => text?.trim() !== ""),
  ) as Partial<Record<F, string>>;

/** The trigger that is described. */
export const wishOf = (type: Wish["type"], typed: Typed): Wish => {
  const { slug, name, title, prompt, agent, timezone, secret_env: secret } = typed;
  const common = given({ slug, name, title, prompt, agent });
  if (type === "cron") return { type, ...common, ...given({ cron: typedCron(typed), timezone }) };
  const [events, branches, conditions] = [
    listOf(typed.events),
    listOf(typed.branches),
    conditionsOf(typed.if),
  ];
  return {
    type,
    ...common,
    ...given({ secret_env: secret }),
    ...(events.length > 0 && { events }),
    ...(branches.length > 0 && { branches }),
    ...(Object.keys(conditions).length > 0 && { if: conditions }),
  };
};

/** A trigger of the manifest as it was described. Defaults are left out. */
export const wishOfTrigger = (trigger: Trigger): Wish => {
  const { slug, name, title, type, agent, prompt, enabled, cron, timezone, secret_env, filter } = trigger;
  return {
    type,
    slug,
    prompt,
    ...(name !== slug && { name }),
    ...(title !== undefined && { title }),
    ...(agent !== "default" && { agent }),
    ...(!enabled && { enabled }),
    ...(cron !== undefined && { cron }),
    ...(timezone !== undefined && { timezone }),
    ...(secret_env !== undefined && { secret_env }),
    ...(filter !== undefined && {
      ...(filter.events !== null && { events: filter.events }),
      ...(filter.branches !== null && { branches: filter.branches }),
      ...(filter.if !== null && { if: filter.if }),
    }),
  };
};
