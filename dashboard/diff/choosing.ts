/**
 * How a reader chooses lines of one file: by a click or a tap, with Shift also a second one, by drawing over the numbers with a mouse
 * or a finger, and with the arrow keys, Shift and Enter. Selecting text chooses nothing.
 */
import { type KeyboardEvent, type MouseEvent, type PointerEvent, useRef, useState } from "react";

/** Indices into the file's lines. `to` may come first. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

export const isWithin = ({ from, to }: Range, at: number): boolean =>
  at >= Math.min(from, to) && at <= Math.max(from, to);

const LINE = "[data-at]";

const lineAt = (target: EventTarget | null): HTMLElement | null =>
  target instanceof Element ? target.closest<HTMLElement>(LINE) : null;

const indexOf = (line: HTMLElement): number => Number(line.dataset["at"]);

/** The column of a line, of the lines as a whole, or null: elsewhere. */
const columnOf = (element: Element): string | null => {
  const column = element.closest<HTMLElement>(".numbered");
  return column === null ? null : (column.dataset["side"] ?? "");
};

/** The line to which an arrow key leads: from the lines as a whole to the first, and from line to line of the same column. */
const neighbour = (place: Element, from: Element, key: string): HTMLElement | null => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[key] ?? 0;
  if (step === 0) return null;
  const column = columnOf(from);
  const whole = from.matches(LINE) ? place : from;
  const lines = [...whole.querySelectorAll<HTMLElement>(LINE)].filter((line) => columnOf(line) === column);
  return lines[lines.findIndex((line) => line === from) + step] ?? null;
};

/** @param chose called with what the reader chose */
export const useChoosing = (chose: (range: Range) => void) => {
  const place = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState<Range | null>(null);
  /** Where the reader began: with a finger or a mouse, or at the last line that was chosen. */
  const anchor = useRef<number | null>(null);
  /** The range that is being drawn. The state may be that of the last drawing of the page. */
  const drawn = useRef<Range | null>(null);

  const draw = (next: Range): void => {
    drawn.current = next;
    setRange(next);
  };

  const end = (chosen: Range): void => {
    anchor.current = chosen.from;
    setRange(null);
    chose(chosen);
  };
  const onPointerDown = (event: PointerEvent): void => {
    const line = lineAt(event.target);
    if (line === null || event.button !== 0 || !(event.target as Element).matches(".gutter")) return;
    // No text is selected, and the end is heard wherever the pointer is.
    event.preventDefault();
    (event.target as Element).setPointerCapture(event.pointerId);
    if (!event.shiftKey || anchor.current === null) anchor.current = indexOf(line);
    draw({ from: anchor.current, to: indexOf(line) });
  };
  const onPointerMove = ({ clientX, clientY }: PointerEvent): void => {
    if (drawn.current === null) return;
    const line = lineAt(document.elementFromPoint(clientX, clientY));
    if (line !== null && place.current?.contains(line) === true)
      draw({ from: drawn.current.from, to: indexOf(line) });
  };
  const onPointerUp = (): void => {
    const { current } = drawn;
    drawn.current = null;
    if (current !== null) end(current);
  };
  const onPointerCancel = (): void => {
    drawn.current = null;
    setRange(null);
  };
  const onClick = (event: MouseEvent): void => {
    const line = lineAt(event.target);
    if (line === null || (event.target as Element).matches(".gutter")) return;
    if (getSelection()?.isCollapsed === false && !event.shiftKey) return;
    getSelection()?.removeAllRanges();
    const from = event.shiftKey ? (anchor.current ?? indexOf(line)) : indexOf(line);
    end({ from, to: indexOf(line) });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const { target, key, shiftKey: isExtending } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || place.current === null) return;
    if (!(target instanceof HTMLElement && target.matches(`${LINE}, .numbered`))) return;
    const line = target.matches(LINE) ? target : null;
    if (key === "Enter" && line !== null) {
      event.preventDefault();
      const at = indexOf(line);
      end(range !== null && isWithin(range, at) ? range : { from: at, to: at });
      return;
    }
    const next = neighbour(place.current, target, key);
    if (next === null) return;
    event.preventDefault();
    next.focus();
    const from = range?.from ?? (line === null ? indexOf(next) : indexOf(line));
    setRange(isExtending ? { from, to: indexOf(next) } : null);
  };
  return {
    range,
    /** For the element that has the lines. */
    events: { ref: place, onPointerDown, onPointerMove, onPointerUp, onPointerCancel, onClick, onKeyDown },
  };
};
