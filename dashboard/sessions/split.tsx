/** The two columns of the page: left what is said, right the panel, between them the line that sets how wide they are. */
import { type KeyboardEvent, type PointerEvent, type ReactNode, useRef } from "react";
import { type Place, WIDTH } from "./place.ts";

/** By one press of an arrow key, in percent. */
const STEP = 2;

/** How much wider the panel becomes by a key. Null: the key has no effect. */
const widthAfter = (key: string, width: number): number | null =>
  ({
    ArrowLeft: width + STEP,
    ArrowRight: width - STEP,
    Home: WIDTH.least,
    End: WIDTH.most,
  })[key] ?? null;

const Separator = ({ place: { width, resize } }: { readonly place: Place }) => {
  const line = useRef<HTMLDivElement>(null);
  const pressed = (event: KeyboardEvent): void => {
    const next = widthAfter(event.key, width);
    if (next === null) return;
    event.preventDefault();
    resize(next);
  };
  const moved = ({ clientX, pointerId }: PointerEvent): void => {
    const box = line.current?.parentElement?.getBoundingClientRect();
    if (box === undefined || line.current?.hasPointerCapture(pointerId) !== true) return;
    resize(Math.round(((box.right - clientX) / box.width) * 1000) / 10);
  };
  return (
    <div
      ref={line}
      role="separator"
      className="separator"
      tabIndex={0}
      aria-orientation="vertical"
      aria-label="Width of the panel"
      aria-controls="session-panel"
      aria-valuenow={Math.round(width)}
      aria-valuemin={WIDTH.least}
      aria-valuemax={WIDTH.most}
      title="Drag, or use the arrow keys"
      onKeyDown={pressed}
      onPointerDown={({ pointerId }) => line.current?.setPointerCapture(pointerId)}
      onPointerMove={moved}
    />
  );
};

interface Columns {
  readonly place: Place;
  readonly left: ReactNode;
  readonly panel: ReactNode;
}

export const Split = ({ place, left, panel }: Columns) => {
  const { isNarrow, tab, width } = place;
  return (
    <div
      className="columns-of-session"
      style={isNarrow ? {} : ({ "--panel": `${String(width)}%` } as object)}
    >
      <div className="talk-column" hidden={isNarrow && tab !== null}>
        {left}
      </div>
      {!isNarrow && tab !== null && <Separator place={place} />}
      {panel}
    </div>
  );
};
