/** Usage of projects in memory: see postgres/projects/project-usage.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { NO_USAGE, type Usage } from "../../../../src/domain/conversation/conversation.ts";
import { addUsage, utcDay } from "../../../../src/domain/conversation/usage.ts";
import { ProjectUsage, type DayUsage } from "../../../../src/store/ports/projects/project-usage.ts";
import type { AddedUsage } from "../../../../src/store/ports/sessions/conversations.ts";
import { byRow } from "../../../../src/store/spent.ts";
import { Tables, type TableSet } from "../tables.ts";

/** Adds to the rows of the instant's day. */
export const addSpent = (
  { usage: table }: TableSet,
  projectId: string,
  { now, spent }: { readonly now: number; readonly spent: readonly AddedUsage[] },
): void => {
  const day = utcDay(now);
  const days = table.get(projectId) ?? new Map<string, Map<string, Usage>>();
  const models = days.get(day) ?? new Map<string, Usage>();
  for (const { model, usage } of byRow([...models.keys()], spent))
    models.set(model, addUsage(models.get(model) ?? NO_USAGE, usage));
  if (models.size > 0) table.set(projectId, days.set(day, models));
};

const rowsOf = ({ usage }: TableSet, projectId: string): readonly DayUsage[] =>
  [...(usage.get(projectId) ?? [])].flatMap(([day, models]) =>
    [...models].map(([model, used]) => ({ day, model, usage: used })),
  );

const inOrder = (a: DayUsage, b: DayUsage): number => {
  if (a.day !== b.day) return a.day < b.day ? 1 : -1;
  return a.model < b.model ? -1 : 1;
};

export const layer = Layer.effect(
  ProjectUsage,
  Effect.map(Tables, (tables) => ({
    days: (projectId, { from, to }) =>
      Effect.sync(() =>
        rowsOf(tables, projectId)
          .filter(({ day }) => day >= from && day <= to)
          .toSorted(inOrder),
      ),
    totals: (accountId) =>
      Effect.sync(() =>
        [...tables.usage.keys()]
          .filter((id) => tables.projects.get(id)?.record.accountId === accountId)
          .toSorted()
          .map((projectId) => ({
            projectId,
            usage: rowsOf(tables, projectId).reduce((sum, { usage }) => addUsage(sum, usage), NO_USAGE),
          })),
      ),
  })),
);
