/** Reads a reader's answer to a request from the request's form, and sends it. */
import { OTHER } from "./requests.js";

/** @typedef {import("./requests.js").Draft} Draft */
/** @typedef {import("./requests.js").Request} Request */
/** @typedef {import("./steering.js").Reply} Reply */

/**
 * @typedef {object} Answering
 * @property {import("./conversation-model.js").Conversation} conversation
 * @property {Map<string, Draft>} drafts kept here, by the request's id
 * @property {import("./steering.js").Steering} steering
 */

/** @param {HTMLElement} log the element with the forms @param {Answering} answering */
export const listenToAnswers = (log, { conversation, drafts, steering }) => {
  /** @param {Element | null} form @param {string | null} [choice] */
  const answer = (form, choice) => {
    const id = form?.getAttribute("data-request") ?? "";
    const request = conversation.items.get(id)?.request;
    if (!(form instanceof HTMLFormElement) || !request) return;
    const reply = replyOf(request, draftOf(form), choice);
    if (typeof reply !== "number") {
      void steering.answer(id, reply);
      return;
    }
    steering.refuse(id, "Answer each question. Your own words are an answer, too.");
    const first = form.querySelectorAll("fieldset")[reply]?.querySelector("input, textarea");
    if (first instanceof HTMLElement) first.focus();
  };
  log.addEventListener("input", ({ target }) => {
    const form = formOf(target);
    if (target instanceof HTMLInputElement) chooseTyped(target);
    if (form instanceof HTMLFormElement) drafts.set(form.dataset["request"] ?? "", draftOf(form));
  });
  log.addEventListener("click", ({ target }) => {
    const pressed = target instanceof Element ? target.closest("button[type=button][data-choice]") : null;
    if (pressed !== null) answer(formOf(pressed), pressed.getAttribute("data-choice"));
  });
  log.addEventListener("submit", (event) => {
    event.preventDefault();
    answer(formOf(event.target));
  });
};

/** The present values of a request's form. @param {HTMLFormElement} form @returns {Draft} */
const draftOf = (form) => {
  /** @type {Draft} */
  const draft = {};
  for (const [name, value] of new FormData(form)) (draft[name] ??= []).push(String(value));
  return draft;
};

/** @param {EventTarget | null} target */
const formOf = (target) => (target instanceof Element ? target.closest("form[data-request]") : null);

/** Words that the reader types choose the answer that they belong to. @param {HTMLInputElement} input */
const chooseTyped = (input) => {
  const index = /^other(\d+)$/.exec(input.name)?.[1];
  const choice = input.form?.querySelector(`input[name=q${index}][value=${OTHER}]`);
  if (index === undefined || !(choice instanceof HTMLInputElement)) return;
  if (input.value !== "") choice.checked = true;
  else if (choice.type === "checkbox") choice.checked = false;
};

/**
 * @param {Request} request
 * @param {Draft} draft
 * @param {string | null} [choice] the pressed button's
 * @returns {Reply | number} or the index of the first question without an answer
 */
const replyOf = ({ kind, questions }, draft, choice = "reject") => {
  if (kind === "permission") {
    const message = (draft["words"]?.[0] ?? "").trim();
    if (choice === "once" || choice === "always") return { choice };
    return { choice: "reject", ...(message !== "" && { message }) };
  }
  const answers = questions.map(({ options }, index) => {
    const picked = draft[`q${index}`] ?? [];
    const typed = (draft[`other${index}`]?.[0] ?? "").trim();
    const chosen = options.flatMap(({ label }, at) => (picked.includes(String(at)) ? [label] : []));
    const usesTyped = typed !== "" && (options.length === 0 || picked.includes(OTHER));
    return usesTyped ? [...chosen, typed] : chosen;
  });
  const missing = answers.findIndex((answer) => answer.length === 0);
  return missing === -1 ? { answers } : missing;
};
