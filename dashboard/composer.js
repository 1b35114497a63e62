/**
 * Where a reader writes to the agent.
 *
 *  C1 Nothing typed is lost. Text stays in the storage of the tab until it is sent. A refused message goes back into the
 *     text area, before what was typed meanwhile.
 *  C2 A text that the service refused because of a secret is not stored, until the text area was empty once.
 *  C3 The text area is made once, so that focus, selection and undo survive every update.
 */
import { makeAttachments } from "./attachments.js";
import { h, morph } from "./dom.js";
import { keep, readKept } from "./kept.js";
import { makeChoices } from "./models.js";
import { prose } from "./parts.js";
import { isRestoreWanted } from "./saved-work.js";

/** @typedef {import("./wire.d.ts").Turn} Turn */
/** @typedef {import("./outbox.js").Message} Message */
/** @typedef {import("./api.js").ApiError} ApiError */
/** @typedef {import("./dom.js").Child} Child */

/**
 * @typedef {object} Moment what decides which buttons there are
 * @property {string} status of the session
 * @property {Turn["state"]} turn
 * @property {boolean} stopping
 * @property {boolean} isFirst whether the agent has said nothing yet
 * @property {boolean} asksInWords whether the agent waits for an answer that can be written here
 * @property {string | null} model the last one that the agent used
 */

const ENDED = new Set(["stopped", "failed"]);
/** Advice after a refusal, where the service's own sentence has none. */
const ADVICE = /** @type {Record<string, string>} */ ({
  secret_in_message:
    "Nothing was sent. Remove the secret's value, and name the secret instead. This page does not store the text.",
  queue_full: "Cancel a waiting message, or wait until the agent has taken one. Then send again.",
  cap_reached: "Stop another session, then send again.",
  session_cap_reached: "Stop another session, then send again.",
});
/** On a phone, the key for a new line is Enter. */
const isPhone = () => matchMedia("(max-width: 40rem) and (pointer: coarse)").matches;

/** @param {import("./models.js").Choices} choices @param {import("./attachments.js").Attachments} files */
const makeElements = (choices, files) => {
  const area = /** @type {HTMLTextAreaElement} */ (
    h("textarea", { id: "message", rows: 1, "aria-describedby": "message-keys" })
  );
  const buttons = h("div", { class: "composer-buttons" });
  return {
    area,
    buttons,
    alert: h("p", { class: "refusal composer-problem", role: "alert" }),
    form: h(
      "form",
      { class: "composer", "aria-label": "Message to the agent" },
      h("label", { class: "unseen", for: "message" }, "Message"),
      area,
      files.list,
      choices.element,
      h("div", { class: "composer-bar" }, files.button, files.input, choices.button, buttons),
      h(
        "p",
        { id: "message-keys", class: "unseen" },
        isPhone() ? "The button sends." : "Enter sends. Shift and Enter begin a new line.",
      ),
    ),
  };
};

/**
 * The unsent message, in the tab's storage (C1, C2).
 *
 * @param {string} name in the storage
 * @param {{area: HTMLTextAreaElement, choices: import("./models.js").Choices, files: import("./attachments.js").Attachments}} parts
 */
const makeDraft = (name, { area, choices: { chosen }, files }) => {
  let isSecret = false;
  return {
    kept: readKept(name),
    keepNoText: () => (isSecret = true),
    store: () => {
      if (area.value === "") isSecret = false;
      const text = isSecret ? "" : area.value;
      const isEmpty = text === "" && chosen.model === "" && chosen.agent === "" && files.ready.length === 0;
      keep(name, isEmpty ? null : { text, ...chosen, files: files.ready });
    },
  };
};

/** Until the session is known. @type {Moment} */
const AT_FIRST = {
  status: "running",
  turn: "idle",
  stopping: false,
  isFirst: false,
  asksInWords: false,
  model: null,
};

/** @typedef {ReturnType<typeof makeComposer>} Composer */

/**
 * @param {string} path of the session in the API
 * @param {{send: (message: Message) => void, stop: () => void, answer: (text: string) => Promise<boolean>}} listener answer:
 * tells whether the answer counts
 */
export const makeComposer = (path, listener) => {
  const choices = makeChoices(path, () => draft.store());
  const files = makeAttachments(path, { changed: () => changed(), told: (problem) => say(problem) });
  const { area, alert, buttons, form } = makeElements(choices, files);
  const draft = makeDraft(`draft ${path}`, { area, choices, files });
  let moment = AT_FIRST;

  const isSendable = () => !files.isUnready && (area.value.trim() !== "" || files.ready.length > 0);
  const draw = () => morph(buttons, buttonsView(moment, !isSendable(), files.ready.length > 0));
  const typed = () => {
    grow(area);
    changed();
  };
  const changed = () => {
    draft.store();
    draw();
  };
  /** @param {string} text */
  const write = (text) => {
    area.value = text;
    typed();
  };
  /** @param {...Child} words */
  const say = (...words) => alert.replaceChildren(...h("p", {}, ...words).childNodes);

  /** @param {Message["delivery"]} delivery */
  const send = (delivery) => {
    if (!isSendable()) return;
    const message = messageOf(area.value, delivery, { chosen: choices.chosen, files: files.ready, moment });
    say();
    choices.choose({});
    files.set([]);
    write("");
    listener.send(message);
    area.focus();
  };
  /** The text of an answer stays until the answer counts (C1). */
  const submit = async () => {
    const text = area.value.trim();
    if (!moment.asksInWords || files.ready.length > 0 || text === "") {
      send("queue");
      return;
    }
    say();
    if ((await listener.answer(text)) && area.value.trim() === text) write("");
    area.focus();
  };
  /** @param {Pick<Message, "text" | "attachments" | "model" | "agent">} message */
  const putBack = ({ text, attachments = [], model = "", agent = "" }) => {
    if (area.value === "") choices.choose({ model, agent });
    write([text, area.value].filter((words) => words !== "").join("\n\n"));
    files.set([...attachments, ...files.ready]);
  };

  listenToButtons(form, { submit: () => void submit(), send, stop: listener.stop });
  listenToTyping(area, () => void submit(), typed);
  listenToFiles(form, area, files);

  const kept = draft.kept ?? {};
  putBack({ text: "", ...kept, attachments: kept.files ?? [] });
  return {
    alert,
    element: form,
    focus: () => area.focus({ preventScroll: true }),
    say,
    /** Fits the text area to its text, once it is in the document. */
    fit: () => grow(area),
    /** @param {Moment} next */
    update: (next) => {
      moment = next;
      adapt(area, choices, moment);
      draw();
    },
    putBack,
    /** @param {Message} message @param {ApiError} error */
    refused: (message, error) => {
      if (error.code === "secret_in_message") draft.keepNoText();
      putBack(message);
      say(...prose(error.message), ` ${ADVICE[error.code] ?? "Your text is in the text area again."}`);
    },
  };
};

/**
 * @param {string} typed
 * @param {Message["delivery"]} delivery
 * @param {{chosen: import("./models.js").Chosen, files: readonly import("./attachments.js").Attachment[], moment: Moment}} rest
 * @returns {Message}
 */
const messageOf = (typed, delivery, { chosen: { model, agent }, files, moment }) => {
  const text = typed.replace(/^\s*\n/, "").trimEnd();
  return {
    text: text.trim() === "" ? "" : text,
    delivery,
    ...(ENDED.has(moment.status) && { restore: isRestoreWanted() }),
    ...(files.length > 0 && { attachments: files }),
    ...(model !== "" && { model }),
    ...(agent !== "" && { agent }),
  };
};

/**
 * @param {HTMLElement} form
 * @param {{submit: () => void, send: (delivery: Message["delivery"]) => void, stop: () => void}} does
 */
const listenToButtons = (form, { submit, send, stop }) => {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  form.addEventListener("click", ({ target }) => {
    const pressed = target instanceof Element ? target.closest("button[data-do]") : null;
    const does = pressed?.getAttribute("data-do");
    if (does === "now") send("interrupt");
    if (does === "queue") send("queue");
    if (does === "stop") stop();
  });
};

/** @param {HTMLTextAreaElement} area @param {() => void} submit @param {() => void} typed */
const listenToTyping = (area, submit, typed) => {
  area.addEventListener("input", typed);
  area.addEventListener("keydown", (event) => {
    // While an input method composes a character, Enter ends the composition.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || isPhone()) return;
    event.preventDefault();
    submit();
  });
  area.setAttribute("enterkeyhint", isPhone() ? "enter" : "send");
};

/**
 * Files that are pasted, or dropped onto the composer.
 *
 * @param {HTMLElement} form
 * @param {HTMLElement} area
 * @param {{add: (files: Iterable<File>) => void}} files
 */
export const listenToFiles = (form, area, files) => {
  area.addEventListener("paste", (event) => {
    const pasted = [...(event.clipboardData?.files ?? [])];
    if (pasted.length === 0) return;
    event.preventDefault();
    files.add(pasted);
  });
  form.addEventListener("dragover", (event) => {
    if (event.dataTransfer?.types.includes("Files") !== true) return;
    event.preventDefault();
    form.classList.add("dropping");
  });
  for (const sign of ["dragleave", "drop"])
    form.addEventListener(sign, () => form.classList.remove("dropping"));
  form.addEventListener("drop", (event) => {
    if (event.dataTransfer === null || event.dataTransfer.files.length === 0) return;
    event.preventDefault();
    files.add(event.dataTransfer.files);
  });
};

/** As high as its text, up to the limit in style.css. @param {HTMLTextAreaElement} area */
export const grow = (area) => {
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight}px`;
};

/** @param {HTMLTextAreaElement} area @param {import("./models.js").Choices} choices @param {Moment} moment */
const adapt = (area, choices, moment) => {
  choices.see(moment);
  area.setAttribute("placeholder", placeholderOf(moment));
};

/** @param {Moment} moment */
const placeholderOf = ({ status, turn, asksInWords }) => {
  if (ENDED.has(status)) return "A message restarts the session…";
  if (asksInWords) return "Answer the agent…";
  if (turn === "requires_action") return "Answer above. A message waits until then…";
  return turn === "idle" ? "Message the agent…" : "Write the next message…";
};

/** @type {Record<"restart" | "answer" | "queue" | "send", [string, string]>} */
const SEND_WORDS = {
  restart: ["Send and restart", "Restarts the session in a new sandbox, and sends the message"],
  answer: ["Answer", "Answer the agent's question"],
  queue: ["Queue", "The agent gets the message after its turn"],
  send: ["Send", "Send the message"],
};

/** @param {Moment} moment @param {boolean} isEmpty whether there is nothing to send @param {boolean} hasFiles @returns {Child[]} */
const buttonsView = ({ status, turn, stopping, asksInWords }, isEmpty, hasFiles) => {
  const isEnded = ENDED.has(status);
  const isAtWork = turn !== "idle" && !isEnded;
  // An answer is words alone.
  const answers = asksInWords && !hasFiles;
  const [label, explanation] =
    SEND_WORDS[isEnded ? "restart" : answers ? "answer" : isAtWork ? "queue" : "send"];
  return [
    isAtWork &&
      h(
        "button",
        {
          type: "button",
          class: "stop",
          "data-do": "stop",
          "data-key": "stop",
          "aria-disabled": stopping && "true",
          title: "End the agent's turn. Its answer so far stays.",
        },
        stopping ? "Stopping…" : "Stop",
      ),
    isAtWork &&
      !answers &&
      h(
        "button",
        {
          type: "button",
          "data-do": "now",
          "data-key": "now",
          disabled: isEmpty,
          title: "End the agent's turn, and send the message at once",
        },
        "Send now",
      ),
    answers &&
      h(
        "button",
        {
          type: "button",
          "data-do": "queue",
          "data-key": "queue",
          disabled: isEmpty,
          title: SEND_WORDS.queue[1],
        },
        SEND_WORDS.queue[0],
      ),
    h(
      "button",
      { type: "submit", class: "primary", "data-key": "send", disabled: isEmpty, title: explanation },
      label,
    ),
  ];
};
