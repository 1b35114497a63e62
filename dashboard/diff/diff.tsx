/** A diff by file. Long and generated files are folded, with a button that shows them. */
import { browserChoice } from "../frame/kept.ts";
import { type ReactNode, useEffect, useMemo, useReducer, useState } from "react";
import { getText } from "../api/api.ts";
import { FILE_LINES, PAGE_LINES, type PlannedFile, planFiles, showAsked, type Source } from "./files.ts";
import { counted, grouped } from "../elements/format.ts";
import { Act } from "../ui/act.tsx";
import { Counts, Tag } from "../ui/parts.tsx";
import { FileLines, type View } from "./lines.tsx";
import { endOf, hasQuote, type Place } from "./place.ts";

/** Two columns need this much room. */
const WIDE = "(min-width: 60rem)";
const CHOICE = "diff-view";

/** What stands at a place of the diff. */
export interface PlacedNote {
  readonly key: string;
  readonly place: Place;
  /** Whether its lines are those of another diff: it stands below the file then. */
  readonly isOutdated?: boolean;
  /** The text that it is about. If the lines have another one by now, it stands below the file, too. */
  readonly quote?: string;
  readonly content: ReactNode;
  /** In its place, once the lines have another text. Absent: the same. */
  readonly changed?: ReactNode;
}

export interface Reviewing {
  readonly notes: readonly PlacedNote[];
  /** The reader wishes to write a comment there. Null: she may not. @param quote the text of the lines */
  readonly begin: ((place: Place, quote: string) => void) | null;
  /** The label of the button for a comment on a file as a whole. Null: there is none. */
  readonly wholeFile: string | null;
}

const NO_REVIEW: Reviewing = { notes: [], begin: null, wholeFile: null };

/** The reader's choice. */
const viewChoice = browserChoice<View>(CHOICE, (kept) => (kept === "split" ? "split" : "unified"));

const shownFiles = (): readonly HTMLDetailsElement[] => [
  ...document.querySelectorAll<HTMLDetailsElement>("details.file"),
];

const foldFiles = (isOpen: boolean): void => {
  for (const file of shownFiles()) file.open = isOpen;
};

const showFile = (at: number): void => {
  const file = shownFiles()[at];
  if (file === undefined) return;
  file.open = true;
  file.scrollIntoView({ block: "start" });
  file.querySelector("summary")?.focus({ preventScroll: true });
};

/** `j` and `k` lead to the next and the previous file, `s` changes the view. Enter folds the file that has the focus, as everywhere. */
const useDiffKeys = (isOn: boolean, changeView: () => void): void => {
  useEffect(() => {
    if (!isOn) return undefined;
    const pressed = (event: KeyboardEvent): void => {
      const target = event.target instanceof Element ? event.target : null;
      const isTyping = target?.closest("input, textarea, select, dialog, [contenteditable]") !== null;
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "s") changeView();
      else if (event.key === "j" || event.key === "k") {
        const files = shownFiles();
        const now = files.findIndex((file) => file.contains(document.activeElement));
        const next = event.key === "j" ? now + 1 : Math.max(now, 1) - 1;
        showFile(Math.min(next, files.length - 1));
      } else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  });
};

const ViewButton = ({
  own,
  view,
  onChoose,
  children,
}: {
  readonly own: View;
  readonly view: View;
  readonly onChoose: (view: View) => void;
  readonly children: string;
}) => (
  <button type="button" aria-pressed={own === view} onClick={() => onChoose(own)}>
    {children}
  </button>
);

interface BarParts {
  readonly files: readonly PlannedFile[];
  readonly view: View;
  readonly onChoose: (view: View) => void;
  /** Whether there is room for two columns. */
  readonly isWide: boolean;
  readonly hasKeys: boolean;
}

const KeysHint = ({ isWide }: { readonly isWide: boolean }) => (
  <span className="quiet keys">
    <kbd>j</kbd> <kbd>k</kbd> next and previous file
    {isWide && (
      <>
        , <kbd>s</kbd> view
      </>
    )}
    , <kbd>Enter</kbd> folds
  </span>
);

const Bar = ({ files, view, onChoose, isWide, hasKeys }: BarParts) => (
  <div className="diff-bar">
    {isWide && (
      <span className="switch" role="group" aria-label="View of the changes">
        <ViewButton own="unified" view={view} onChoose={onChoose}>
          One column
        </ViewButton>
        <ViewButton own="split" view={view} onChoose={onChoose}>
          Side by side
        </ViewButton>
      </span>
    )}
    {files.length > 1 && (
      <>
        <button type="button" className="plain" onClick={() => foldFiles(false)}>
          Fold all
        </button>
        <button type="button" className="plain" onClick={() => foldFiles(true)}>
          Unfold all
        </button>
      </>
    )}
    {hasKeys && <KeysHint isWide={isWide} />}
    {files.length > 1 && (
      <details className="file-list">
        <summary>{counted(files.length, "file")}</summary>
        <ul>
          {files.map((file, at) => (
            <li key={file.key}>
              <button type="button" className="plain" onClick={() => showFile(at)}>
                {file.path}
              </button>{" "}
              <Counts added={file.added} removed={file.removed} />
            </li>
          ))}
        </ul>
      </details>
    )}
  </div>
);

const FOLDED = {
  generated: "This file is generated.",
  long: "This file is long.",
  room: `The page shows ${grouped(PAGE_LINES)} lines at once.`,
  absent: "The diff is too long to be sent at once.",
};

const withPath = (url: string, path: string): string =>
  `${url}${url.includes("?") ? "&" : "?"}path=${encodeURIComponent(path)}`;

/** A file that is not shown until the reader asks for it. */
const Folded = ({
  file: { path, why, lines },
  source,
  onShow,
}: {
  readonly file: PlannedFile;
  readonly source: Source | null;
  readonly onShow: () => void;
}) => {
  const show = async (): Promise<void> => {
    const { url = "", head } = source ?? {};
    // The file's own diff, if the page does not have its lines.
    const diff = lines.length > 0 ? null : await getText(withPath(url, path));
    showAsked({ url, head: head ?? "", path }, diff);
    onShow();
  };
  return (
    <p>
      <span className="quiet">{why === null ? "" : FOLDED[why]}</span>{" "}
      <Act label="Show this file" about={path} className="" does={show} />
    </p>
  );
};

/** Where a reader finds what is not shown. */
const restOf = (source: Source | null): string => source?.rest ?? "Fetch the branch to read the rest.";

interface FileParts {
  readonly file: PlannedFile;
  readonly source: Source | null;
  readonly view: View;
  readonly isOpen: boolean;
  readonly reviewing: Reviewing;
  readonly onShow: () => void;
}

const Summary = ({ file, source }: Pick<FileParts, "file" | "source">) => {
  const mark = source?.marks?.get(file.path) ?? "";
  return (
    <summary>
      <code>{file.path}</code>
      {file.from !== null && (
        <span className="quiet">
          {" was "}
          <code>{file.from}</code>
        </span>
      )}
      {file.note !== "" && (
        <>
          {" "}
          <Tag>{file.note}</Tag>
        </>
      )}
      {mark !== "" && (
        <>
          {" "}
          <Tag>{mark}</Tag>
        </>
      )}{" "}
      <Counts added={file.added} removed={file.removed} />
      {!file.isShown && <span className="quiet"> not shown</span>}
    </summary>
  );
};

/** The notes at lines that the diff shows, and the others. */
const placed = (notes: readonly PlacedNote[], file: PlannedFile) => {
  const own = notes.filter(({ place }) => place.file === file.path);
  const inside = own.flatMap(({ key, place: { lines }, isOutdated = false, quote = "", content }) =>
    lines !== null &&
    !isOutdated &&
    file.isShown &&
    endOf(lines, file.lines) !== -1 &&
    (quote === "" || hasQuote(lines, quote, file.lines))
      ? [{ key, lines, content }]
      : [],
  );
  const shown = new Set(inside.map(({ key }) => key));
  const below = own.filter(({ key }) => !shown.has(key));
  return {
    inside,
    below: below.map(({ key, place: { lines }, quote = "", content, changed = content }) => ({
      key,
      content:
        lines !== null && quote !== "" && file.isShown && !hasQuote(lines, quote, file.lines)
          ? changed
          : content,
    })),
  };
};

const ShownLines = ({ file, source, view, reviewing }: Omit<FileParts, "isOpen" | "onShow">) => {
  const { path, lines, cut } = file;
  const { begin, notes } = reviewing;
  const hidden = lines.length - FILE_LINES;
  const shown = useMemo(() => lines.slice(0, FILE_LINES), [lines]);
  return (
    <>
      <FileLines
        path={path}
        lines={shown}
        view={view}
        notes={placed(notes, file).inside}
        onChoose={begin === null ? null : (chosen, quote) => begin({ file: path, lines: chosen }, quote)}
      />
      {hidden > 0 && <Quiet>{`${grouped(hidden)} more lines are not shown. ${restOf(source)}`}</Quiet>}
      {cut !== null && <Quiet>{`${cut} ${restOf(source)}`}</Quiet>}
    </>
  );
};

const Quiet = ({ children }: { readonly children: string }) => <p className="quiet">{children}</p>;

const FileView = ({ file, source, view, isOpen, reviewing, onShow }: FileParts) => {
  const { begin, wholeFile } = reviewing;
  return (
    <details className="file" open={isOpen} data-path={file.path}>
      <Summary file={file} source={source} />
      {file.isShown ? (
        <ShownLines file={file} source={source} view={view} reviewing={reviewing} />
      ) : (
        <Folded file={file} source={source} onShow={onShow} />
      )}
      {placed(reviewing.notes, file).below.map(({ key, content }) => (
        <div key={key} className="note-below">
          {content}
        </div>
      ))}
      {begin !== null && wholeFile !== null && (
        <p className="actions">
          <button
            type="button"
            className="plain"
            aria-label={`${wholeFile}: ${file.path}`}
            onClick={() => begin({ file: file.path, lines: null }, "")}
          >
            {wholeFile}
          </button>
        </p>
      )}
    </details>
  );
};

interface DiffParts {
  readonly diff: string;
  /** Where single files can be read. */
  readonly source?: Source | null;
  /** Whether the files are opened at first. */
  readonly isOpen?: boolean;
  /** Whether the keys of the page are for this diff. */
  readonly hasKeys?: boolean;
  /** Whether there may be two columns. */
  readonly hasColumns?: boolean;
  readonly reviewing?: Reviewing;
}

const useView = (hasColumns: boolean) => {
  const [chosen, setChosen] = useState(viewChoice.read);
  const isWide = hasColumns && matchMedia(WIDE).matches;
  const choose = (view: View): void => {
    viewChoice.keep(view);
    setChosen(view);
  };
  return { view: isWide ? chosen : "unified", isWide, choose } as const;
};

export const Diff = ({
  diff,
  source = null,
  isOpen = true,
  hasKeys = false,
  hasColumns = true,
  reviewing = NO_REVIEW,
}: DiffParts) => {
  const { view, isWide, choose } = useView(hasColumns);
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  useDiffKeys(hasKeys, () => choose(view === "split" ? "unified" : "split"));
  const { files, cut } = planFiles(diff, source);
  if (files.length === 0) return <Quiet>No differences.</Quiet>;
  const unlisted = Math.max(0, (source?.total ?? 0) - files.length);
  return (
    <div className="diff-files" data-review={reviewing.begin === null ? undefined : ""}>
      <Bar files={files} view={view} onChoose={choose} isWide={isWide} hasKeys={hasKeys} />
      {files.map((file) => (
        <FileView
          key={file.key}
          file={file}
          source={source}
          view={view}
          isOpen={isOpen}
          reviewing={reviewing}
          onShow={redraw}
        />
      ))}
      {unlisted > 0 && <Quiet>{`${counted(unlisted, "more file")} changed. ${restOf(source)}`}</Quiet>}
      {cut !== null && <Quiet>{`${cut} ${restOf(source)}`}</Quiet>}
    </div>
  );
};
