/** Forms: their fields, what the service refuses about them, and how they are sent. */
import { createContext, type ReactNode, type RefObject, useContext, useId, useRef, useState } from "react";
import { ApiError } from "../api/api.ts";
import { perform } from "../frame/app.ts";
import { EDGES, SECRET_LINES } from "../frame/dialog.ts";
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

const typedIn = (form: HTMLFormElement): Readonly<Record<string, string>> =>
  Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value).trim()]));

const namesIn = ({ current }: RefObject<HTMLFormElement | null>): ReadonlySet<string> =>
  new Set(current === null ? [] : new FormData(current).keys());

interface Form {
  /** One of roles.js. A reader who lacks the role that it needs is told so. */
  readonly entry?: string;
  /** The button's label, and its label until the answer arrives. */
  readonly submit: string;
  readonly sending: string;
  /** The label of a second button, which sends the form in another way. */
  readonly other?: string | undefined;
  /** What is wrong so far, by field, before the form is sent. */
  readonly noted?: Issues;
  /** Once it is done, the form is empty again. A refusal is shown in the form, and everything typed stays. @param isOther the second button was pressed */
  readonly onSend: (typed: Readonly<Record<string, string>>, isOther: boolean) => Promise<void>;
  readonly children: ReactNode;
}

const OpenForm = ({ submit, sending, other, noted = NO_ISSUES, onSend, children }: Omit<Form, "entry">) => {
  const form = useRef<HTMLFormElement>(null);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [isSending, setSending] = useState(false);
  const send = async (element: HTMLFormElement, isOther: boolean): Promise<void> => {
    setSending(true);
    setRefusal(null);
    try {
      await onSend(typedIn(element), isOther);
      element.reset();
    } catch (error) {
      // The frame shows the sign-in.
      if (error instanceof ApiError && error.status === 401) throw error;
      setRefusal(toRefusal(error));
    } finally {
      setSending(false);
    }
  };
  return (
    <FormIssues value={new Map([...noted, ...(refusal?.issues ?? [])])}>
      <form
        ref={form}
        className="form"
        onInput={({ target }) => {
          const name = "name" in target ? String(target.name) : "";
          setRefusal((present) => (present === null ? null : without(present, name)));
        }}
        onSubmit={(event) => {
          event.preventDefault();
          const { currentTarget, nativeEvent } = event;
          const { submitter = null } = nativeEvent as SubmitEvent;
          const isOther = submitter?.dataset["other"] === "yes";
          if (!isSending) void perform(() => send(currentTarget, isOther));
        }}
      >
        {children}
        {refusal !== null && <Problem refusal={refusal} names={namesIn(form)} />}
        <p className="actions">
          {/* It is not disabled while the answer is awaited, because it would lose the focus. */}
          <button type="submit" className="primary" aria-disabled={isSending}>
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

interface Described {
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
const FieldFrame = ({ name, label: words, hint, input, isCheck = false }: Framed) => {
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
  readonly suggestions?: readonly string[];
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
    autoComplete: "off",
    spellCheck: lines > 1 && !mono,
  };
  if (lines > 1) return <textarea {...attributes} rows={lines} />;
  const list = suggestions.length === 0 ? undefined : `${own.id}-list`;
  return (
    <>
      <input {...attributes} type={type} list={list} />
      {list !== undefined && (
        <datalist id={list}>
          {suggestions.map((value) => (
            <option key={value} value={value} />
          ))}
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

export const SelectField = ({
  options,
  name,
  label: words,
  hint,
  ...held
}: Field & Held & { readonly options: Options }) => (
  <FieldFrame
    name={name}
    label={words}
    {...(hint !== undefined && { hint })}
    input={(own) => (
      <select {...own} {...heldBy(held)}>
        {options.map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
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
        <input type="checkbox" id={`${own.id}-show`} />
        <label htmlFor={`${own.id}-show`}>Show</label>
        <textarea
          {...own}
          {...heldBy({ value, onWrite })}
          rows={SECRET_LINES}
          required={required}
          autoComplete="off"
          spellCheck={false}
          className="mono"
        />
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
