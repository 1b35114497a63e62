/**
 * The menu of models, wherever one is chosen. Its order is that of src/domain/model/menu.ts. The focus is in the field of its search, and
 * the field's keys move through the rows.
 */
import {
  type KeyboardEvent,
  memo,
  useCallback,
  useId,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import {
  isFound,
  type ListedModel,
  type MenuPart,
  modelMenu,
  shownModel,
} from "../../src/domain/model/menu.ts";
import { grouped } from "../elements/format.ts";
import { browserChoice } from "../frame/kept.ts";
import type { Described } from "./form.tsx";
import { useMedia } from "./media.ts";

/** A model with what the service or the runtime knows of it. */
export interface ShownModel extends ListedModel {
  /** Tokens. */
  readonly context?: number;
  /** Dollars for a million tokens. */
  readonly price?: { readonly input: number; readonly output: number };
}

interface Offered {
  readonly models: readonly ShownModel[];
  /** The chosen one. Empty: none is named. */
  readonly value: string;
  /** The row that names no model. `model`: the one that is used then. Null: it is not known. */
  readonly own: { readonly words: string; readonly model: ShownModel | null };
  /** The last row, which stands for a name that is not offered. */
  readonly other?: { readonly value: string; readonly words: string };
  /** Why a model cannot be chosen. Null: it can. */
  readonly whyNot?: (id: string) => string | null;
  /** The model that the agent uses now. */
  readonly inUse?: string | null;
}

interface ModelMenu extends Offered {
  readonly label: string;
  readonly onChoose: (value: string) => void;
  readonly className?: string;
  /** As a field of a form. */
  readonly field?: Described;
}

/** How many of the models that were chosen last this browser remembers. */
const LAST_MAX = 5;

const lastModels = browserChoice("last models", (kept): readonly string[] =>
  Array.isArray(kept) ? kept.filter((one) => typeof one === "string") : [],
);

const remember = (id: string): void => {
  const others = lastModels.read().filter((one) => one !== id);
  lastModels.keep([id, ...others].slice(0, LAST_MAX));
};

interface Row {
  readonly value: string;
  readonly part: MenuPart | "own" | "other";
  readonly name: string;
  readonly provider: string;
  readonly facts: readonly string[];
  readonly reason: string | null;
  /** What does not fit in the row. */
  readonly title: string;
}

const HEADS: Readonly<Record<Row["part"], string | null>> = {
  own: null,
  recent: "Last used",
  usual: "Models",
  toolless: "Without tools: they talk, and change nothing",
  unfit: "Cannot be chosen",
  other: null,
};

const factsOf = ({ price, context }: ShownModel): readonly string[] => [
  ...(price === undefined ? [] : [`$${price.input} in, $${price.output} out`]),
  ...(context === undefined ? [] : [`${grouped(Math.round(context / 1000))}k`]),
];

interface RowWords {
  readonly part: Row["part"];
  /** In the place of the model's name. */
  readonly words?: string;
  readonly reason?: string | null;
  readonly isInUse?: boolean;
}

const rowOf = (model: ShownModel, { part, words, reason = null, isInUse = false }: RowWords): Row => {
  const shown = shownModel(model);
  const name = words ?? shown.name;
  const facts = [...(isInUse ? ["in use"] : []), ...factsOf(model)];
  const title = [name, model.id, ...facts, reason ?? ""].filter((one) => one !== "").join(" · ");
  return { value: model.id, part, name, provider: shown.provider, facts, reason, title };
};

const ownRow = ({ words, model }: Offered["own"]): Row => {
  if (model === null) return rowOf({ id: "" }, { part: "own", words });
  const row = rowOf(model, { part: "own", words: `${words} (${shownModel(model).name})` });
  return { ...row, value: "" };
};

const rowsOf = ({ models, value, own, other, whyNot, inUse }: Offered): readonly Row[] => {
  const isListed = value === "" || value === other?.value || models.some(({ id }) => id === value);
  // A name that was typed, or a model that is not offered any more, stays in view.
  const listed = isListed ? models : [...models, { id: value }];
  return [
    ownRow(own),
    ...modelMenu(listed, lastModels.read(), whyNot).map(({ model, part, reason }) =>
      rowOf(model, { part, reason, isInUse: model.id === inUse }),
    ),
    ...(other === undefined ? [] : [rowOf({ id: other.value }, { part: "other", words: other.words })]),
  ];
};

/** The rows that fit what is typed. The one for another name always does. */
const foundIn = (rows: readonly Row[], typed: string): readonly Row[] =>
  typed.trim() === ""
    ? rows
    : rows.filter(({ part, value, name }) => part === "other" || isFound({ id: value, name }, typed.trim()));

interface OptionParts {
  readonly id: string;
  readonly row: Row;
  readonly isActive: boolean;
  readonly isChosen: boolean;
  readonly onTake: (row: Row) => void;
}

/** A key moves through hundreds of rows, of which two change. */
const Option = memo(({ id, row, isActive, isChosen, onTake }: OptionParts) => (
  <li
    id={id}
    role="option"
    aria-selected={isActive}
    aria-disabled={row.reason !== null}
    onClick={() => onTake(row)}
  >
    <span className="model-name" title={row.title}>
      {row.name}
      {isChosen && <span className="chosen"> ✓</span>}
    </span>
    <span className="model-provider" title={row.title}>
      {row.provider}
    </span>
    <span className="model-facts" title={row.title}>
      {row.reason ?? row.facts.join(" · ")}
    </span>
  </li>
));

interface ListParts {
  readonly id: string;
  readonly rows: readonly Row[];
  readonly active: number;
  readonly value: string;
  readonly onTake: (row: Row) => void;
}

const List = ({ id, rows, active, value, onTake }: ListParts) => {
  const list = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    list.current?.querySelector(`[id="${id}-${active}"]`)?.scrollIntoView({ block: "nearest" });
  }, [id, active, rows]);
  const parts = [...Map.groupBy(rows, ({ part }) => part)];
  return (
    // Browsers and checkers want to reach what scrolls.
    <div ref={list} id={id} role="listbox" aria-label="Models" tabIndex={0}>
      {parts.map(([part, own]) => (
        <ul key={part} role="group" aria-label={HEADS[part] ?? undefined}>
          {HEADS[part] !== null && (
            <li role="presentation" className="models-head">
              {HEADS[part]}
            </li>
          )}
          {own.map((row) => {
            const at = rows.indexOf(row);
            return (
              <Option
                key={row.value}
                id={`${id}-${at}`}
                row={row}
                isActive={at === active}
                isChosen={row.value === value}
                onTake={onTake}
              />
            );
          })}
        </ul>
      ))}
    </div>
  );
};

/** How many rows a key moves by. */
const MOVES: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 };

/** @returns the row that a key leads to. Null: the key leads nowhere */
const moved = (key: string, active: number, count: number): number | null => {
  const last = count - 1;
  const move = MOVES[key];
  if (key === "Home") return 0;
  if (key === "End") return last;
  if (move === undefined) return null;
  // Only single steps go around.
  if (Math.abs(move) === 1) return (active + move + count) % count;
  return Math.min(Math.max(active + move, 0), last);
};

interface PopupParts extends Offered {
  readonly id: string;
  readonly onTake: (value: string) => void;
  /** @param isLeft the focus is elsewhere already */
  readonly onClose: (isLeft: boolean) => void;
  readonly isButton: (target: EventTarget | null) => boolean;
}

/** The search with its rows. */
const useRows = (offered: Offered) => {
  const { models, value, own, other, whyNot, inUse } = offered;
  const all = useMemo(
    () =>
      rowsOf({
        models,
        value,
        own,
        whyNot: whyNot ?? (() => null),
        inUse: inUse ?? null,
        ...(other && { other }),
      }),
    // The menu stays as it was opened: the models that were chosen last change with each choice.
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- the others are made anew each time
    [models],
  );
  const [typed, setTyped] = useState("");
  const [chosen, setActive] = useState(() =>
    Math.max(
      0,
      all.findIndex((row) => row.value === value),
    ),
  );
  const rows = useMemo(() => foundIn(all, typed), [all, typed]);
  return {
    rows,
    typed,
    active: Math.min(chosen, rows.length - 1),
    setActive,
    search: (text: string): void => {
      setTyped(text);
      setActive(0);
    },
  };
};

const Popup = ({ id: own, onTake, onClose, isButton, ...offered }: PopupParts) => {
  const id = `${own}-list`;
  const box = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const isTouched = useMedia("(pointer: coarse)");
  const { rows, typed, active, setActive, search } = useRows(offered);
  // On a phone, the keyboard would cover the rows. A tap on the field brings it.
  useLayoutEffect(() => (isTouched ? box : field).current?.focus({ preventScroll: true }), [isTouched]);
  const latest = useRef(onTake);
  latest.current = onTake;
  const take = useCallback((row: Row | undefined): void => {
    if (row !== undefined && row.reason === null) latest.current(row.value);
  }, []);
  const pressed = (event: KeyboardEvent): void => {
    const { key, nativeEvent, ctrlKey, metaKey, altKey } = event;
    if (nativeEvent.isComposing || ctrlKey || metaKey || altKey) return;
    const to = rows.length === 0 ? null : moved(key, active, rows.length);
    if (key === "Escape") onClose(false);
    else if (key === "Enter") take(rows[active]);
    else if (to !== null) setActive(to);
    else return;
    event.preventDefault();
  };
  const pointed = rows.length === 0 ? undefined : `${id}-${active}`;
  return (
    <div
      ref={box}
      id={own}
      className="models"
      role="dialog"
      aria-label="Choose a model"
      tabIndex={-1}
      onKeyDown={pressed}
      onBlur={({ currentTarget, relatedTarget }) => {
        if (!currentTarget.contains(relatedTarget) && !isButton(relatedTarget)) onClose(true);
      }}
    >
      <input
        ref={field}
        role="combobox"
        aria-label="Search by name or provider"
        aria-autocomplete="list"
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={pointed}
        placeholder="Search by name or provider"
        autoComplete="off"
        spellCheck={false}
        value={typed}
        onChange={({ target }) => search(target.value)}
      />
      <List id={id} rows={rows} active={active} value={offered.value} onTake={take} />
      <p className="quiet" role="status">
        {rows.length === 0
          ? "No model has this name."
          : rows.some(({ facts }) => facts.length > 0) &&
            "Dollars for a million tokens. 200k: the context holds 200,000 tokens."}
      </p>
    </div>
  );
};

/** What is chosen. */
const buttonWords = ({ models, value, own, other }: Offered): string => {
  if (value === other?.value) return other.words;
  const chosen = value === "" ? own.model : (models.find(({ id }) => id === value) ?? { id: value });
  return chosen === null ? own.words : shownModel(chosen).name;
};

/** A button that names the chosen model, and opens the menu. The place around it says where the menu stands: it is the nearest with `position`. */
export const ModelMenu = ({ label, onChoose, className, field, ...offered }: ModelMenu) => {
  const { value, own, other } = offered;
  const [isOpen, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();
  const words = buttonWords(offered);
  const close = (): void => {
    setOpen(false);
    button.current?.focus({ preventScroll: true });
  };
  return (
    <>
      <button
        {...field}
        ref={button}
        type="button"
        role="combobox"
        className={`model-button ${className ?? ""}`}
        aria-label={label}
        aria-haspopup="dialog"
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        title={value === "" ? (own.model?.id ?? label) : value}
        // The focus stays in the menu, so that this press closes it.
        onMouseDown={(event) => isOpen && event.preventDefault()}
        onClick={() => (isOpen ? close() : setOpen(true))}
        onKeyDown={(event) => {
          if (isOpen || !["ArrowDown", "ArrowUp"].includes(event.key)) return;
          event.preventDefault();
          setOpen(true);
        }}
      >
        {words}
      </button>
      {isOpen && (
        <Popup
          {...offered}
          id={id}
          isButton={(target) => target === button.current}
          onClose={(isLeft) => (isLeft ? setOpen(false) : close())}
          onTake={(chosen) => {
            if (chosen !== "" && chosen !== other?.value) remember(chosen);
            onChoose(chosen);
            close();
          }}
        />
      )}
    </>
  );
};
