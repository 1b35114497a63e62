/** A request of the agent as a card: what it asks, the form of the answer, and what became of it. */
import { isOpen, textOf } from "./conversation-model.js";
import { h } from "./dom.js";
import { markdown } from "./markdown-view.js";
import { badge, clockTime, code } from "./parts.js";
import { lackedRole, readOnly } from "./roles.js";

/** @typedef {import("./dom.js").Child} Child */
/** @typedef {import("./wire.d.ts").Answer} Answer */
/** @typedef {import("./wire.d.ts").Item} Item */
/** @typedef {import("./wire.d.ts").Question} Question */
/** @typedef {import("./steering.js").Asked} Asked */
/** @typedef {NonNullable<Item["request"]>} Request */

/** What the reader chose and typed so far: the form's values by their names. @typedef {Record<string, string[]>} Draft */

/** The outcome of a request without an answer. */
const STATUS_WORDS = /** @type {Record<string, string>} */ ({
  pending: "waiting",
  running: "waiting",
  completed: "answered",
  failed: "declined",
  interrupted: "expired",
  lost: "expired",
});
const CHOICE_WORDS = /** @type {Record<string, string>} */ ({
  once: "allowed once",
  always: "always allowed",
  reject: "rejected",
});
const DECLINED = {
  unattended: "Declined at once: a trigger started this session, so it has no person to ask.",
  expired: "No answer came in time.",
};
/** The value of the choice that the reader words. */
export const OTHER = "other";

/** @param {Request} request @returns {string} in one line */
export const requestTitle = ({ kind, title, questions }) =>
  kind === "permission"
    ? `The agent asks for permission: ${title}`
    : `The agent asks: ${title || (questions[0]?.text ?? "")}`;

/** @param {Item} item @param {{asked: Asked, draft: Draft}} context @returns {Child[]} */
export const requestView = (item, { asked, draft }) => {
  const { request } = item;
  if (request === null) return [];
  const answer = item.answer ?? asked.settled;
  const isAsking = isOpen(item) && answer === null;
  return [
    h(
      "p",
      { class: "said-by" },
      h("strong", {}, request.kind === "permission" ? "The agent asks for permission" : "The agent asks"),
      " ",
      clockTime(item.created_at),
      " ",
      badge(outcome(item, answer)),
      answer?.by && h("span", { class: "quiet" }, ` by ${answer.by.name}`),
    ),
    // A runtime may name a question as its only request, too.
    request.title !== "" &&
      request.questions[0]?.title !== request.title &&
      h("p", { class: "text" }, request.title),
    ...askedView(request),
    textOf(item) !== "" && markdown(textOf(item)),
    isAsking && lackedRole("answer-request") !== null && readOnly("answer-request"),
    isAsking && lackedRole("answer-request") === null
      ? h(
          "form",
          {
            class: "answer",
            "data-request": item.id,
            "aria-label": requestTitle(request),
            "data-key": "form",
          },
          request.kind === "permission"
            ? permissionForm(draft, asked)
            : questionsForm(item.id, request.questions, { draft, asked }),
          h("p", { class: "refusal", role: "alert" }, asked.problem),
        )
      : h("div", { class: "answered", "data-key": "answered" }, ...answerView(request, answer)),
  ];
};

/** The whole command, because its parts do not say where its output goes. @param {Request} request @returns {Child[]} */
const askedView = ({ patterns, command, always = [] }) =>
  [
    command === undefined
      ? patterns.length > 0 && codes(patterns)
      : h("pre", { class: "text command", tabindex: 0, "aria-label": "The command" }, command),
    always.length > 0 && [
      h("p", { class: "quiet" }, "“Always allow” allows from now on, in this session:"),
      codes(always),
    ],
  ].flat();

/** @param {string[]} texts */
const codes = (texts) =>
  h(
    "ul",
    { class: "plain" },
    texts.map((text) => h("li", {}, code(text), text === "*" && " (everything of this kind)")),
  );

/** @param {Item} item @param {Answer | null} answer */
const outcome = ({ status }, answer) => {
  if (answer === null) return STATUS_WORDS[status] ?? status;
  if ("declined" in answer) return answer.declined === "expired" ? "expired" : "declined";
  return "choice" in answer ? CHOICE_WORDS[answer.choice] : "answered";
};

/** @param {Request} request @param {Answer | null} answer @returns {Child[]} */
const answerView = ({ questions }, answer) => [
  ...questions.map((question, index) =>
    answeredQuestion(question, (answer !== null && "answers" in answer && answer.answers[index]) || []),
  ),
  answer !== null &&
    "message" in answer &&
    answer.message !== null &&
    answer.message !== "" &&
    h("blockquote", { class: "text" }, answer.message),
  answer !== null && "declined" in answer && h("p", { class: "quiet" }, DECLINED[answer.declined]),
];

/** @param {Question} question @param {string[]} answers @returns {HTMLElement} */
const answeredQuestion = ({ title, text }, answers) =>
  h(
    "div",
    { class: "question" },
    title !== "" && h("h4", {}, title),
    h("p", { class: "text" }, text),
    answers.length > 0 && h("p", { class: "given text" }, h("strong", {}, answers.join(", "))),
  );

/** @param {Draft} draft @param {Asked} asked @returns {Child[]} */
const permissionForm = (draft, { busy }) => [
  h(
    "p",
    { class: "actions" },
    h(
      "button",
      { type: "button", class: "primary", "data-choice": "once", "aria-disabled": busy && "true" },
      "Allow once",
    ),
    h("button", { type: "button", "data-choice": "always", "aria-disabled": busy && "true" }, "Always allow"),
  ),
  h(
    "p",
    { class: "actions with-words" },
    h("input", {
      type: "text",
      name: "words",
      value: draft["words"]?.[0],
      autocomplete: "off",
      placeholder: "Advice (optional)",
      "aria-label": "Advice to the agent (optional, sent with a rejection)",
    }),
    // The only button that submits: Enter in the words must not allow anything.
    h("button", { type: "submit", "data-choice": "reject", "aria-disabled": busy && "true" }, "Reject"),
  ),
];

/** @param {string} id @param {Question[]} questions @param {{asked: Asked, draft: Draft}} context @returns {Child[]} */
const questionsForm = (id, questions, { draft, asked }) => [
  ...questions.map((question, index) => questionField(question, { id, index, draft })),
  h(
    "p",
    { class: "actions" },
    h("button", { type: "submit", class: "primary", "aria-disabled": asked.busy && "true" }, "Answer"),
  ),
];

/** @param {Question} question @param {{id: string, index: number, draft: Draft}} place @returns {HTMLElement} */
const questionField = ({ title, text, options, multiple }, { id, index, draft }) => {
  const name = `q${index}`;
  const words = { name: `other${index}`, "aria-label": `In your own words: ${text}` };
  const typed = draft[words.name]?.[0];
  const choice = { type: multiple ? "checkbox" : "radio", name };
  const picked = draft[name] ?? [];
  return h(
    "fieldset",
    { class: "question", "data-key": `${id} ${name}` },
    h("legend", {}, title !== "" && h("strong", {}, title, " "), h("span", { class: "text" }, text)),
    options.length > 0 && multiple && h("p", { class: "quiet" }, "Choose any of these."),
    options.map(({ label, description }, at) =>
      h(
        "label",
        { class: "option" },
        h("input", { ...choice, value: at, checked: picked.includes(String(at)) }),
        h("span", {}, label, description && h("span", { class: "quiet" }, ` ${description}`)),
      ),
    ),
    options.length > 0
      ? h(
          "p",
          { class: "option" },
          h("input", {
            ...choice,
            value: OTHER,
            checked: picked.includes(OTHER),
            "aria-label": "Another answer",
          }),
          h("input", {
            ...words,
            type: "text",
            value: typed,
            autocomplete: "off",
            placeholder: "Another answer",
          }),
        )
      : h("textarea", { ...words, rows: 2 }, typed),
  );
};
