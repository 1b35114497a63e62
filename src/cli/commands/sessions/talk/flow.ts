/**
 * Words on a screen, one after the other. A word that no longer fits goes to the next row. A written word does not change afterwards,
 * so that it needs no part of the screen for itself, and scrolls as any output does.
 */
import { styleText } from "node:util";
import { isWide, type Screen, safeLine, cellWidth } from "../../../terminal.ts";

export type Style = Extract<Parameters<typeof styleText>[0], readonly unknown[]>;

/** Text in one look. */
export interface Part {
  readonly text: string;
  readonly style: Style;
  /** The text where the terminal has no colours. Absent: the same. */
  readonly plain?: string;
}

/** Text in a look, if the terminal has colours. The text must be safe for a terminal. */
export const paint = ({ hasColours }: Screen, style: Style, text: string): string =>
  hasColours && style.length > 0 && text !== "" ? styleText(style, text, { validateStream: false }) : text;

/** A row keeps this many cells, however far its text is indented. */
const ROOM_MIN = 12;

export class Flow {
  readonly #screen: Screen;
  #column = 0;
  /** What the rows below the first one of a line begin with. */
  #hang = "";
  /** The blanks before the next word. */
  #gap = 0;

  constructor(screen: Screen) {
    this.#screen = screen;
  }

  /** Whether something stands in the present row. */
  get isWithin(): boolean {
    return this.#column > 0;
  }

  /** Begins a line. @param lead what stands before it @param hang what stands before its further rows, without colours */
  begin(lead: Part, hang: string): void {
    this.#hang = hang;
    this.#gap = 0;
    this.#put(lead.style, lead.text);
  }

  /** Writes words. A word must not go on in the next call, but the parts of one call may share words. */
  words(parts: readonly Part[]): void {
    let word: Part[] = [];
    const flush = (): void => {
      this.#word(word);
      word = [];
    };
    for (const { text, style, plain = text } of parts)
      for (const piece of (this.#screen.hasColours ? text : plain).split(/(\s+)/)) {
        if (piece.trim() === "") {
          if (piece === "") continue;
          flush();
          this.#gap = this.#column > cellWidth(this.#hang) ? 1 : this.#gap;
          continue;
        }
        for (const bit of splitWide(piece)) {
          if (isWide(bit)) flush();
          word.push({ text: bit, style });
          if (isWide(bit)) flush();
        }
      }
    flush();
  }

  /** Writes text that is not broken into rows, such as code. */
  code(text: string, style: Style): void {
    this.#put(style, text.replaceAll("\t", "    "));
  }

  /** Ends the row, if something stands in it. */
  end(): void {
    if (this.#column > 0) this.#screen.write("\n");
    this.moved();
  }

  /** The cursor stands at the beginning of a row. */
  moved(): void {
    this.#column = 0;
    this.#gap = 0;
  }

  blank(): void {
    this.end();
    this.#screen.write("\n");
  }

  #word(word: readonly Part[]): void {
    if (word.length === 0) return;
    const wide = word.reduce((sum, { text }) => sum + cellWidth(safeLine(text)), 0);
    // The last cell stays empty: some terminals go to the next row as soon as it is full.
    const end = Math.max(this.#screen.columns() - 1, cellWidth(this.#hang) + ROOM_MIN);
    if (this.#column === 0) this.#put([], this.#hang);
    else if (this.#column + this.#gap + wide > end && this.#column > cellWidth(this.#hang)) {
      this.#screen.write("\n");
      this.#column = 0;
      this.#put([], this.#hang);
    } else this.#put([], " ".repeat(this.#gap));
    this.#gap = 0;
    for (const { text, style } of word) this.#put(style, text);
  }

  #put(style: Style, text: string): void {
    const printable = safeLine(text);
    this.#screen.write(paint(this.#screen, style, printable));
    this.#column += cellWidth(printable);
  }
}

/** Each wide character by itself, because a row may end after it, and what stands between them. */
const splitWide = (word: string): readonly string[] => {
  // oxlint-disable-next-line no-control-regex -- the characters that every terminal shows in one cell
  if (/^[\u0000-\u02ff]*$/.test(word)) return [word];
  const bits: string[] = [];
  for (const character of word) {
    const last = bits.at(-1);
    if (last === undefined || isWide(character) || isWide(last)) bits.push(character);
    else bits[bits.length - 1] = last + character;
  }
  return bits;
};
