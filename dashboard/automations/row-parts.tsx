/** What each list says of a trigger: on a project's page, and in the list of all projects. */
import type { Answer } from "../../src/cli/contract.ts";
import { now, ZONE } from "../elements/format.ts";
import { fireLink } from "../elements/parts.ts";
import { Badge, Tag, Time } from "../ui/parts.tsx";
import { scheduleWords, scheduleWordsFor } from "./schedule.ts";
import { resultWord } from "./words.ts";

export type Summary = Answer<"GET /v1/triggers">["projects"][number]["triggers"][number];

export const State = ({
  isEnabled,
  isPaused,
}: {
  readonly isEnabled: boolean;
  readonly isPaused: boolean;
}) => {
  if (!isEnabled) return <Tag tone="warn">paused</Tag>;
  return isPaused ? <Tag tone="warn">all paused</Tag> : <Tag>on</Tag>;
};

/** In words, if it has some, with the line of the manifest. */
export const Schedule = ({
  cron,
  timezone = "UTC",
  next_fire_at: next,
}: Pick<Summary, "timezone" | "next_fire_at"> & { readonly cron: string }) => {
  const at = next ?? new Date(now()).toISOString();
  const own = scheduleWordsFor(cron, { zone: timezone, own: ZONE, at });
  const words = own ?? scheduleWords(cron);
  return (
    <span className="parts">
      {words !== null && (
        <span>
          {words}
          {timezone !== ZONE && (own === null ? ` (${timezone})` : " (your time)")}
        </span>
      )}
      <span>
        <code>{cron}</code> {timezone}
      </span>
    </span>
  );
};

/** What became of the newest run. */
export const LastRun = ({ pid, newest }: { readonly pid: string; readonly newest: Summary["last_fire"] }) => {
  if (newest === null) return <span className="quiet">never</span>;
  const result = newest.outcome?.state ?? newest.status;
  return (
    <span>
      <Badge status={result} word={resultWord(result)} />{" "}
      <a href={fireLink(pid, newest.id)}>
        <Time at={newest.at} />
      </a>
    </span>
  );
};
