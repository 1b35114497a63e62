/** Forms: their fields, what the service refuses about them, and how they are sent. */
import {
  createContext,
  type ReactNode,
  type RefObject,
  useContext,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { ApiError } from "../api/api.ts";
import { perform } from "../frame/app.ts";
import { EDGES, SECRET_LINES } from "../frame/dialog.ts";
import { keep, readKept } from "../frame/kept.ts";
import { lackedRole } from "../frame/roles.ts";
import { Callout, Prose } from "./parts.tsx";

/** What the service says about single fields, by their name in the API. */
type Issues = ReadonlyMap<string, string>;

const NO_ISSUES: Issues = new Map();
const FormIssues = createContext(NO_ISSUES);

export interface Refusal {
  readonly message: string;
  readonly issues: Issues;
}

export const toRefusal = (error: unknown): Refusal => {
  const details = error instanceof ApiError ? error.details : undefined;
  const issues: readonly { path: string; message: string }[] = details?.issues ?? [];
  return {
    message: error instanceof Error ? error.message : String(error),
    issues: new Map(issues.map(({ path, message }) => [path, message])),
  };
};

/** A refusal goes as soon as the reader corrects the field that it is about. */
const without = ({ message, issues }: Refusal, name: string): Refusal | null => {
  if (!issues.has(name)) return { message, issues };
  const others = new Map([...issues].filter(([path]) => path !== name));
  return others.size === 0 ? null : { message, issues: others };
};

/** The service names fields as programs do. Fields of the form are marked, and the others are listed. */
export const Problem = ({
  refusal: { message, issues },
  names,
}: {
  readonly refusal: Refusal;
  readonly names: ReadonlySet<string>;
}) => {
  const others = [...issues].filter(([path]) => !names.has(path));
  const isMarked = issues.size > 0 && others.length === 0;
  return (
    <div role="alert">
      <Callout tone="bad">
        <p>{isMarked ? "Correct what is marked." : <Prose text={message} />}</p>
        {others.length > 0 && (
          <ul>
            {others.map(([path, issue]) => (
              <li key={path}>
                <code>{path}</code> <Prose text={issue} />
              </li>
            ))}
          </ul>
        )}
      </Callout>
    </div>
  );
};

/** Secrets and texts of several lines stay as typed. */
const isExact = (input: unknown): boolean =>
  input instanceof HTMLTextAreaElement || (input instanceof HTMLInputElement && input.type === "password");

/** What is typed, by the fields' names. */
export const typedIn = (form: HTMLFormElement): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...new FormData(form)].flatMap(([name, value]) => {
      if (typeof value !== "string") return [];
      return [[name, isExact(form.elements.namedItem(name)) ? value : value.trim()]];
    }),
  );

/** The entries that are not empty. */
export const given = (entries: Readonly<Record<string, string | undefined>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(entries).flatMap(([name, value]) =>
      value === undefined || value === "" ? [] : [[name, value]],
    ),
  );

/** The fields that the reader sees. Those of a closed group cannot be marked. */
const namesIn = ({ current }: RefObject<HTMLFormElement | null>): ReadonlySet<string> =>
  new Set(
    [...(current?.elements ?? [])].flatMap((input) =>
      input.closest("details:not([open])") === null ? [input.getAttribute("name") ?? ""] : [],
    ),
  );

interface Form {
  /** One of roles.ts. A reader who lacks the role that it needs is told so. */
  readonly entry?: string;
  /** The button's label, and its label until the answer arrives. */
  readonly submit: string;
  readonly sending: string;
  /** Whether that deletes something. The button shows it. */
  readonly danger?: boolean;
  /** The label of a second button, which sends the form in another way. */
  readonly other?: string | undefined;
  /** What is wrong so far, by field, before the form is sent. */
  readonly noted?: Issues;
  /** Once it is done, the form is empty again. A refusal is shown in the form, and everything typed stays. @param isOther the second button was pressed */
  readonly onSend: (typed: Readonly<Record<string, string>>, isOther: boolean) => Promise<void>;
  /** The reader is done with a field that she changed. */
  readonly onEdit?: (form: HTMLFormElement) => void;
  /** At each key, and at each choice. */
  readonly onWrite?: () => void;
  /** The name under which the tab keeps the texts that are typed until the form is sent, except for secrets. */
  readonly keeps?: string;
  readonly children: ReactNode;
}

/** React's own `onChange` tells of each key. */
const useEdits = (form: RefObject<HTMLFormElement | null>, onEdit: Form["onEdit"]): void => {
  useEffect(() => {
    const { current } = form;
    if (current === null || onEdit === undefined) return undefined;
    const heard = (): void => onEdit(current);
    current.addEventListener("change", heard);
    return () => current.removeEventListener("change", heard);
  }, [form, onEdit]);
};

/** Drafts with a text that the service refused because of a secret. They are not kept until the page is loaded again. */
const secretive = new Set<string>();

type Text = HTMLInputElement | HTMLTextAreaElement;

const isText = (input: unknown): input is Text =>
  input instanceof HTMLTextAreaElement ||
  (input instanceof HTMLInputElement && !["password", "file", "checkbox"].includes(input.type));

/** Another page may keep other fields in the same draft. */
const keepTyped = (name: string, form: HTMLFormElement): void => {
  if (secretive.has(name)) return;
  const texts = [...form.elements].filter(
    (input) => isText(input) && input.closest(".masked") === null,
  ) as Text[];
  keep(name, { ...readKept(name), ...Object.fromEntries(texts.map((input) => [input.name, input.value])) });
};

/** Shows what the tab keeps, and opens the groups that have some of it: the reader would send it. */
const useKept = (form: RefObject<HTMLFormElement | null>, keeps: string | undefined): void => {
  useLayoutEffect(() => {
    if (keeps === undefined) return;
    for (const [name, text] of Object.entries(readKept(keeps) ?? {})) {
      const input = form.current?.elements.namedItem(name) ?? null;
      if (!isText(input) || typeof text !== "string" || text === "") continue;
      input.value = text;
      input.closest("details")?.setAttribute("open", "");
    }
  }, [form, keeps]);
};

/** How a form is sent: what the service refuses, and whether its answer is awaited. */
const useSending = ({ onSend, keeps }: Pick<Form, "onSend" | "keeps">) => {
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [isSending, setSending] = useState(false);
  const send = async (form: HTMLFormElement, isOther: boolean): Promise<void> => {
    setSending(true);
    setRefusal(null);
    try {
      await onSend(typedIn(form), isOther);
      if (keeps !== undefined) keep(keeps, null);
      form.reset();
    } catch (error) {
      // The frame shows the sign-in.
      if (error instanceof ApiError && error.status === 401) throw error;
      if (keeps !== undefined && error instanceof ApiError && error.code === "secret_in_message") {
        secretive.add(keeps);
        keep(keeps, null);
      }
      setRefusal(toRefusal(error));
    } finally {
      setSending(false);
    }
  };
  return {
    refusal,
    isSending,
    send: (form: HTMLFormElement, isOther: boolean): void => {
      if (!isSending) void perform(() => send(form, isOther));
    },
    /** The reader corrects a field. */
    correct: (name: string): void =>
      setRefusal((present) => (present === null ? null : without(present, name))),
  };
};

const OpenForm = ({
  submit,
  sending,
  danger = false,
  other,
  noted = NO_ISSUES,
  children,
  ...own
}: Omit<Form, "entry">) => {
  const { onEdit, onWrite, keeps } = own;
  const form = useRef<HTMLFormElement>(null);
  const { refusal, isSending, send, correct } = useSending(own);
  useEdits(form, onEdit);
  useKept(form, keeps);
  return (
    <FormIssues value={new Map([...noted, ...(refusal?.issues ?? [])])}>
      <form
        ref={form}
        className="form"
        onInput={({ target, currentTarget }) => {
          correct("name" in target ? String(target.name) : "");
          if (keeps !== undefined) keepTyped(keeps, currentTarget);
          onWrite?.();
        }}
        onSubmit={(event) => {
          event.preventDefault();
          const { currentTarget, nativeEvent } = event;
          const { submitter = null } = nativeEvent as SubmitEvent;
          send(currentTarget, submitter?.dataset["other"] === "yes");
        }}
      >
        {children}
        {refusal !== null && <Problem refusal={refusal} names={namesIn(form)} />}
        <p className="actions">
          {/* It is not disabled while the answer is awaited, because it would lose the focus. */}
          <button type="submit" className={danger ? "danger" : "primary"} aria-disabled={isSending}>
            {isSending ? sending : submit}
          </button>
          {other !== undefined && (
            <button type="submit" data-other="yes" aria-disabled={isSending}>
              {other}
            </button>
          )}
        </p>
      </form>
    </FormIssues>
  );
};

export const Form = ({ entry, ...form }: Form) => {
  const lacked = entry === undefined ? null : lackedRole(entry);
  return lacked === null ? (
    <OpenForm {...form} />
  ) : (
    <p className="quiet">{`This needs the role ${lacked} in the project.`}</p>
  );
};

interface Field {
  readonly name: string;
  readonly label: string;
  /** What it is for. */
  readonly hint?: string;
}

export interface Described {
  readonly id: string;
  readonly name: string;
  readonly "aria-invalid": boolean | undefined;
  readonly "aria-describedby": string | undefined;
}

interface Framed extends Field {
  /** Makes the input itself. */
  readonly input: (own: Described) => ReactNode;
  /** The label stands after the input. */
  readonly isCheck?: boolean;
}

/** A field with its label, its hint and its issue. */
export const FieldFrame = ({ name, label: words, hint, input, isCheck = false }: Framed) => {
  const id = useId();
  const issue = useContext(FormIssues).get(name);
  const notes = [hint !== undefined && `${id}-hint`, issue !== undefined && `${id}-issue`].filter(Boolean);
  const label = <label htmlFor={id}>{words}</label>;
  const made = input({
    id,
    name,
    "aria-invalid": issue === undefined ? undefined : true,
    "aria-describedby": notes.length === 0 ? undefined : notes.join(" "),
  });
  return (
    <div className="field">
      {isCheck ? (
        <span className="check">
          {made}
          {label}
        </span>
      ) : (
        label
      )}
      {hint !== undefined && (
        <p id={`${id}-hint`} className="quiet">
          <Prose text={hint} />
        </p>
      )}
      {!isCheck && made}
      {issue !== undefined && (
        <p id={`${id}-issue`} className="refusal">
          <Prose text={issue} />
        </p>
      )}
    </div>
  );
};

/** A field whose text the page holds. Without it, the browser does. */
interface Held {
  readonly value?: string;
  /** What the browser's field has at first. */
  readonly initial?: string;
  readonly onWrite?: (text: string) => void;
}

const heldBy = ({ value, initial, onWrite }: Held) =>
  value === undefined
    ? initial === undefined
      ? {}
      : { defaultValue: initial }
    : {
        value,
        onChange: ({ target }: { readonly target: { readonly value: string } }) => onWrite?.(target.value),
      };

interface TextField extends Field, Held {
  readonly required?: boolean;
  readonly type?: "text" | "time" | "number" | "password" | "url";
  /** More than one: a text area. */
  readonly lines?: number;
  /** For names, keys and addresses. */
  readonly mono?: boolean;
  readonly placeholder?: string;
  /** Values, or values with what is said of them. */
  readonly suggestions?: readonly (string | readonly [value: string, label: string])[];
}

const TextInput = ({
  own,
  field: { required = false, type = "text", lines = 1, mono = false, placeholder, suggestions = [], ...held },
}: {
  readonly own: Described;
  readonly field: Omit<TextField, keyof Field>;
}) => {
  const attributes = {
    ...own,
    ...heldBy(held),
    required,
    placeholder,
    className: mono ? "mono" : undefined,
    autoComplete: type === "password" ? "new-password" : "off",
    spellCheck: lines > 1 && !mono,
  };
  if (lines > 1) return <textarea {...attributes} rows={lines} />;
  const list = suggestions.length === 0 ? undefined : `${own.id}-list`;
  return (
    <>
      <input {...attributes} type={type} list={list} />
      {list !== undefined && (
        <datalist id={list}>
          {suggestions.map((suggestion) => {
            const [value, said] = typeof suggestion === "string" ? [suggestion] : suggestion;
            return <option key={value} value={value} label={said} />;
          })}
        </datalist>
      )}
    </>
  );
};

export const TextField = ({ name, label, hint, ...field }: TextField) => (
  <FieldFrame
    name={name}
    label={label}
    {...(hint !== undefined && { hint })}
    input={(own) => <TextInput own={own} field={field} />}
  />
);

type Options = readonly (readonly [value: string, label: string])[];

/** @param options or the menu's own `option` elements as children */
export const SelectField = ({
  options = [],
  children,
  isOff = false,
  name,
  label: words,
  hint,
  ...held
}: Field &
  Held & { readonly options?: Options; readonly children?: ReactNode; readonly isOff?: boolean }) => (
  <FieldFrame
    name={name}
    label={words}
    {...(hint !== undefined && { hint })}
    input={(own) => (
      <select {...own} {...heldBy(held)} disabled={isOff}>
        {options.map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
        {children}
      </select>
    )}
  />
);

/** A text of several lines that is not shown until the reader wishes it. The page holds it, so that it arrives exactly as it was typed. */
export const SecretField = ({
  value,
  onWrite,
  required,
  ...field
}: Field & {
  readonly required?: boolean;
  readonly value: string;
  readonly onWrite: (text: string) => void;
}) => (
  <FieldFrame
    {...field}
    input={(own) => (
      <div className="masked">
        <textarea
          {...own}
          {...heldBy({ value, onWrite })}
          rows={SECRET_LINES}
          required={required}
          autoComplete="off"
          spellCheck={false}
          className="mono"
        />
        {/* Behind the text, so that Tab comes to the text first. */}
        <input type="checkbox" id={`${own.id}-show`} />
        <label htmlFor={`${own.id}-show`}>Show</label>
        {/* A masked text does not show its edges, and a value that is copied often brings a line break. */}
        <p className="quiet" role="status">
          {value.trim() !== "" && value.trim() !== value && EDGES}
        </p>
      </div>
    )}
  />
);

/** What is typed has its name with `yes` where it is ticked, and no such name where it is not. */
export const CheckField = ({ isTicked, ...field }: Field & { readonly isTicked?: boolean }) => (
  <FieldFrame
    {...field}
    isCheck
    input={(own) => <input {...own} type="checkbox" value="yes" defaultChecked={isTicked} />}
  />
);

/** Files. What is typed does not have them. */
export const FileField = ({
  onChoose,
  ...field
}: Field & { readonly onChoose: (files: readonly File[]) => void }) => (
  <FieldFrame
    {...field}
    input={(own) => (
      <input {...own} type="file" multiple onChange={({ target }) => onChoose([...(target.files ?? [])])} />
    )}
  />
);

/** Fields behind a line that opens them. */
export const FieldGroup = ({
  title,
  isOpen,
  children,
}: {
  readonly title: string;
  /** At first. */
  readonly isOpen?: boolean;
  readonly children: ReactNode;
}) => (
  <details className="group" open={isOpen}>
    <summary>{title}</summary>
    {children}
  </details>
);
