/** One question at a time, in the browser's own modal dialog: it traps focus, closes on Escape and gives focus back. */
import { h } from "./dom.js";

/**
 * @typedef {object} Question
 * @property {string} title
 * @property {string} text
 * @property {string} confirm label of the button that agrees
 * @property {{label: string, value: string, lines: number, required: boolean}} [field]
 */

/**
 * Asks.
 *
 * @param {Question} question
 * @returns {Promise<string | null>} what was typed ("" without a field), or null when it was declined
 */
export const ask = (question) => {
  const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("dialog"));
  const field = question.field;
  const input =
    field === undefined
      ? null
      : field.lines > 1
        ? h("textarea", { id: "answer", rows: field.lines }, field.value)
        : h("input", { id: "answer", type: "text", value: field.value, required: field.required });
  dialog.replaceChildren(
    h(
      "form",
      { method: "dialog" },
      h("h2", { id: "dialog-title" }, question.title),
      h("p", { class: "text" }, question.text),
      field === undefined ? null : h("label", { for: "answer" }, field.label),
      input,
      h(
        "p",
        { class: "actions" },
        // Not a submit button: it would be the one that Enter in the field presses.
        h("button", { type: "button", class: "decline" }, "Cancel"),
        h("button", { type: "submit", value: "confirm", class: "primary" }, question.confirm),
      ),
    ),
  );
  dialog.querySelector(".decline")?.addEventListener("click", () => dialog.close());
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener(
      "close",
      () => {
        const typed =
          input instanceof HTMLInputElement || input instanceof HTMLTextAreaElement ? input.value.trim() : "";
        resolve(dialog.returnValue === "confirm" ? typed : null);
      },
      { once: true },
    );
  });
};
