/** What every composer has: a form that takes dropped files, and a text area that grows and takes pasted ones. */
import {
  type ClipboardEvent,
  type ComponentProps,
  type DragEvent,
  type KeyboardEvent,
  type ReactNode,
  type RefObject,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { withCopies } from "./pictures.ts";

type OnAdd = (files: Iterable<File>) => void;

/** Files that a reader chose, dropped or pasted. */
const add = (files: Iterable<File>, onAdd: OnAdd): void => void withCopies(files).then(onAdd);

interface ComposerForm {
  readonly label: string;
  /** Beside `composer`. */
  readonly className?: string;
  readonly isFilled?: boolean;
  readonly onAdd: OnAdd;
  readonly onSubmit: () => void;
  readonly children: ReactNode;
}

export const ComposerForm = ({ label, className, isFilled, onAdd, onSubmit, children }: ComposerForm) => {
  const [isDropping, setDropping] = useState(false);
  const drop = (event: DragEvent): void => {
    setDropping(false);
    if (event.dataTransfer.files.length === 0) return;
    event.preventDefault();
    add(event.dataTransfer.files, onAdd);
  };
  return (
    <form
      className={["composer", className, isDropping && "dropping"].filter(Boolean).join(" ")}
      aria-label={label}
      data-filled={isFilled}
      onDragOver={(event) => {
        if (!event.dataTransfer.types.includes("Files")) return;
        event.preventDefault();
        setDropping(true);
      }}
      onDragLeave={() => setDropping(false)}
      onDrop={drop}
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit();
      }}
    >
      {children}
    </form>
  );
};

/** Most browsers do it by the style sheet, and lay the page out once for a key, not twice. */
const growsByItself = CSS.supports("field-sizing", "content");

/** As high as its text, up to the limit in style.css. One that is not shown has no height. */
const grow = (area: HTMLTextAreaElement): void => {
  area.style.height = "auto";
  if (area.scrollHeight > 0) area.style.height = `${area.scrollHeight}px`;
};

interface GrowingArea extends ComponentProps<"textarea"> {
  readonly area: RefObject<HTMLTextAreaElement | null>;
  readonly value: string;
  readonly onAdd: OnAdd;
}

export const GrowingArea = ({ area, value, onAdd, ...attributes }: GrowingArea) => {
  useLayoutEffect(() => {
    if (!growsByItself && area.current !== null) grow(area.current);
  }, [area, value]);
  const paste = (event: ClipboardEvent): void => {
    const pasted = [...event.clipboardData.files];
    if (pasted.length === 0) return;
    event.preventDefault();
    add(pasted, onAdd);
  };
  return <textarea ref={area} className="growing" rows={1} value={value} onPaste={paste} {...attributes} />;
};

/** On a phone, the key for a new line is Enter. */
const isPhone = (): boolean => matchMedia("(max-width: 40rem) and (pointer: coarse)").matches;

export const enterKeyHint = (): "enter" | "send" => (isPhone() ? "enter" : "send");

/** Whether a key sends what is written. While an input method composes a character, the keys are its own. */
export const isSendKey = ({ key, shiftKey, ctrlKey, metaKey, nativeEvent }: KeyboardEvent): boolean =>
  key === "Enter" && !shiftKey && !nativeEvent.isComposing && (ctrlKey || metaKey || !isPhone());

/** Stands before the button that sends. @param id the text area is described by it */
export const SendKeys = ({ id }: { readonly id: string }) => {
  const words = isPhone() ? "The button sends." : "Enter sends. Shift and Enter begin a new line.";
  return (
    <>
      <span id={id} className="unseen">
        {words}
      </span>
      {!isPhone() && (
        <span className="send-keys quiet" aria-hidden="true" title={words}>
          <kbd>Enter</kbd> sends
        </span>
      )}
    </>
  );
};

interface AttachButton extends Pick<ComponentProps<"button">, "ref" | "className"> {
  readonly onAdd: OnAdd;
}

/** In a narrow window it is a sign. */
export const AttachButton = ({ onAdd, ref, className = "" }: AttachButton) => {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button
        ref={ref}
        type="button"
        className={`attach ${className}`}
        title="Attach files"
        aria-label="Attach files"
        onClick={() => input.current?.click()}
      >
        <span className="word">Attach</span>
        <span className="sign">+</span>
      </button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        tabIndex={-1}
        aria-hidden="true"
        onChange={({ target }) => {
          add(target.files ?? [], onAdd);
          target.value = "";
        }}
      />
    </>
  );
};

export interface FileChip {
  readonly key: string | number;
  readonly name: string;
  /** Its size, or how far it is. */
  readonly state: string;
  readonly problem: string | null;
}

export const FileChips = ({
  files,
  onRemove,
}: {
  readonly files: readonly FileChip[];
  readonly onRemove: (key: FileChip["key"]) => void;
}) =>
  files.length > 0 && (
    <ul className="chips" aria-label="Attached files">
      {files.map(({ key, name, state, problem }) => (
        <li key={key} className={problem === null ? "chip" : "chip bad"}>
          <span className="chip-name" title={name}>
            {name}
          </span>{" "}
          {problem === null ? <span className="quiet">{state}</span> : <span role="alert">{problem}</span>}{" "}
          <button type="button" className="plain" aria-label={`Remove ${name}`} onClick={() => onRemove(key)}>
            ✕
          </button>
        </li>
      ))}
    </ul>
  );
