/** Sessions that people asked for, and that wait for a free one. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { promptTitle } from "../../src/domain/session/title.ts";
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import { counted } from "../elements/format.ts";
import { fireLink, projectLink } from "../elements/parts.ts";
import { FrameAct } from "../ui/act.tsx";
import { ActivityIcon } from "../ui/activity.tsx";
import { Prose, Time } from "../ui/parts.tsx";
import { awaitedIn, forgetAwaited } from "../projects/start.ts";

export type Queued = Answer<"GET /v1/queue">["queue"][number];

/** How much of the queue is looked at. */
const LOOKED_AT = 200;

/** Those of the next runs and sessions of the account that people asked for. */
export const queueQuery = queryOptions({
  queryKey: ["queue"],
  queryFn: async () => {
    const { queue } = await request("GET /v1/queue", { query: { limit: LOOKED_AT } });
    return queue.filter(({ kind }) => kind === "session");
  },
});

export const queuedName = ({ title }: Pick<Queued, "title">): string => promptTitle(title ?? "") ?? "Session";

/** Whether the composer has a text. */
const isTyping = (): boolean => {
  const area = document.getElementById("prompt");
  return area instanceof HTMLTextAreaElement && area.value !== "";
};

/** Opens the page of a session that this tab asked for, once it has started. A reader who types already is left alone. */
const useAwaited = (waiting: readonly Queued[] | undefined): void => {
  useEffect(() => {
    const open = async (project: string, id: string): Promise<void> => {
      const fire = await request("GET /v1/projects/:pid/fires/:id", { params: { pid: project, id } });
      if (fire.status === "queued") return;
      forgetAwaited(id);
      const isHere = /^(#\/?)?(\?|$)/.test(location.hash);
      if (fire.session_id !== null && isHere && !isTyping())
        location.hash = projectLink(project, `/sessions/${fire.session_id}`);
    };
    if (waiting === undefined) return;
    const ids = new Set(waiting.map(({ fire_id: id }) => id));
    for (const [id, project] of awaitedIn())
      // It stands in its group all the same.
      if (!ids.has(id)) open(project, id).catch(() => undefined);
  }, [waiting]);
};

interface RowParts {
  readonly queued: Queued;
  /** Its name. */
  readonly project: string | undefined;
}

export const QueuedRow = ({ queued, project }: RowParts) => {
  const { project_id: pid, fire_id: fire, position, files, queued_at: since, person } = queued;
  const name = queuedName(queued);
  const about = [
    "Queued",
    project ?? "Another project",
    person?.name,
    files > 0 ? counted(files, "file") : undefined,
  ].filter((part) => part !== undefined);
  return (
    <li className="session">
      <div className="row">
        <ActivityIcon activity="queued" />
        <span className="row-main">
          <a className="cover" href={fireLink(pid, fire)} title={name}>
            <Prose text={name} />
          </a>
          <span className="line">{`Waits for a free session, place ${position}.`}</span>
        </span>
        <span className="meta">
          <span className="quiet about" title={about.join(" · ")}>
            {about.join(" · ")}
          </span>
          <span className="facts-of-work">
            <Time at={since} />
          </span>
          <FrameAct
            name="cancel-fire"
            className="opener"
            input={{ project: pid, fire, title: name, kind: "session" }}
            label={`Cancel: ${name}`}
          >
            Cancel
          </FrameAct>
        </span>
      </div>
    </li>
  );
};

/** The rows that wait, as they start. */
export const useQueued = (): readonly Queued[] => {
  const { data } = useQuery(queueQuery);
  useAwaited(data);
  return data ?? [];
};
