/** What a write adds to a project's usage, by model. Both adapters use it, so that they cannot differ. */
import { NO_USAGE, type Usage } from "../domain/conversation/conversation.ts";
import { addUsage } from "../domain/conversation/usage.ts";
import type { AddedUsage } from "./ports/sessions/conversations.ts";
import { MODELS_PER_DAY_MAX, OTHER_MODELS } from "./ports/projects/project-usage.ts";

/** The usage by row: beyond the limit, new models share one. `known`: the day's models so far. */
export const byRow = (models: readonly string[], spending: readonly AddedUsage[]): readonly AddedUsage[] => {
  const own = new Set(models);
  const rows = new Map<string, Usage>();
  for (const { model, usage } of spending) {
    if (own.size < MODELS_PER_DAY_MAX) own.add(model);
    const name = own.has(model) ? model : OTHER_MODELS;
    rows.set(name, addUsage(rows.get(name) ?? NO_USAGE, usage));
  }
  return [...rows]
    .map(([model, usage]) => ({ model, usage }))
    .toSorted((a, b) => (a.model < b.model ? -1 : 1));
};
