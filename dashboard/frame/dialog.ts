/** One question at a time, in the browser's own modal dialog: it traps focus, closes on Escape and gives focus back. */
import { ApiError } from "../api/api.ts";
import { h } from "../elements/dom.ts";
import type { Attributes } from "../elements/dom.ts";

interface Field {
  label: string;
  /** Its purpose. */
  hint?: string;
  value: string;
  lines: number;
  required: boolean;
  /** A secret: it is not shown until the reader wishes it, and not trimmed. */
  hidden?: boolean;
}

/** As high as this, the field of a secret is. */
export const SECRET_LINES = 3;

interface Question {
  title: string;
  text: string;
  /** Label of the button that agrees. */
  confirm: string;
  /** Whether that deletes or ends something. The button shows it. */
  danger?: boolean;
  /** Label of the other one, where "Cancel" would be unclear. */
  decline?: string;
}

type Answered = { title: string; typed: Record<string, string>; hash: string };

/** The last dialog with fields that was confirmed. */
let answered: Answered | null = null;
/** It was refused, and is shown again with what was typed. */
let refused: (Answered & { problem: string }) | null = null;
/** How many pieces of work are under way. */
let underWay = 0;

/**
 * Runs work that may ask in a dialog with fields. If the service refuses the answer, the work starts again, and the dialog
 * has the typed text and says why. So no text is lost.
 *
 * @throws the error of the work, if it asked nothing, or if the reader is elsewhere meanwhile
 */
export const askingAgain = async (work: () => Promise<void> | void) => {
  underWay += 1;
  try {
    await untilTaken(work);
  } finally {
    underWay -= 1;
    refused = null;
    // It may be a secret.
    if (underWay === 0) answered = null;
  }
};

const untilTaken = async (work: () => Promise<void> | void): Promise<void> => {
  answered = null;
  try {
    await work();
  } catch (error) {
    const typed = answered as Answered | null;
    const isSame = typed?.hash === location.hash && underWay === 1 && !dialogElement().open;
    const isSignedOut = error instanceof ApiError && error.status === 401;
    if (!isSame || isSignedOut || !(error instanceof Error)) throw error;
    refused = { ...typed, problem: error.message };
    await untilTaken(work);
  }
};

const dialogElement = () => document.getElementById("dialog") as HTMLDialogElement;

/** Asks one question. @returns the typed text ("" without a field), or null if the reader declined */
export const ask = async ({ field, ...question }: Question & { field?: Field }): Promise<string | null> => {
  const typed = await askFor(question, field === undefined ? {} : { answer: field });
  return typed === null ? null : (typed["answer"] ?? "");
};

/** Asks for several values. @returns the typed texts by the fields' names, or null if the reader
declined */
export const askFor = (
  question: Question,
  fields: Record<string, Field>,
): Promise<Record<string, string> | null> => {
  const again = refused?.title === question.title ? refused : null;
  refused = null;
  const inputs = Object.entries(fields).map(([name, field]) => {
    const { input, shown } = inputOf(name, { ...field, value: again?.typed[name] ?? field.value });
    if (input instanceof HTMLTextAreaElement && field.hidden === true) input.value = again?.typed[name] ?? "";
    return { name, field, input, shown };
  });
  const dialog = openDialog(
    h(
      "form",
      { method: "dialog" },
      h("h2", { id: "dialog-title" }, question.title),
      h("p", { class: "text" }, question.text),
      inputs.map(({ name, field, shown }) => labelled(name, field, shown)),
      again !== null && h("p", { class: "refusal", role: "alert" }, again.problem),
      h(
        "p",
        { class: "actions" },
        // Not a submit button, because Enter in the field would press it.
        h("button", { type: "button", class: "decline" }, question.decline ?? "Cancel"),
        h(
          "button",
          { type: "submit", value: "confirm", class: question.danger === true ? "danger" : "primary" },
          question.confirm,
        ),
      ),
    ),
  );
  return new Promise((resolve) => {
    onClose(dialog, () => {
      const typed = Object.fromEntries(
        inputs.map(({ name, field, input }) => [
          name,
          field.hidden === true ? input.value : input.value.trim(),
        ]),
      );
      const isConfirmed = dialog.returnValue === "confirm";
      if (isConfirmed && inputs.length > 0) answered = { title: question.title, typed, hash: location.hash };
      resolve(isConfirmed ? typed : null);
    });
  });
};

/** Shows a value that the service does not show again. */
export const tell = ({ title, text, secret }: { title: string; text: string; secret: string }) => {
  openDialog(
    h(
      "form",
      { method: "dialog" },
      h("h2", { id: "dialog-title" }, title),
      h("p", { class: "text" }, text),
      h("p", { class: "copy" }, h("code", { class: "long" }, secret)),
      h(
        "p",
        { class: "actions" },
        h("button", { type: "button", class: "decline" }, "Done"),
        h("button", { type: "button", class: "primary", "data-action": "copy", "data-text": secret }, "Copy"),
      ),
    ),
  );
};

/**
 * Calls back once the dialog has closed. Browsers tell that late: another question may be open by then, and it is not the
 * one that has closed.
 */
export const onClose = (dialog: HTMLDialogElement, then: () => void) => {
  const heard = () => {
    if (dialog.open) return;
    dialog.removeEventListener("close", heard);
    then();
  };
  dialog.addEventListener("close", heard);
};

/** Shows a form as the page's dialog. The form's element of the class "decline" closes it. @param form its heading has the id "dialog-title" */
export const openDialog = (form: HTMLElement, { wide = false }: { wide?: boolean } = {}) => {
  const dialog = dialogElement();
  // Tells those who wait for the former question, if the browser has not told its close yet.
  if (!dialog.open) dialog.dispatchEvent(new Event("close"));
  dialog.replaceChildren(form);
  dialog.classList.toggle("wide", wide);
  dialog.querySelector(".decline")?.addEventListener("click", () => dialog.close());
  // Some dialogs show or take a secret.
  onClose(dialog, () => {
    form.remove();
    takeKeysAgain();
  });
  dialog.returnValue = "";
  dialog.showModal();
  return dialog;
};

/** Chromium gives the focus back to a field that was below the dialog, but the field takes no keys until it gets the focus anew. */
const takeKeysAgain = () => {
  const field = document.activeElement;
  if (!(field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement)) return;
  field.blur();
  field.focus({ preventScroll: true });
};

/** For a reader who goes elsewhere by the address or by the back button. It counts as declined. */
export const closeDialog = () => dialogElement().close("");

/**
 * A text area whose text is masked until the reader shows it: a secret may have several lines, and a browser's own
 * field for passwords has one. The style sheet does it, by the state of the box.
 *
 * @param attributes of the text area
 */
const maskedArea = (attributes: Attributes) => {
  const area = h("textarea", {
    ...attributes,
    autocomplete: "off",
    spellcheck: "false",
    class: "mono",
  }) as HTMLTextAreaElement;
  // A masked text does not show its edges, and a value that is copied often brings a line break.
  const edges = h("p", { class: "quiet", role: "status", "data-own": "edges", "data-key": "edges" });
  const look = () => {
    const isBare = area.value.trim() === "" || area.value.trim() === area.value;
    edges.textContent = isBare ? "" : EDGES;
  };
  area.addEventListener("input", () => {
    look();
    // The field is empty after the event, not yet during it.
    area.form?.addEventListener("reset", () => queueMicrotask(look), { once: true });
  });
  return h(
    "div",
    { class: "masked" },
    // Before the box: a dialog gives the focus to the first control, and Tab comes to the text first.
    area,
    h("input", { type: "checkbox", id: `${attributes["id"]}-show` }),
    h("label", { for: `${attributes["id"]}-show` }, "Show"),
    edges,
  );
};
/** Said beside a masked value. */
export const EDGES =
  "The value begins or ends with a space or a line break, which is part of it. A sender without it signs differently.";

const inputOf = (name: string, { value, lines, required, hint, hidden = false }: Field) => {
  const id = `field-${name}`;
  const own = { id, required, "aria-describedby": hint === undefined ? null : `${id}-hint` };
  const type = hidden ? "password" : "text";
  const autocomplete = hidden ? "new-password" : null;
  const shown =
    lines === 1
      ? h("input", { ...own, type, autocomplete, value })
      : hidden
        ? maskedArea({ ...own, rows: lines })
        : h("textarea", { ...own, rows: lines }, value);
  const input = shown.querySelector("textarea") ?? (shown as HTMLInputElement | HTMLTextAreaElement);
  return { input, shown };
};

const labelled = (name: string, { label, hint }: Field, input: HTMLElement) =>
  h(
    "div",
    { class: "field" },
    h("label", { for: `field-${name}` }, label),
    hint === undefined ? null : h("p", { id: `field-${name}-hint`, class: "quiet" }, hint),
    input,
  );
