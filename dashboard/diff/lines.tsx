/** The lines of a file in a diff, in one column or in two. Below a line stand the notes about it. */
import { Fragment, memo, type ReactNode, useMemo } from "react";
import { type DiffColours, Pieces, useDiffColours } from "../code/coloured.tsx";
import { languageOfFile } from "../code/languages.ts";
import { changedWords, type Span, withChanged } from "./changed-words.ts";
import { type DiffLine, digitsOf, pairLines } from "./parse.ts";
import { grouped } from "../elements/format.ts";
import { isWithin, type Range, useChoosing } from "./choosing.ts";
import { endOf, isNumbered, type Lines, linesOf } from "./place.ts";

/** The rest of a longer line is not shown. */
const LINE_CHARS = 1000;

export type View = "unified" | "split";

/** What stands below a line: a thread, or a comment that is being written. */
export interface Note {
  readonly key: string;
  readonly lines: Lines;
  readonly content: ReactNode;
}

const shortened = (text: string): string =>
  text.length > LINE_CHARS
    ? `${text.slice(0, LINE_CHARS)} … ${grouped(text.length - LINE_CHARS)} more characters`
    : text;

/** A line, and its place among the file's lines. */
interface Cell {
  readonly line: DiffLine;
  readonly at: number;
}

/** What stands side by side. In one column, all lines are on the right. */
type Row = readonly [before: Cell | null, after: Cell | null];

const rowsOf = (lines: readonly DiffLine[], view: View): readonly Row[] => {
  const cells = lines.map((line, at) => ({ line, at }));
  if (view === "unified") return cells.map((cell) => [null, cell]);
  const byLine = new Map(cells.map((cell) => [cell.line, cell]));
  const cellOf = (line: DiffLine | null): Cell | null => (line === null ? null : (byLine.get(line) ?? null));
  return pairLines([...lines]).map(([before, after]) => [cellOf(before), cellOf(after)]);
};

interface Choice {
  /** Of the longest number in the file. */
  readonly digits: number;
  /** Whether the reader may choose lines. */
  readonly canChoose: boolean;
  readonly range: Range | null;
  /** Null: the lines are plain. */
  readonly colours: DiffColours | null;
  /** Null: the file is shown without changes. */
  readonly changed: ReadonlyMap<DiffLine, Span> | null;
}

interface LineParts extends Omit<Choice, "digits"> {
  readonly cell: Cell;
  readonly side: "before" | "after" | undefined;
}

/** The style sheet draws the numbers, so that a copy has the lines alone. */
const Line = ({ cell: { line, at }, side, canChoose, range, colours, changed }: LineParts) => {
  const isTarget = canChoose && isNumbered(line);
  const coloured = line.text.length > LINE_CHARS ? undefined : colours?.get(line);
  const span = changed?.get(line);
  const pieces =
    span === undefined ? coloured : withChanged(coloured ?? [{ text: line.text, look: "" }], span);
  const looks = [
    line.kind,
    range !== null && isWithin(range, at) && "chosen",
    coloured !== undefined && "coloured",
  ];
  return (
    <span
      className={looks.filter(Boolean).join(" ")}
      // The arrow keys lead here.
      tabIndex={isTarget ? -1 : undefined}
      data-at={isTarget ? at : undefined}
      data-before={side === "after" ? undefined : (line.before ?? "")}
      data-after={side === "before" ? undefined : (line.after ?? "")}
    >
      {isTarget && <i className="gutter" />}
      {pieces === undefined ? shortened(line.text) : <Pieces pieces={pieces} />}
      {"\n"}
    </span>
  );
};

interface ColumnParts extends Choice {
  readonly rows: readonly Row[];
  readonly side: LineParts["side"];
  readonly label: string;
}

const Column = ({ rows, side, label, digits, ...choice }: ColumnParts) => (
  <pre
    className="diff numbered"
    tabIndex={0}
    data-side={side}
    aria-label={label}
    style={{ "--digits": digits } as object}
  >
    {rows.map(([before, after], index) => {
      const cell = side === "before" ? before : after;
      return cell === null ? (
        <span key={index} className="nothing">
          {"\n"}
        </span>
      ) : (
        <Line key={index} cell={cell} side={side} {...choice} />
      );
    })}
  </pre>
);

/** Lines of a file that is shown as it is. @param props `lines`: the same array while they are the same */
export const TextLines = ({ lines, path }: { readonly lines: readonly string[]; readonly path: string }) => {
  const all = useMemo(
    () => lines.map((text, at): DiffLine => ({ kind: "same", text, before: null, after: at + 1 })),
    [lines],
  );
  const colours = useDiffColours(languageOfFile(path), all, 0);
  return (
    <Column
      rows={all.map((line, at) => [null, { line, at }])}
      side="after"
      label={path}
      digits={digitsOf(all)}
      canChoose={false}
      range={null}
      colours={colours}
      changed={null}
    />
  );
};

interface SegmentParts extends Choice {
  readonly rows: readonly Row[];
  readonly from: number;
  readonly to: number;
  readonly view: View;
}

/** Rows without a note between them. */
const Segment = memo(({ rows, from, to, view, ...choice }: SegmentParts) => {
  const some = rows.slice(from, to);
  if (view === "unified") return <Column rows={some} side={undefined} label="Changes" {...choice} />;
  return (
    <div className="split" style={{ "--rows": some.length } as object}>
      <div>
        <Column rows={some} side="before" label="Before" {...choice} />
      </div>
      <div>
        <Column rows={some} side="after" label="After" {...choice} />
      </div>
    </div>
  );
});

/** The row of each note. Notes on lines that the diff does not show are left out. */
const notesByRow = (
  notes: readonly Note[],
  lines: readonly DiffLine[],
  rows: readonly Row[],
): ReadonlyMap<number, readonly Note[]> => {
  const found = new Map<number, Note[]>();
  for (const note of notes) {
    const at = endOf(note.lines, lines);
    const row = at === -1 ? -1 : rows.findIndex((cells) => cells.some((cell) => cell?.at === at));
    if (row !== -1) found.set(row, [...(found.get(row) ?? []), note]);
  }
  return found;
};

/** The part of a choice that a segment has: others need not be drawn again. */
const rangeIn = (range: Range | null, rows: readonly Row[]): Range | null =>
  range !== null && rows.some((row) => row.some((cell) => cell !== null && isWithin(range, cell.at)))
    ? range
    : null;

interface FileLinesParts {
  readonly path: string;
  /** The same array while they are the same. */
  readonly lines: readonly DiffLine[];
  readonly view: View;
  readonly notes: readonly Note[];
  /** Called with lines that the reader chose, and their text. Null: she may choose none. */
  readonly onChoose: ((lines: Lines, quote: string) => void) | null;
}

export const FileLines = ({ path, lines, view, notes, onChoose }: FileLinesParts) => {
  const colours = useDiffColours(languageOfFile(path), lines);
  const rows = useMemo(() => rowsOf(lines, view), [lines, view]);
  const digits = useMemo(() => digitsOf(lines), [lines]);
  const changed = useMemo(() => changedWords(lines), [lines]);
  const { range, events } = useChoosing((chosen) => {
    const some = lines.filter((line, at) => isWithin(chosen, at) && isNumbered(line));
    const place = linesOf(some);
    if (place !== null) onChoose?.(place, some.map(({ text }) => text).join("\n"));
  });
  if (lines.length === 0) return <p className="quiet">No lines to show.</p>;
  const below = notesByRow(notes, lines, rows);
  const ends = [...below.keys()].map((row) => row + 1).toSorted((one, other) => one - other);
  const starts = [0, ...ends.filter((row) => row < rows.length)];
  return (
    <div className="file-lines" {...(onChoose !== null && events)}>
      {starts.map((from, index) => {
        const to = starts[index + 1] ?? rows.length;
        return (
          <Fragment key={from}>
            <Segment
              rows={rows}
              from={from}
              to={to}
              view={view}
              digits={digits}
              canChoose={onChoose !== null}
              range={rangeIn(range, rows.slice(from, to))}
              colours={colours}
              changed={changed}
            />
            {below.get(to - 1)?.map(({ key, content }) => (
              <div key={key} className="note-below">
                {content}
              </div>
            ))}
          </Fragment>
        );
      })}
    </div>
  );
};
