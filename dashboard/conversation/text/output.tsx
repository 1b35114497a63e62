/** Long texts of tools: what a program wrote, lines of a file, a diff. They fold in the middle. */
import { memo, type ReactNode, useMemo, useState } from "react";
import { type DiffColours, Pieces, useDiffColours } from "../../code/coloured.tsx";
import { languageOfFile } from "../../code/languages.ts";
import { digitsOf, parseDiff, type DiffLine } from "../../diff/parse.ts";
import { grouped } from "../../elements/format.ts";
import { readTerminal, type TerminalLine } from "./ansi.ts";
import { Copied } from "./copy.tsx";

/** As many lines as these are shown at the beginning and at the end. */
const HEAD = 30;
const TAIL = 15;
/** Fewer lines than this are not folded away. */
const FOLDED_MIN = 10;
/** The page stays fast with this many at once. */
const STEP = 2000;
/** The rest of a longer line is not shown. */
const LINE_CHARS = 2000;

interface Folding<L> {
  readonly lines: readonly L[];
  /** Shows some of the lines. */
  readonly show: (lines: readonly L[], from: number) => ReactNode;
}

/** Lines, without those in the middle until the reader asks for them. */
const Folding = <L,>({ lines, show }: Folding<L>) => {
  const [shown, setShown] = useState(HEAD);
  const hidden = lines.length - shown - TAIL;
  if (hidden < FOLDED_MIN) return show(lines, 0);
  return (
    <>
      {show(lines.slice(0, shown), 0)}
      <p className="more-lines">
        <button type="button" className="plain" onClick={() => setShown(shown + STEP)}>
          {hidden > STEP
            ? `Show ${grouped(STEP)} of ${grouped(hidden)} more lines`
            : `Show ${grouped(hidden)} more lines`}
        </button>
      </p>
      {show(lines.slice(-TAIL), lines.length - TAIL)}
    </>
  );
};

const cut = (line: string): string => (line.length > LINE_CHARS ? `${line.slice(0, LINE_CHARS)}…` : line);

/** Lines of text, as they are. @param label what they are, e.g. "Output" */
export const Lines = memo(({ text, label }: { readonly text: string; readonly label: string }) => {
  const lines = useMemo(() => text.replace(/\n$/, "").split("\n"), [text]);
  return (
    <Copied text={text} what={`the ${label.toLowerCase()}`}>
      <Folding
        lines={lines}
        show={(some) => (
          <pre className="text" dir="auto" tabIndex={0} aria-label={label}>
            {some.map(cut).join("\n")}
          </pre>
        )}
      />
    </Copied>
  );
});

const toPieces = (lines: readonly TerminalLine[]): ReactNode =>
  lines.map((line, index) => (
    <span key={index} className="terminal-line">
      {line.map(({ text, look }, at) =>
        look === "" ? (
          <span key={at}>{text}</span>
        ) : (
          <span key={at} className={look}>
            {text}
          </span>
        ),
      )}
      {"\n"}
    </span>
  ));

/** What a program wrote to its terminal, in its colours. */
const TerminalOutput = memo(({ text }: { readonly text: string }) => {
  const lines = useMemo(() => readTerminal(text), [text]);
  const plain = useMemo(
    () => lines.map((line) => line.map((piece) => piece.text).join("")).join("\n"),
    [lines],
  );
  return (
    <Copied text={plain} what="the output">
      <Folding
        lines={lines}
        show={(some) => (
          <pre className="text" dir="ltr" tabIndex={0} aria-label="Output">
            {toPieces(some)}
          </pre>
        )}
      />
    </Copied>
  );
});

/** A command as it was typed, and what it wrote. */
export const Terminal = ({ command, output }: { readonly command: string; readonly output: string }) => (
  <div className="terminal-block">
    {command !== "" && (
      <Copied text={command} what="the command">
        <pre className="text command-line" dir="ltr" tabIndex={0} aria-label="Command">
          {command}
        </pre>
      </Copied>
    )}
    {output.trim() !== "" && <TerminalOutput text={output} />}
  </div>
);

/** Lines before the changes that repeat the file's name. */
const REPEATS = /^(?:Index: |=+$)/;

const toDiffLines = (lines: readonly DiffLine[], colours: DiffColours | null): ReactNode =>
  lines.map((line, index) => {
    const { kind, text, before, after } = line;
    const pieces = text.length > LINE_CHARS ? undefined : colours?.get(line);
    return (
      <span
        key={index}
        className={pieces === undefined ? kind : `${kind} coloured`}
        data-before={before ?? ""}
        data-after={after ?? ""}
      >
        {pieces === undefined ? cut(text) : <Pieces pieces={pieces} />}
        {"\n"}
      </span>
    );
  });

/** The changes of one file. */
export const Diff = memo(({ path, patch }: { readonly path: string; readonly patch: string }) => {
  const lines = useMemo(
    () =>
      parseDiff(patch)
        .files.flatMap((file) => file.lines)
        .filter(({ kind, text }) => kind !== "note" || !REPEATS.test(text)),
    [patch],
  );
  const colours = useDiffColours(languageOfFile(path), lines);
  return (
    <Folding
      lines={lines}
      show={(some) => (
        <pre
          className="diff numbered"
          dir="ltr"
          tabIndex={0}
          aria-label="Changes"
          style={{ "--digits": digitsOf(lines) } as object}
        >
          {toDiffLines(some, colours)}
        </pre>
      )}
    />
  );
});
