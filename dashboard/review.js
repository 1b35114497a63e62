/**
 * A review of an agent's changes: comments on lines of a diff, which go to the agent as one message. Until they are sent, the
 * tab keeps them.
 */
import { ask } from "./dialog.js";
import { h } from "./dom.js";
import { counted } from "./format.js";
import { keep, readKept } from "./kept.js";
import { button, callout, code } from "./parts.js";

/** @typedef {{file: string, line: string, quote: string, text: string}} Comment line: its number and side, or "" for the file as a whole */
/** @typedef {{project: string, session: string, isLive: boolean}} Reviewed the session whose agent gets the comments */

/** As many as a reader writes at once. The message stays below the service's limit. */
const COMMENTS_MAX = 50;
const COMMENT_CHARS = 2000;
const QUOTE_CHARS = 200;

/** @param {string} session */
const storedAs = (session) => `review ${session}`;

/** @param {string} session its id @returns {Comment[]} */
const commentsOf = (session) => readKept(storedAs(session)) ?? [];

/** @param {string} session its id @returns {boolean} whether comments wait to be sent */
export const hasComments = (session) => commentsOf(session).length > 0;

/** @param {string} session @param {Comment[]} comments */
const store = (session, comments) => keep(storedAs(session), comments.length === 0 ? null : comments);

/**
 * For the lines of one file: a line, and the comments on it as lines of their own.
 *
 * @param {string} session its id @param {string} file
 * @returns {(line: import("./diff-parse.js").DiffLine) => import("./diff-parse.js").DiffLine[]}
 */
export const commentLines = (session, file) => {
  const comments = commentsOf(session).filter((comment) => comment.file === file && comment.line !== "");
  return (line) => {
    const number = numbered(line.before, line.after);
    const own = number === "" ? [] : comments.filter((comment) => comment.line === number);
    return [line, ...own.map(({ text }) => commentLine(text))];
  };
};

/** In one row, so that two columns stay level. @param {string} text @returns {import("./diff-parse.js").DiffLine} */
const commentLine = (text) => ({
  kind: "comment",
  text: text.replace(/\s+/g, " "),
  before: null,
  after: null,
});

/** @param {Comment} comment @returns {string} */
const placeOf = ({ file, line }) => (line === "" ? file : `${file}, ${line}`);

/** @param {Comment[]} comments @returns {string} what the agent is told */
export const reviewMessage = (comments) =>
  [
    "Here are review comments on your changes. Address each of them, commit, and push.",
    ...comments.map((comment, at) =>
      [
        `${at + 1}. ${placeOf(comment)}`,
        // Without an empty line, Markdown takes the comment as a part of the quote.
        ...(comment.quote === "" ? [] : [`> ${comment.quote}`, ""]),
        comment.text,
      ].join("\n"),
    ),
  ].join("\n\n");

/**
 * The comments so far, with what can be done with them.
 *
 * @param {Reviewed} reviewed
 */
export const reviewView = ({ project, session, isLive }) => {
  const comments = commentsOf(session);
  if (comments.length === 0) {
    return h(
      "p",
      { class: "quiet", "data-key": "review" },
      "Click a line to comment on it, or walk through the lines with the arrow keys and press Enter. The agent gets all comments as one message.",
    );
  }
  const sends = `Send ${counted(comments.length, "comment")}`;
  return h(
    "div",
    { "data-key": "review" },
    callout(
      "waiting",
      h("strong", {}, "Comments for the agent"),
      h(
        "ul",
        { class: "dots" },
        comments.map((comment, at) =>
          h(
            "li",
            { "data-key": `${at} ${comment.text}` },
            code(placeOf(comment)),
            ": ",
            comment.text,
            " ",
            button("remove-comment", "Remove", {
              class: "plain",
              "data-session": session,
              "data-at": String(at),
              "aria-label": `Remove the comment on ${placeOf(comment)}`,
            }),
          ),
        ),
      ),
      h(
        "p",
        { class: "actions" },
        button("send-review", isLive ? sends : `Restart and ${sends.toLowerCase()}`, {
          class: "primary",
          "data-project": project,
          "data-session": session,
        }),
      ),
    ),
  );
};

/** @param {string} session @returns {string} the message with its comments */
export const reviewText = (session) => reviewMessage(commentsOf(session));

/** @param {string} session @param {number} [at] only this one */
export const forgetComments = (session, at) =>
  store(session, at === undefined ? [] : commentsOf(session).toSpliced(at, 1));

/**
 * Asks for a comment, and keeps it.
 *
 * @param {string} session
 * @param {{file: string, line?: string, quote?: string}} place
 * @returns {Promise<boolean>} whether there is a new one
 */
export const addComment = async (session, { file, line = "", quote = "" }) => {
  const comments = commentsOf(session);
  if (comments.length >= COMMENTS_MAX)
    throw new Error(`A review has at most ${COMMENTS_MAX} comments. Send these first.`);
  const place = placeOf({ file, line, quote, text: "" });
  const text = await ask({
    title: `Comment on ${place}`,
    text: quote.trim() === "" ? "What should the agent change?" : quote.trim(),
    confirm: "Add the comment",
    field: { label: "Comment", value: "", lines: 4, required: true },
  });
  if (text === null || text === "") return false;
  // The reader may have written another one meanwhile, in this tab's other views.
  store(session, [
    ...commentsOf(session),
    { file, line, quote: quote.trim().slice(0, QUOTE_CHARS), text: text.slice(0, COMMENT_CHARS) },
  ]);
  return true;
};

/** A line's number, as people say it. @param {number | string | null} before @param {number | string | null} after */
const numbered = (before, after) => {
  if (after !== null && after !== "") return `line ${after}`;
  return before === null || before === "" ? "" : `line ${before} before the change`;
};

/** @param {Element} line of a diff @returns {string} */
const numberOf = (line) => numbered(line.getAttribute("data-before"), line.getAttribute("data-after"));

/** @param {Element} line @returns {boolean} whether it can get a comment */
const isNumbered = (line) => numberOf(line) !== "";

/** The lines of a diff that is reviewed. */
const LINE = "[data-review] .numbered > span";

/**
 * The line to which an arrow key leads: from the lines as a whole to the first, and from line to line. Null: nowhere.
 *
 * @param {Element} from
 * @param {string} key
 * @returns {Element | null}
 */
const neighbour = (from, key) => {
  const lines = [...(from.closest("[data-review] .numbered")?.children ?? [])].filter(isNumbered);
  const step = { ArrowDown: 1, ArrowUp: -1 }[key] ?? 0;
  return step === 0 ? null : (lines[lines.indexOf(from) + step] ?? null);
};

/**
 * A click on a line of a diff that is reviewed asks for a comment. Selecting text does not. With the keyboard, the arrow keys
 * choose a line and Enter asks.
 *
 * @param {() => void} changed
 * @returns {() => void} ends it
 */
export const followLines = (changed) => {
  /** @param {Element | null} line */
  const comment = (line) => {
    const session = line?.closest("[data-review]")?.getAttribute("data-review");
    const file = line?.closest("details.file")?.getAttribute("data-path");
    if (line === null || !session || !file || !isNumbered(line)) return;
    const place = { file, line: numberOf(line), quote: line.textContent ?? "" };
    void addComment(session, place).then((isNew) => isNew && changed());
  };
  /** @param {MouseEvent} event */
  const clicked = ({ target }) => {
    if (target instanceof Element && getSelection()?.isCollapsed !== false) comment(target.closest(LINE));
  };
  /** @param {KeyboardEvent} event */
  const pressed = (event) => {
    const { target, key } = event;
    if (!(target instanceof Element) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (key === "Enter" && target.matches(LINE)) {
      event.preventDefault();
      comment(target);
      return;
    }
    const next = neighbour(target, key);
    if (!(next instanceof HTMLElement)) return;
    event.preventDefault();
    next.focus();
  };
  document.addEventListener("click", clicked);
  document.addEventListener("keydown", pressed);
  return () => {
    document.removeEventListener("click", clicked);
    document.removeEventListener("keydown", pressed);
  };
};
