/** Code in colours: plain at first, and in colours as soon as they are found. */
import { type ReactNode, useEffect, useMemo, useState } from "react";
import type { DiffLine } from "../diff/parse.ts";
import type { ColouredLine, Piece } from "./colour.ts";
import type { Language } from "./languages.ts";

/** A text that grows gets its colours when it has rested this long. */
const REST_MS = 150;

/** One text after the other, so that the page stays quick. */
let queue: Promise<unknown> = Promise.resolve();

type Texts = readonly (readonly string[])[];

interface Found {
  readonly texts: Texts;
  readonly lines: readonly (readonly ColouredLine[])[];
}

/**
 * @param texts the lines of each text, the same array while they are the same
 * @returns their coloured lines. null: plain, or not found yet
 */
const useColours = (language: Language | null, texts: Texts): Found["lines"] | null => {
  const [found, setFound] = useState<Found | null>(null);
  useEffect(() => {
    if (language === null) return undefined;
    let isWanted = true;
    const find = async (): Promise<void> => {
      const lines: (readonly ColouredLine[])[] = [];
      for (const text of texts) {
        if (!isWanted) return;
        // oxlint-disable-next-line no-await-in-loop -- one after the other, so that the page stays quick
        const { colourLines } = await import("./colour.ts");
        // oxlint-disable-next-line no-await-in-loop -- the same
        const own = await colourLines(language, text, { isWanted: () => isWanted });
        if (own === null) return;
        lines.push(own);
      }
      setFound({ texts, lines });
    };
    // eslint-disable-next-line no-restricted-globals -- the browser's timer
    const timer = setTimeout(() => {
      // Without its colours, code is as good as before.
      queue = queue.then(find).catch(() => {});
    }, REST_MS);
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
  }, [language, texts]);
  return found?.texts === texts ? found.lines : null;
};

export const Pieces = ({ pieces }: { readonly pieces: readonly Piece[] }): ReactNode =>
  pieces.map(({ text, look }, at) =>
    look === "" ? (
      text
    ) : (
      <span key={at} className={look}>
        {text}
      </span>
    ),
  );

/** @param props `plain`: what is shown without colours */
export const Code = ({
  language,
  text,
  plain,
}: {
  readonly language: Language | null;
  readonly text: string;
  readonly plain: ReactNode;
}) => {
  const texts = useMemo(() => [text.split("\n")], [text]);
  const [lines] = useColours(language, texts) ?? [];
  if (lines === undefined) return plain;
  return lines.map((pieces, at) => (
    <span key={at}>
      <Pieces pieces={pieces} />
      {at < lines.length - 1 && "\n"}
    </span>
  ));
};

/** The two versions of each part of a file, as lines that a grammar can read. */
const versionsIn = (lines: readonly DiffLine[]): readonly (readonly DiffLine[])[] => {
  const parts: DiffLine[][] = [[]];
  for (const line of lines) {
    if (line.kind === "hunk") parts.push([]);
    else if (line.kind !== "note") parts.at(-1)?.push(line);
  }
  return parts.flatMap((part) =>
    (["removed", "added"] as const).flatMap((kind) => {
      const version = part.filter((line) => line.kind === kind || line.kind === "same");
      // A version without lines of its own is in the other one. The last is kept for lines that both have.
      return kind === "added" || version.some((line) => line.kind === kind) ? [version] : [];
    }),
  );
};

export type DiffColours = ReadonlyMap<DiffLine, ColouredLine>;

/**
 * The colours of a file's lines.
 *
 * @param lines the same array while they are the same
 * @param signs how many characters at the beginning of each line are no code
 */
export const useDiffColours = (
  language: Language | null,
  lines: readonly DiffLine[],
  signs: 0 | 1 = 1,
): DiffColours | null => {
  const versions = useMemo(() => versionsIn(lines), [lines]);
  const texts = useMemo(
    () => versions.map((version) => version.map(({ text }) => text.slice(signs))),
    [versions, signs],
  );
  const found = useColours(language, texts);
  return useMemo(
    () =>
      found &&
      new Map(
        versions.flatMap((version, at) =>
          version.map((line, index): [DiffLine, ColouredLine] => [
            line,
            [{ text: line.text.slice(0, signs), look: "sign" }, ...(found[at]?.[index] ?? [])],
          ]),
        ),
      ),
    [found, versions, signs],
  );
};
