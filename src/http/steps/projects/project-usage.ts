/** `GET /v1/projects/{pid}/usage`: tokens and cost of a project's agents, by day and model. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { NO_USAGE } from "../../../domain/conversation/conversation.ts";
import { addUsage, utcDay, oneCount } from "../../../domain/conversation/usage.ts";
import { NANO } from "../../../domain/sandbox/spend.ts";
import { ProjectUsage } from "../../../store/ports/projects/project-usage.ts";
import { PassedUsages } from "../../../services/projects/account-models.ts";
import { Caller } from "../../api/access.ts";
import { badRequest } from "../../api/errors.ts";
import { USAGE_DAYS_MAX } from "../../api/projects.ts";
import { requireProject } from "../answers.ts";

const DAY_MS = 86_400_000;
/** How many days an answer has if the request names none. */
const DAYS_DEFAULT = 30;

const daysBefore = (day: string, count: number): string => utcDay(Date.parse(day) - count * DAY_MS);

/** @returns the usage from `from` (by default 29 days before `to`) to `to` (by default today), both included. */
export const projectUsage = Effect.fnUntraced(function* (
  pid: string,
  query: { readonly from?: string; readonly to?: string },
) {
  yield* requireProject(yield* Caller, pid);
  const to = query.to ?? utcDay(yield* Clock.currentTimeMillis);
  const from = query.from ?? daysBefore(to, DAYS_DEFAULT - 1);
  if (from > to) return yield* badRequest("from", "must not be after `to`");
  if (from <= daysBefore(to, USAGE_DAYS_MAX))
    return yield* badRequest("from", `must be less than ${USAGE_DAYS_MAX} days before \`to\``);
  const reportedDays = yield* (yield* ProjectUsage).days(pid, { from, to });
  const passedDays = (yield* (yield* PassedUsages)(pid, { from, to })).map(
    ({ day, model, input, cached, output, untoldCalls, estimated, cost }) => ({
      day,
      model,
      untoldCalls,
      estimated,
      usage: {
        input_tokens: input,
        cached_tokens: cached,
        output_tokens: output,
        cost_usd: cost / NANO,
      },
    }),
  );
  const days = oneCount(reportedDays, passedDays);
  return {
    from,
    to,
    days: days.map(({ day, model, usage, passed: own }) => ({
      day,
      model,
      ...usage,
      counted: own !== null,
      untold_calls: own?.untoldCalls ?? 0,
      estimated_tokens: own?.estimated ?? 0,
    })),
    total: days.reduce((sum, { usage }) => addUsage(sum, usage), NO_USAGE),
  };
});
