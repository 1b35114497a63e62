/** A box in which a reader writes. The tab keeps the text until it is sent. */
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { perform } from "../frame/app.ts";
import { useFocusKept } from "../conversation/focus.ts";
import { keep, readKept } from "../frame/kept.ts";

interface Way {
  readonly label: string;
  readonly isPrimary?: boolean;
  /** Whether it may be sent without a text. */
  readonly isBare?: boolean;
  readonly send: (text: string) => Promise<void>;
}

interface BoxParts {
  /** Of the kept text. */
  readonly name: string;
  readonly label: string;
  /** What stands in it at first. */
  readonly first?: string;
  /** The first is what Ctrl and Enter do. */
  readonly ways: readonly Way[];
  /** Without it, the box stays. With it, the box has the focus as soon as it is shown. */
  readonly onCancel?: () => void;
}

export const WriteBox = ({ name, label, first = "", ways, onCancel }: BoxParts) => {
  const id = useId();
  const form = useRef<HTMLFormElement>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useState<string>(() => readKept(name) ?? first);
  const canLeave = onCancel !== undefined;
  useFocusKept(form);
  useEffect(() => {
    if (canLeave) field.current?.focus();
  }, [canLeave]);
  const write = (next: string): void => {
    keep(name, next === first ? null : next);
    setText(next);
  };
  const isEmpty = text.trim() === "";
  const send = (way: Way | undefined): void => {
    if (way === undefined || (isEmpty && way.isBare !== true)) {
      field.current?.focus();
      return;
    }
    void perform(async () => {
      await way.send(text.trim());
      write(first);
    });
  };
  const cancel = (): void => {
    write(first);
    onCancel?.();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send(ways[0]);
    else if (event.key === "Escape" && text === first && onCancel !== undefined) cancel();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <form ref={form} className="comment-form" onSubmit={(event) => event.preventDefault()}>
      <label htmlFor={id}>{label}</label>
      <textarea
        ref={field}
        id={id}
        rows={3}
        dir="auto"
        value={text}
        onChange={({ target }) => write(target.value)}
        onKeyDown={onKeyDown}
      />
      <p className="actions">
        {ways.map((way) => (
          <button
            key={way.label}
            type="button"
            className={way.isPrimary === true ? "primary" : undefined}
            aria-disabled={isEmpty && way.isBare !== true}
            onClick={() => send(way)}
          >
            {way.label}
          </button>
        ))}
        {onCancel !== undefined && (
          <button type="button" className="plain" onClick={cancel}>
            Cancel
          </button>
        )}
      </p>
    </form>
  );
};
