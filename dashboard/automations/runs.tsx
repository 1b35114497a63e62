/** The list of a project's runs, with its waiting ones and the deliveries that it refused, and why. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Answer } from "../../src/cli/contract.ts";
import { queries } from "../api/queries.ts";
import { counted, moment } from "../elements/format.ts";
import { FIRE_STATUSES } from "../live/live.ts";
import { fireLink, firesLink, projectLink, refusedLink } from "../elements/parts.ts";
import { ProjectHead } from "../projects/head.tsx";
import { useAddressQuery } from "../ui/address.ts";
import { framedPage } from "../ui/framed-page.tsx";
import { ListFilters } from "../ui/list-filters.tsx";
import { Badge, Callout, Empty, More, Pick, Prose, Tag, Time } from "../ui/parts.tsx";
import {
  entriesOf,
  type Entry,
  type Filter,
  listQuery,
  nameIn,
  type Names,
  namesQuery,
  readFilter,
  readListed,
  type Refusal,
  withChosen,
} from "./list.ts";
import {
  failureReason,
  refusalReason,
  resultWord,
  type Run,
  runInstant,
  runReason,
  runResult,
  runStart,
} from "./words.ts";

type Project = Answer<"GET /v1/projects/:pid">;

const STATUS_OPTIONS = [...FIRE_STATUSES, "refused"].map((status) => {
  const words: Readonly<Record<string, string>> = {
    fired: "session started",
    refused: "refused delivery",
  };
  return [status, words[status] ?? status] as const;
});

const NO_NAMES: Names = new Map();

const Filters = ({ pid, filter: { status, slug } }: { readonly pid: string; readonly filter: Filter }) => {
  const { data: names = NO_NAMES } = useQuery(namesQuery(pid));
  const known = withChosen([...names.keys()], slug).map((one) => [one, nameIn(names, one)] as const);
  return (
    <ListFilters isNarrowed={status + slug !== ""}>
      <Pick name="status" label="State" all="All" value={status} options={STATUS_OPTIONS} />
      <Pick name="slug" label="Trigger" all="All" value={slug} options={known} />
    </ListFilters>
  );
};

interface RowParts {
  readonly name: ReactNode;
  readonly state: ReactNode;
  readonly side: ReactNode;
  readonly children: ReactNode;
}

const EntryRow = ({ name, state, side, children }: RowParts) => (
  <li className="row">
    <span className="row-main">
      <span className="named">{name}</span>
      {children}
    </span>
    {state}
    <span className="row-side">{side}</span>
  </li>
);

/** Parts of one line. Those that are absent are left out. */
const Line = ({ parts }: { readonly parts: readonly ReactNode[] }) => {
  const present = parts.filter((part) => part !== false && part !== null);
  return (
    present.length > 0 && (
      <span className="quiet parts">
        {present.map((part, at) => (
          <span key={at}>{part}</span>
        ))}
      </span>
    )
  );
};

const Delivery = ({ id }: { readonly id: string }) => (
  <>
    delivery <code>{id}</code>
  </>
);

interface OfRun {
  readonly pid: string;
  readonly run: Run;
  readonly names: Names;
}

const RunRow = ({ pid, run, names }: OfRun) => {
  const name = nameIn(names, run.trigger_slug);
  const { status, reason, outcome, attempts } = run;
  const start = runStart(run);
  const [word, at] = [resultWord(runResult(run)), runInstant(run)];
  return (
    <EntryRow
      name={
        <>
          <a
            className="cover"
            href={fireLink(pid, run.id)}
            aria-label={`${name}, ${start}, ${word}, ${moment(at)}`}
          >
            {name}
          </a>
          <Tag>{start}</Tag>
        </>
      }
      state={<Badge status={runResult(run)} word={word} />}
      side={
        <>
          <span>
            {run.scheduled_for !== null && <span className="quiet">due </span>}
            <Time at={at} />
          </span>
          {run.session_id !== null && (
            <a href={projectLink(pid, `/sessions/${run.session_id}`)}>{run.session_name ?? "its session"}</a>
          )}
        </>
      }
    >
      {outcome?.state === "failed" && outcome.code !== null && (
        <span className="reason">{`The session failed: ${failureReason(outcome.code)}.`}</span>
      )}
      {reason !== null && (
        <span className={status === "failed" ? "reason" : "quiet"}>
          <Prose text={runReason(reason)} />
        </span>
      )}
      <Line
        parts={[
          attempts > 1 && counted(attempts, "attempt"),
          run.replay_of !== null && <a href={fireLink(pid, run.replay_of)}>the earlier run</a>,
        ]}
      />
    </EntryRow>
  );
};

const RefusalRow = ({ refusal, names }: { readonly refusal: Refusal; readonly names: Names }) => {
  const { slug, reason, status, event, delivery_id: delivery, address, forwarded_for: forwarded } = refusal;
  const bytes = refusal.body_bytes ?? refusal.declared_bytes;
  return (
    <EntryRow
      name={
        <>
          <strong>{nameIn(names, slug)}</strong>
          <Tag>webhook</Tag>
        </>
      }
      state={<Badge status="refused" />}
      side={<Time at={refusal.at} />}
    >
      <span className="reason">{refusalReason(reason)}</span>
      <Line
        parts={[
          event !== null && (
            <>
              event <code>{event}</code>
            </>
          ),
          delivery !== null && <Delivery id={delivery} />,
          bytes !== null && counted(bytes, "byte"),
          <>
            from <code>{forwarded ?? address}</code>
          </>,
          `answered ${status}`,
        ]}
      />
    </EntryRow>
  );
};

const Nothing = ({ pid, filter: { status, slug } }: { readonly pid: string; readonly filter: Filter }) => {
  if (status === "refused" && slug === "")
    return (
      <Empty title="No refused deliveries.">
        Up to 500 refused deliveries of the last 7 days are kept.{" "}
        <a href={firesLink(pid)}>Show all runs and deliveries</a>
      </Empty>
    );
  return status === "" && slug === "" ? (
    <Empty title="No runs yet.">
      A trigger runs when its webhook receives a delivery, when its schedule is due, or when you run it by
      hand. <a href={projectLink(pid, "/triggers")}>Show the triggers</a>
    </Empty>
  ) : (
    <Empty title="No runs match the filter.">
      <a href={firesLink(pid)}>Show all runs and deliveries</a>
    </Empty>
  );
};

const countText = (entries: readonly Entry[]): string => {
  const runs = entries.filter((entry) => "run" in entry).length;
  return `${counted(runs, "run")}${runs < entries.length ? `, ${entries.length - runs} refused` : ""}`;
};

/** Among many runs, they would be overlooked. */
const Refused = ({ pid, entries }: { readonly pid: string; readonly entries: readonly Entry[] }) => {
  const refused = entries.filter((entry) => "refusal" in entry).length;
  return (
    refused > 0 && (
      <p className="after-heading">
        <a href={refusedLink(pid)}>{counted(refused, "refused delivery", "refused deliveries")}</a>
      </p>
    )
  );
};

const Runs = ({ data: project }: { readonly data: Project }) => {
  const { id: pid, triggers_paused: isPaused } = project;
  const filter = readFilter(useAddressQuery());
  const list = useInfiniteQuery(listQuery(pid, filter));
  const { data: names = NO_NAMES } = useQuery(namesQuery(pid));
  if (list.data === undefined) return null;
  const entries = entriesOf(list.data.pages);
  return (
    <>
      {isPaused && (
        <Callout tone="warn">
          All triggers of this project are paused. Webhook deliveries get a 404 response.
        </Callout>
      )}
      <Filters pid={pid} filter={filter} />
      {filter.status === "" && <Refused pid={pid} entries={entries} />}
      {/* Announces the change of the list to readers who cannot see it. */}
      <p className="unseen" role="status">
        {`${countText(entries)}${list.hasNextPage ? ", and older ones" : ""}`}
      </p>
      {entries.length === 0 ? (
        <Nothing pid={pid} filter={filter} />
      ) : (
        <ul className="rows">
          {entries.map((entry) =>
            "run" in entry ? (
              <RunRow key={entry.id} pid={pid} run={entry.run} names={names} />
            ) : (
              <RefusalRow key={entry.id} refusal={entry.refusal} names={names} />
            ),
          )}
        </ul>
      )}
      <More list={list}>Show older entries</More>
    </>
  );
};

export const runs = framedPage<Project>({
  load: ([pid = ""], query) => readListed(pid, queries.infiniteQuery(listQuery(pid, readFilter(query)))),
  title: ({ name }) => `Runs and deliveries of ${name}`,
  head: (project) => <ProjectHead project={project} tab="/fires" />,
  Body: Runs,
});
