/** The menu at a composer's text area. The focus stays in the text, and so do the keys that the menu has no use for. */
import {
  type ChangeEvent,
  type ComponentProps,
  type KeyboardEvent,
  useId,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { GrowingArea } from "./area.tsx";
import { type Offer, type Row, taken, tokenAt } from "./completion.ts";

/** Where a person typed last. It counts while the text is the same, and the caret there. */
interface Place {
  readonly text: string;
  readonly caret: number;
  /** The number of the chosen row. */
  readonly active: number;
  /** Where the token begins whose menu was closed. */
  readonly closed: number | null;
}

/** What is typed and may be completed. @param text of the area */
export const useTyping = (text: string) => {
  const [place, setPlace] = useState<Place | null>(null);
  const found = place?.text === text ? tokenAt(text, place.caret) : null;
  const token = found !== null && found.begin !== place?.closed ? found : null;
  return {
    /** Null: there is no menu. */
    token,
    active: place?.active ?? 0,
    typed: (typed: string, caret: number): void =>
      setPlace((before) => {
        const begin = tokenAt(typed, caret)?.begin;
        const closed = begin !== undefined && begin === before?.closed ? begin : null;
        return { text: typed, caret, active: 0, closed };
      }),
    choose: (active: number): void => setPlace((before) => before && { ...before, active }),
    close: (): void => setPlace((before) => before && { ...before, closed: token?.begin ?? null }),
    /** The caret is elsewhere. */
    left: (caret: number | null): void =>
      setPlace((before) => (before !== null && before.caret === caret ? before : null)),
  };
};

type Typing = ReturnType<typeof useTyping>;

/** Shows the caret where a row put it, as soon as the text is shown. */
const useCaret = (area: CompletingArea["area"]) => {
  const wanted = useRef<number | null>(null);
  useLayoutEffect(() => {
    if (wanted.current !== null) area.current?.setSelectionRange(wanted.current, wanted.current);
    wanted.current = null;
  });
  return wanted;
};

const MOVES: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 };

interface MenuParts {
  readonly id: string;
  readonly offer: Offer;
  readonly active: number;
  readonly onTake: (row: Row) => void;
}

const Menu = ({ id, offer: { label, rows, note }, active, onTake }: MenuParts) => {
  const list = useRef<HTMLUListElement>(null);
  useLayoutEffect(() => {
    list.current?.children[active]?.scrollIntoView({ block: "nearest" });
  }, [active, rows]);
  return (
    // A press must not take the focus from the text.
    <div className="completion" onMouseDown={(event) => event.preventDefault()}>
      {rows.length > 0 && (
        // Browsers and checkers want to reach what scrolls.
        <ul ref={list} id={id} role="listbox" aria-label={label} tabIndex={0}>
          {rows.map((row, at) => (
            <li
              key={row.writes}
              id={`${id}-${at}`}
              role="option"
              aria-selected={at === active}
              onClick={() => onTake(row)}
            >
              <span className="completion-name" title={row.name}>
                {row.name}
              </span>
              <span className="completion-about" title={row.about}>
                {row.about}
              </span>
            </li>
          ))}
        </ul>
      )}
      {note !== null && (
        <p className="quiet" role="status">
          {note}
        </p>
      )}
    </div>
  );
};

interface CompletingArea extends Omit<ComponentProps<typeof GrowingArea>, "onChange"> {
  readonly typing: Typing;
  /** For the token. Null: nothing fits. */
  readonly offer: Offer | null;
  readonly write: (text: string) => void;
}

/** A text area with a menu. `onKeyDown` gets the keys that the menu does not take. */
export const CompletingArea = ({ typing, offer, write, onKeyDown, ...area }: CompletingArea) => {
  const id = useId();
  const caret = useCaret(area.area);
  const { token } = typing;
  const rows = offer?.rows ?? [];
  const active = typing.active < rows.length ? typing.active : 0;
  const take = (row: Row): void => {
    if (token === null) return;
    const next = taken(area.value, token, row);
    caret.current = next.caret;
    write(next.text);
    if (row.goesOn) typing.typed(next.text, next.caret);
    else typing.left(null);
  };
  /** @returns whether the key is the menu's */
  const pressed = (event: KeyboardEvent): boolean => {
    const { key, shiftKey, ctrlKey, metaKey, altKey, nativeEvent } = event;
    if (offer === null || nativeEvent.isComposing || shiftKey || ctrlKey || metaKey || altKey) return false;
    const row = rows[active];
    const move = MOVES[key];
    if (key === "Escape") typing.close();
    else if (row === undefined) return false;
    else if (move !== undefined) typing.choose((active + move + rows.length) % rows.length);
    // The row is written already, so Enter does what it does without a menu.
    else if (key === "Enter" && area.value === row.writes) return false;
    else if (key === "Enter" || key === "Tab") take(row);
    else return false;
    event.preventDefault();
    return true;
  };
  const typed = ({ value, selectionStart }: HTMLTextAreaElement): void => typing.typed(value, selectionStart);
  return (
    <div className="completing">
      <GrowingArea
        {...area}
        aria-autocomplete="list"
        aria-haspopup="listbox"
        aria-controls={rows.length > 0 ? id : undefined}
        aria-activedescendant={rows.length > 0 ? `${id}-${active}` : undefined}
        onChange={({ target, nativeEvent }: ChangeEvent<HTMLTextAreaElement>) => {
          write(target.value);
          if (nativeEvent instanceof InputEvent && nativeEvent.isComposing) typing.left(null);
          else typed(target);
        }}
        onCompositionEnd={({ currentTarget }) => typed(currentTarget)}
        onSelect={({ currentTarget: { selectionStart, selectionEnd } }) =>
          typing.left(selectionStart === selectionEnd ? selectionStart : null)
        }
        onBlur={() => typing.left(null)}
        onKeyDown={(event) => {
          if (!pressed(event)) onKeyDown?.(event);
        }}
      />
      {offer !== null && <Menu id={id} offer={offer} active={active} onTake={take} />}
    </div>
  );
};
