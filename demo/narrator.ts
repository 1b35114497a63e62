/** Reports each step with its time to a person, in colour if a terminal shows it. */

const CODES = { quiet: "2", good: "32", bad: "31", hunk: "36", strong: "1" } as const;
export type Tone = keyof typeof CODES;

const TIME_WIDTH = 9;
const LABEL_WIDTH = 16;

export interface Narrator {
  /** A line with the time since the narrator was created, or since `origin` (ms since the epoch) if `at` is given. */
  readonly say: (
    label: string,
    text: string,
    moment?: { readonly at: number; readonly origin: number },
  ) => void;
  /** A line without the time, in a tone. */
  readonly plain: (text: string, tone?: Tone) => void;
  /** A unified diff. */
  readonly diff: (text: string) => void;
}

/** Milliseconds since the epoch. */
export const epochMs = (): number => performance.timeOrigin + performance.now();

/** "12 ms" below a second, "3.4 s" from there. */
export const formatTime = (ms: number): string =>
  ms < 1000 ? `${String(Math.max(0, Math.round(ms)))} ms` : `${(ms / 1000).toFixed(1)} s`;

/** @param colours whether the output is a terminal with colours */
export const makeNarrator = (write: (text: string) => void, colours: boolean): Narrator => {
  const paint = (text: string, tone: Tone): string =>
    colours ? `\u001B[${CODES[tone]}m${text}\u001B[0m` : text;
  const startedAt = epochMs();
  return {
    say: (label, text, moment) => {
      const elapsed =
        moment === undefined
          ? formatTime(epochMs() - startedAt)
          : `+${formatTime(moment.at - moment.origin)}`;
      const name = paint(label.padEnd(LABEL_WIDTH), "strong");
      write(`${paint(elapsed.padStart(TIME_WIDTH), "quiet")}  ${name}${text}\n`);
    },
    plain: (text, tone) => {
      write(`${tone === undefined ? text : paint(text, tone)}\n`);
    },
    diff: (text) => {
      for (const line of text.trimEnd().split("\n")) {
        const tone = toneOf(line);
        write(`    ${tone === null ? line : paint(line, tone)}\n`);
      }
    },
  };
};

const toneOf = (line: string): Tone | null => {
  if (/^(\+\+\+|---|diff |index |new file)/.test(line)) return "quiet";
  if (line.startsWith("+")) return "good";
  if (line.startsWith("-")) return "bad";
  return line.startsWith("@@") ? "hunk" : null;
};

/** Terminals with colours, unless the reader has disabled them (https://no-color.org). */
export const wantsColours = (stream: { readonly isTTY?: boolean }): boolean =>
  stream.isTTY === true && (process.env["NO_COLOR"] ?? "") === "";
