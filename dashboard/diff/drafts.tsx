/** Comments that a reader writes and has not sent yet. The tab keeps them, so that a reload or a way through other pages loses none. */
import { type KeyboardEvent, useEffect, useId, useLayoutEffect, useRef, useState } from "react";
import { perform } from "../frame/app.ts";
import { keep, readKept } from "../frame/kept.ts";
import type { PlacedNote } from "./diff.tsx";
import { type Place, placeKey, placeWords } from "./place.ts";

export interface Draft {
  readonly place: Place;
  /** The text of the lines. */
  readonly quote: string;
  readonly text: string;
}

/** @param name of what is reviewed */
export const useDrafts = (name: string) => {
  const [drafts, setDrafts] = useState<readonly Draft[]>(() => readKept(name) ?? []);
  /** Which one gets the focus, once for each time that the reader begins it. */
  const [begun, setBegun] = useState({ key: "", times: 0 });
  const change = (next: readonly Draft[]): void => {
    keep(name, next.length === 0 ? null : next);
    setDrafts(next);
  };
  const isAt = (place: Place) => (draft: Draft) => placeKey(draft.place) === placeKey(place);
  return {
    drafts,
    begun,
    /** @param text what it begins with, unless there is one at the place */
    begin: (place: Place, quote: string, text = ""): void => {
      const now: readonly Draft[] = readKept(name) ?? drafts;
      if (!now.some(isAt(place))) change([...now, { place, quote, text }]);
      setBegun(({ times }) => ({ key: placeKey(place), times: times + 1 }));
    },
    /** Keeps what was typed. The form has it already. */
    write: (place: Place, text: string): void => {
      const now: readonly Draft[] = readKept(name) ?? drafts;
      keep(
        name,
        now.map((draft): Draft => (isAt(place)(draft) ? { place, quote: draft.quote, text } : draft)),
      );
    },
    drop: (place: Place): void => {
      const now: readonly Draft[] = readKept(name) ?? drafts;
      change(now.filter((draft) => !isAt(place)(draft)));
    },
  };
};

export type Drafts = ReturnType<typeof useDrafts>;

/** A way to send a comment. */
export interface Way {
  readonly label: string;
  readonly send: (draft: Draft) => Promise<void>;
}

/** The focus goes back to the line above, as long as the form had it. */
const useFocusBack = () => {
  const form = useRef<HTMLFormElement>(null);
  useLayoutEffect(() => {
    const { current } = form;
    const lines = [...(current?.closest("details")?.querySelectorAll<HTMLElement>("[data-at]") ?? [])];
    const above = lines.findLast(
      (line) => current !== null && line.compareDocumentPosition(current) & Node.DOCUMENT_POSITION_FOLLOWING,
    );
    return () => {
      if (current?.contains(document.activeElement) === true)
        (above ?? document.getElementById("main"))?.focus({ preventScroll: true });
    };
  }, []);
  return form;
};

/** The forms of the drafts, at their places. @param waysAt how a comment there can be sent */
export const draftNotes = (drafts: Drafts, waysAt: (place: Place) => readonly Way[]): readonly PlacedNote[] =>
  drafts.drafts.map((draft) => ({
    key: `draft ${placeKey(draft.place)}`,
    place: draft.place,
    content: <DraftForm draft={draft} drafts={drafts} ways={waysAt(draft.place)} />,
  }));

interface FormParts {
  readonly draft: Draft;
  readonly drafts: Drafts;
  /** The first is the usual one. */
  readonly ways: readonly Way[];
}

const DraftForm = ({ draft: { place, quote, text: first }, drafts, ways }: FormParts) => {
  const id = useId();
  const form = useFocusBack();
  const field = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useState(first);
  const { begun, write, drop } = drafts;
  const times = begun.key === placeKey(place) ? begun.times : 0;
  useEffect(() => {
    if (times > 0) field.current?.focus();
  }, [times]);
  const send = (way: Way | undefined): void => {
    if (way === undefined || text.trim() === "") return;
    void perform(async () => {
      await way.send({ place, quote, text: text.trim() });
      drop(place);
    });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send(ways[0]);
    else if (event.key === "Escape" && text.trim() === "") drop(place);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <form
      ref={form}
      className="comment-form"
      onSubmit={(event) => {
        event.preventDefault();
        send(ways[0]);
      }}
    >
      <label htmlFor={id}>{`Comment on ${placeWords(place)}`}</label>
      <textarea
        ref={field}
        id={id}
        rows={3}
        dir="auto"
        value={text}
        onChange={({ target }) => {
          setText(target.value);
          write(place, target.value);
        }}
        onKeyDown={onKeyDown}
      />
      <p className="actions">
        {ways.map((way, at) => (
          <button
            key={way.label}
            type={at === 0 ? "submit" : "button"}
            className={at === 0 ? "primary" : undefined}
            aria-disabled={text.trim() === ""}
            onClick={at === 0 ? undefined : () => send(way)}
          >
            {way.label}
          </button>
        ))}
        <button type="button" className="plain" onClick={() => drop(place)}>
          Cancel
        </button>
      </p>
    </form>
  );
};
