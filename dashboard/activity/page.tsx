/** What happened since the reader last looked, in all projects that she sees. */
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import { pagedQuery } from "../api/lists.ts";
import { queries } from "../api/queries.ts";
import { counted, now, sentence } from "../elements/format.ts";
import { fireLink, firesLink, projectLink, refusedLink } from "../elements/parts.ts";
import { failureReason, refusalReason, runReason } from "../automations/words.ts";
import { useAddressQuery } from "../ui/address.ts";
import { framedPage } from "../ui/framed-page.tsx";
import { NotificationButton } from "../ui/notification-button.tsx";
import { Empty, More, Pick, Prose, Tag, Time } from "../ui/parts.tsx";
import { entrySubject, entryText } from "../../src/domain/service/news-words.ts";
import { dayText, type Entry, isNew, type Row, withCounts } from "./words.ts";

/** Whether the address asks for the reader's own entries alone. */
const isOwnOnly = (query: URLSearchParams): boolean => query.get("only") === "mine";

const activityQuery = (isOwn: boolean) =>
  pagedQuery(["activity", isOwn], (query) =>
    request("GET /v1/activity", { query: { ...query, ...(isOwn && { own: "true" as const }) } }),
  );

/** A reader who follows a link and comes back soon still finds what was new. */
const SAME_LOOK_MS = 15 * 60_000;
let look: { readonly readerId: string; readonly seenAt: string | null; at: number } | null = null;

/** Until when the reader had seen the list when she began to look. The service's own mark moves while she looks. */
const beginLook = (readerId: string, seenAt: string | null): string | null => {
  const isSame = look !== null && look.readerId === readerId && now() - look.at < SAME_LOOK_MS;
  if (look === null || !isSame) look = { readerId, seenAt, at: now() };
  return look.seenAt;
};

const endLook = (): void => {
  if (look !== null) look.at = now();
};

/** In a hidden tab nobody looks. A failure is made up for by the next reading. */
const noteSeen = async ({
  entries: [newest],
  seen_at: seenAt,
}: Answer<"GET /v1/activity">): Promise<void> => {
  if (newest === undefined || document.visibilityState === "hidden") return;
  if (seenAt === null || newest.at > seenAt)
    await request("POST /v1/activity/seen", { payload: { at: newest.at } }).catch(() => null);
};

const entryLink = ({ entry, count }: Row): string => {
  const { kind, project, session, change_request: change, trigger_slug: slug, fire_id: fire } = entry;
  if (change !== null) return projectLink(project.id, `/change-requests/${change.number}`);
  if (kind === "delivery.refused") return refusedLink(project.id);
  if (kind === "manifest.stale") return projectLink(project.id, "/triggers");
  if (kind === "webhook.disabled") return projectLink(project.id, "/notifications");
  if (count > 1 && slug !== null) return firesLink(project.id, slug);
  if (session !== null) return projectLink(project.id, `/sessions/${session.id}`);
  return fire === null ? projectLink(project.id) : fireLink(project.id, fire);
};

/** Why, in words where there are some. */
const Reason = ({ entry: { kind, code } }: { readonly entry: Entry }) => {
  if (code === null) return null;
  if (kind === "delivery.refused") return <span className="reason">{refusalReason(code)}</span>;
  if (kind.startsWith("fire."))
    return (
      <span className="reason">
        <Prose text={runReason(code)} />
      </span>
    );
  // Codes of agents may have no words.
  const words = failureReason(code);
  return <span className="reason">{words === code ? <code>{code}</code> : sentence(words)}</span>;
};

interface Reader {
  readonly id: string;
  /** Until when she had seen the list. Null: she never looked. */
  readonly seenAt: string | null;
}

const EntryRow = ({ row, reader }: { readonly row: Row; readonly reader: Reader }) => {
  const { entry, count } = row;
  const text = entryText(entry, reader.id);
  const subject = entrySubject(entry);
  return (
    <li className="row two">
      <span className="row-main">
        <span className="named">
          <a className="cover" href={entryLink(row)} aria-label={`${subject}: ${text}`}>
            {subject}
          </a>
          {isNew(entry, reader) && <Tag tone="good">new</Tag>}
          {entry.own && <Tag>yours</Tag>}
        </span>
        <span className="quiet parts">
          <span>{count > 1 ? `${text}, ${counted(count, "time")}` : text}</span>
          {subject !== entry.project.name && <a href={projectLink(entry.project.id)}>{entry.project.name}</a>}
        </span>
        <Reason entry={entry} />
      </span>
      <span className="row-side">
        <Time at={entry.at} />
      </span>
    </li>
  );
};

const Days = ({ entries, reader }: { readonly entries: readonly Entry[]; readonly reader: Reader }) => {
  const at = now();
  return [...Map.groupBy(entries, (entry) => dayText(entry.at, at))].map(([day, ofDay]) => (
    <section key={day}>
      <h2>{day}</h2>
      <ul className="rows">
        {withCounts(ofDay).map((row) => (
          <EntryRow key={row.entry.id} row={row} reader={reader} />
        ))}
      </ul>
    </section>
  ));
};

/** How much of what was read is new. */
const newText = (entries: readonly Entry[], reader: Reader): string => {
  if (reader.seenAt === null) return "What happened in all your projects, in the last 30 days.";
  const count = entries.filter((entry) => isNew(entry, reader)).length;
  return `${count === 0 ? "Nothing" : count} new since you last looked.`;
};

const List = ({ readerId }: { readonly readerId: string }) => {
  const isOwn = isOwnOnly(useAddressQuery());
  const list = useInfiniteQuery({ ...activityQuery(isOwn), placeholderData: keepPreviousData });
  const pages = list.data?.pages ?? [];
  const [seenAt] = useState(() => beginLook(readerId, pages[0]?.seen_at ?? null));
  useEffect(() => endLook, []);
  const reader = { id: readerId, seenAt };
  const entries = pages.flatMap((page) => page.entries);
  return (
    <>
      <header className="head">
        <h1>Activity</h1>
        <p className="quiet parts">
          <span>{newText(entries, reader)}</span>
          <NotificationButton />
        </p>
      </header>
      <div className="filters" role="group" aria-label="Filter">
        <Pick
          name="only"
          label="Show"
          all="Everything"
          value={isOwn ? "mine" : ""}
          options={[["mine", "Only mine"]]}
        />
      </div>
      {entries.length === 0 ? (
        <Empty title={isOwn ? "Nothing of yours happened yet." : "Nothing happened yet."}>
          {isOwn
            ? "Here you find what is about your own sessions and change requests, or asks you."
            : "Here you find what agents did, what people said of change requests, and how triggers ran."}
        </Empty>
      ) : (
        <Days entries={entries} reader={reader} />
      )}
      <More list={list}>Show older entries</More>
      <p className="quiet">
        A browser that notifies you says when a session of yours finishes, fails or asks. Chats and other
        systems hear of a project by its Settings, under Notifications.
      </p>
    </>
  );
};

export const pages = {
  activity: framedPage<void>({
    load: async (_params, query) => {
      const [newest] = (await queries.infiniteQuery(activityQuery(isOwnOnly(query)))).pages;
      if (newest !== undefined) await noteSeen(newest);
    },
    title: () => "Activity",
    Body: ({ me }) => me !== null && <List readerId={me.user.id} />,
  }),
};
