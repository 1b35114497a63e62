/**
 * The title of a trigger's session. A trigger's `title` is rendered with the variables of the fire, as its prompt is. Without one, it is the
 * trigger's name, and for a schedule the day as well.
 */
import * as Result from "effect/Result";
import { cutText } from "../text.ts";
import { renderPrompt, valueAt, type JsonObject } from "./prompt.ts";
import type { TriggerDefinition } from "./trigger.ts";
import { segmentAt } from "./zone.ts";

/** The longest title, in UTF-16 units: as of a session that a person names. */
const TITLE_MAX = 200;

/** One line without control characters. */
const oneLine = (text: string): string =>
  cutText(text.replaceAll(/[\s\p{Cc}]+/gu, " ").trim(), TITLE_MAX).trim();

/** The day of an instant in the zone. */
const localDay = (at: string, zone: string): string => {
  const atMs = Date.parse(at);
  return new Date(atMs + segmentAt(zone, atMs).offsetMs).toISOString().slice(0, 10);
};

/** @param variables of the fire, as its prompt has them */
export const fireTitle = (trigger: TriggerDefinition, variables: JsonObject): string => {
  const title = oneLine(Result.getOrElse(renderPrompt(trigger.title ?? "", variables), () => ""));
  if (title !== "") return title;
  const at = valueAt(variables, "cron.fired_at");
  return trigger.type === "cron" && typeof at === "string"
    ? `${trigger.name}, ${localDay(at, trigger.timezone)}`
    : trigger.name;
};
