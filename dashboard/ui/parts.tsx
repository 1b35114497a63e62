/** Pieces that several pages show. */
import { createElement, type ReactNode, useEffect, useState } from "react";
import { perform } from "../frame/app.ts";
import { checkOutside } from "../elements/dom.ts";
import { inZone, moment, relative, shortId } from "../elements/format.ts";
import { visible } from "../elements/text.ts";
import { agentWords } from "../projects/project.ts";
import { removeFilters, setFilter } from "./address.ts";

interface Children {
  readonly children: ReactNode;
}

/** The breadcrumbs. @param props `steps`: labels and links; the last one has no link */
export const Trail = ({
  steps,
}: {
  readonly steps: readonly (readonly [label: string, link: string | null])[];
}) => (
  <nav className="trail" aria-label="Breadcrumb">
    <ol>
      {steps.map(([label, link]) => (
        <li key={label}>
          {link === null ? <span aria-current="page">{label}</span> : <a href={link}>{label}</a>}
        </li>
      ))}
    </ol>
  </nav>
);

/** A small word beside a name. */
export const Tag = ({ tone, children }: Children & { readonly tone?: "warn" | "bad" | "good" }) => (
  <span className="tag" data-tone={tone}>
    {children}
  </span>
);

/** A state as a word and a dot, because colour alone is not readable for everyone. @param word stands for the status */
export const Badge = ({ status, word = status }: { readonly status: string; readonly word?: string }) => (
  <span className="badge" data-status={status}>
    {word}
  </span>
);

/** The end of an id: ids are ordered by time, so their ends distinguish them. */
export const IdEnd = ({ id }: { readonly id: string }) => (
  <code className="quiet" title={id}>{`…${shortId(id)}`}</code>
);

/** How many lines were added and removed. */
export const Counts = ({ added, removed }: { readonly added: number; readonly removed: number }) => (
  <span className="counts">
    <span className="added">{`+${added}`}</span> <span className="removed">{`−${removed}`}</span>
  </span>
);

interface CommitParts {
  readonly sha: string;
  readonly subject: string;
  readonly author_name: string;
  readonly committed_at: string;
}

export const Commits = ({ commits }: { readonly commits: readonly CommitParts[] }) => (
  <ul className="rows">
    {commits.map((commit) => (
      <li key={commit.sha} className="row">
        <span className="row-main">
          <span>{commit.subject}</span>
          <span className="quiet">{agentWords(commit.author_name)}</span>
        </span>
        <code>{commit.sha.slice(0, 10)}</code>
        <span className="row-side">
          <Time at={commit.committed_at} />
        </span>
      </li>
    ))}
  </ul>
);

/** A line below a row's name. */
export const Detail = ({ children }: Children) => <span className="quiet">{children}</span>;

/** An instant as people say it, e.g. "3 min ago". @param otherwise stands where there is none */
export const Time = ({
  at,
  otherwise = "never",
}: {
  readonly at: string | null;
  readonly otherwise?: string;
}) =>
  at === null ? (
    <span className="quiet">{otherwise}</span>
  ) : (
    <time dateTime={at} title={moment(at)}>
      {relative(at)}
    </time>
  );

/** A sentence of the service. The parts that it puts in backticks are shown as code, and instants in the reader's zone. */
export const Prose = ({ text }: { readonly text: string }) => (
  // An element of its own: a component's bare text would not be made visible.
  <>
    {text
      .split(/`([^`\n]+)`/)
      .map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : inZone(part)))}
  </>
);

/** Names as code, with commas. */
export const Codes = ({ names }: { readonly names: readonly string[] }) =>
  names.map((name, at) => (
    <span key={name}>
      {at > 0 && ", "}
      <code>{name}</code>
    </span>
  ));

/** A line with a button that copies it. */
export const CopyLine = ({ text }: { readonly text: string }) => (
  <span className="copy">
    <code className="long">{text}</code>
    <button type="button" className="plain" data-action="copy" data-text={text} aria-label="Copy the line">
      Copy
    </button>
  </span>
);

/** Several lines with a button that copies them. @param props `what`: their name, e.g. "the command" */
export const CopyBlock = ({ text, what }: { readonly text: string; readonly what: string }) => (
  <div className="block">
    <pre className="text" tabIndex={0} aria-label={what}>
      {text}
    </pre>
    <button type="button" className="plain" data-action="copy" data-text={text} aria-label={`Copy ${what}`}>
      Copy
    </button>
  </div>
);

/**
 * A link that opens in a new tab, and tells the other site nothing about this one. The page's own elements refuse its address
 * (jsx-runtime.ts E3), so it is checked here.
 */
export const Outside = ({ to, children }: Children & { readonly to: string }) => {
  checkOutside(to);
  const link = { href: to, target: "_blank", rel: "noopener noreferrer", title: visible(to) };
  return createElement("a", link, children);
};

/** Something to notice, above the rest. */
export const Callout = ({
  tone,
  children,
}: Children & { readonly tone?: "bad" | "warn" | "good" | undefined }) => (
  <div className="callout" data-tone={tone}>
    {children}
  </div>
);

/** A list of names and values. Rows without a value are left out. */
export const Facts = ({
  rows,
}: {
  readonly rows: readonly (readonly [name: string, value: ReactNode])[];
}) => (
  <dl className="facts">
    {rows.map(
      ([name, value]) =>
        value !== null &&
        value !== undefined &&
        value !== false && (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
    )}
  </dl>
);

interface Cells {
  readonly heads: readonly string[];
  readonly rows: readonly (readonly ReactNode[])[];
}

/** A wide table scrolls by itself. Its rows have no order of their own: they keep their places. */
export const Table = ({ heads, rows }: Cells) => (
  <div className="table-frame" tabIndex={0} role="region" aria-label={heads.join(", ")}>
    <table>
      <thead>
        <tr>
          {heads.map((head) => (
            <th key={head} scope="col">
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((cells, row) => (
          <tr key={row}>
            {cells.map((cell, column) => (
              <td key={column}>{cell}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

interface RowParts extends Children {
  /** Words about its state. */
  readonly states: ReactNode;
  readonly actions?: ReactNode;
}

/** A row of a list. */
export const Row = ({ states, actions, children }: RowParts) => (
  <li className={actions === undefined ? "row two" : "row"}>
    <span className="row-main">{children}</span>
    <span className="states">{states}</span>
    {actions !== undefined && <span className="row-side actions">{actions}</span>}
  </li>
);

interface List {
  readonly hasNextPage: boolean;
  readonly fetchNextPage: (options: { readonly throwOnError: true }) => Promise<unknown>;
}

/** Reads the next part of a list, if there is one. */
export const More = ({ list, children }: Children & { readonly list: List }) =>
  list.hasNextPage && (
    <p className="more">
      <button type="button" onClick={() => void perform(() => list.fetchNextPage({ throwOnError: true }))}>
        {children}
      </button>
    </p>
  );

/** What stands where a list would be. */
export const Empty = ({ title, children }: Children & { readonly title: string }) => (
  <div className="empty">
    <p className="empty-title">{title}</p>
    <p>{children}</p>
  </div>
);

/** How long the reader rests before what she types narrows the list. */
const TYPING_MS = 300;

interface Filter {
  /** In the address. */
  readonly name: string;
  readonly label: string;
  /** "" for all. */
  readonly value: string;
}

interface Choice extends Filter {
  /** The label of no choice. */
  readonly all: string;
  readonly options: readonly (readonly [value: string, label: string])[];
}

export const Pick = ({ name, label, value, all, options }: Choice) => (
  <label className="pick">
    {label}
    <select data-filter={name} value={value} onChange={(event) => setFilter(name, event.target.value)}>
      <option value="">{all}</option>
      {options.map(([option, words]) => (
        <option key={option} value={option}>
          {words}
        </option>
      ))}
    </select>
  </label>
);

/** A text that narrows the list when the reader rests: while a year is typed, each of its digits makes another day. */
const useTyped = ({ name, value }: Filter): readonly [text: string, write: (text: string) => void] => {
  const [typed, setTyped] = useState({ from: value, text: value });
  // Once the address changes, what was typed before does not count, unless it is what the address says now. An effect would be too late: the timer below could come first.
  const text = typed.from === value || typed.text.trim() === value ? typed.text : value;
  if (typed.from !== value) setTyped({ from: value, text });
  useEffect(() => {
    if (text.trim() === value) return undefined;
    // oxlint-disable-next-line no-restricted-globals -- the browser's timer
    const typing = setTimeout(() => setFilter(name, text.trim()), TYPING_MS);
    return () => clearTimeout(typing);
  }, [name, text, value]);
  return [text, (next) => setTyped({ from: value, text: next })];
};

export const DayPick = (filter: Filter) => {
  const [day, write] = useTyped(filter);
  return (
    <label className="pick">
      {filter.label}
      <input
        type="date"
        data-filter={filter.name}
        value={day}
        onChange={({ target }) => write(target.value)}
      />
    </label>
  );
};

export const SearchPick = (filter: Filter) => {
  const [text, write] = useTyped(filter);
  return (
    <label className="pick">
      {filter.label}
      <input
        type="search"
        data-filter={filter.name}
        value={text}
        onChange={({ target }) => write(target.value)}
        maxLength={200}
        placeholder="contains"
        autoComplete="off"
        spellCheck={false}
      />
    </label>
  );
};

export const ShowEverything = () => (
  <button type="button" className="plain" onClick={removeFilters}>
    Show everything
  </button>
);
