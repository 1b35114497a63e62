/** What people say of a change request, and their verdicts. */
import { patch, post } from "./api.js";
import { ask } from "./dialog.js";
import { h } from "./dom.js";
import { counted } from "./format.js";
import { markdown } from "./markdown-view.js";
import { button, code, tag, time } from "./parts.js";
import { projectPath } from "./project.js";

/** @typedef {import("./wire.d.ts").ChangeRequestDetail} ChangeRequestDetail */
/** @typedef {import("./wire.d.ts").Remark} Remark */
/** @typedef {{project: import("./wire.d.ts").Project, change: ChangeRequestDetail, remarks: Remark[]}} Talk */

/** @type {Record<Remark["kind"], string>} */
const SAYS = { comment: "", approval: "approved", changes_requested: "asked for changes" };

/** @param {NonNullable<Remark["place"]>} place */
const linesOf = ({ file, side, first_line: first, last_line: last }) =>
  `${file}, ${first === last ? `line ${first}` : `lines ${first} to ${last}`}${side === "base" ? " before the change" : ""}`;

/** What the buttons of a remark name. @param {Talk} talk @param {Remark} [remark] */
const named = ({ project, change }, remark) => ({
  "data-project": project.id,
  "data-number": String(change.number),
  ...(remark !== undefined && { "data-id": remark.id }),
});

/** @param {Talk} talk @param {Remark} remark */
const remarkView = (talk, remark) => {
  const { id, kind, body, place, outdated, reply_to: above, created_by: by, created_at: at } = remark;
  const isResolved = remark.resolved_at !== null;
  return h(
    "li",
    { class: above === null ? "remark" : "remark answer", "data-key": id },
    h(
      "p",
      { class: "quiet" },
      h("strong", {}, by.name),
      kind !== "comment" && [" ", tag(SAYS[kind], kind === "approval" ? "good" : "bad")],
      " ",
      time(at),
      place !== null && [", ", code(linesOf(place))],
      outdated && ", before the last push",
      isResolved && ", resolved",
    ),
    body !== "" && markdown(body),
    above === null &&
      kind === "comment" &&
      h(
        "p",
        { class: "actions" },
        button("answer-remark", "Answer", { ...named(talk, remark), class: "plain" }),
        button("resolve-remark", isResolved ? "Open again" : "Resolve", {
          ...named(talk, remark),
          class: "plain",
          "data-resolved": String(!isResolved),
        }),
      ),
  );
};

/** A remark, and below it its answers. @param {Remark[]} remarks */
const inThreads = (remarks) =>
  remarks
    .filter(({ reply_to }) => reply_to === null)
    .flatMap((remark) => remarks.filter(({ id, reply_to }) => (reply_to ?? id) === remark.id));

/** @param {Talk} talk */
export const talkView = (talk) => {
  const { change, remarks } = talk;
  const isOpen = change.status === "open";
  return h(
    "section",
    { "data-key": "talk" },
    h("h2", {}, "Talk"),
    remarks.length === 0
      ? h("p", { class: "quiet" }, "No one has said anything yet.")
      : h(
          "ul",
          { class: "remarks" },
          inThreads(remarks).map((remark) => remarkView(talk, remark)),
        ),
    h(
      "p",
      { class: "actions" },
      button("comment-on-request", "Comment", named(talk)),
      isOpen && button("approve-request", "Approve", { ...named(talk), "data-commit": change.head_commit }),
      isOpen &&
        button("ask-for-changes", "Ask for changes", { ...named(talk), "data-commit": change.head_commit }),
    ),
  );
};

/** What a merge still needs of people. Null: nothing. @param {ChangeRequestDetail} change */
export const lackedApprovals = ({ status, verdicts, approvals_required: required }) => {
  const given = verdicts.filter(({ counts }) => counts).length;
  if (status !== "open" || given >= required) return null;
  return `A merge needs ${counted(required - given, given === 0 ? "approval" : "more approval")} of the newest commit.`;
};

/** Who has decided what. Null: no person has. @param {ChangeRequestDetail} change */
export const verdictsText = ({ status, verdicts }) => {
  const said = verdicts.map(
    ({ by, kind, counts }) =>
      `${by.name} ${SAYS[kind]}${kind === "approval" && status === "open" && !counts ? ", which does not count" : ""}`,
  );
  return said.length === 0 ? null : `${said.join("; ")}.`;
};

/** @param {Record<string, string | undefined>} input @param {string} [rest] */
const pathOf = ({ project = "", number = "" }, rest = "") =>
  `${projectPath(project)}/change-requests/${number}/remarks${rest}`;

/** @param {string} title @param {string} confirm @param {boolean} required */
const asked = (title, confirm, required) =>
  ask({
    title,
    text: "Everybody in the project reads it. Markdown works.",
    confirm,
    field: { label: required ? "Comment" : "Comment (optional)", value: "", lines: 6, required },
  });

/** @param {{title: string, confirm: string, kind: Remark["kind"], done: string}} about @returns {import("./actions.js").Action} */
const saying =
  ({ title, confirm, kind, done }) =>
  async (input, page) => {
    const body = await asked(title, confirm, kind !== "approval");
    if (body === null) return;
    // A verdict is about the commit that the reader sees.
    await post(pathOf(input), {
      kind,
      body,
      ...(input["commit"] !== undefined && { commit: input["commit"] }),
    });
    page.notice(done);
  };

/** The buttons of the talk, for actions.js. @type {Record<string, import("./actions.js").Action>} */
export const TALK_ACTIONS = {
  "comment-on-request": saying({
    title: "Comment on this change request",
    confirm: "Comment",
    kind: "comment",
    done: "The comment was added.",
  }),
  "approve-request": saying({
    title: "Approve this change request?",
    confirm: "Approve",
    kind: "approval",
    done: "You approved the newest commit.",
  }),
  "ask-for-changes": saying({
    title: "What should change?",
    confirm: "Ask for changes",
    kind: "changes_requested",
    done: "You asked for changes.",
  }),
  "answer-remark": async (input, page) => {
    const body = await asked("Answer", "Answer", true);
    if (body === null) return;
    await post(pathOf(input), { body, reply_to: input["id"] });
    page.notice("The answer was added.");
  },
  "resolve-remark": async (input, page) => {
    const isResolved = input["resolved"] === "true";
    await patch(pathOf(input, `/${input["id"] ?? ""}`), { resolved: isResolved });
    page.notice(isResolved ? "The comment is resolved." : "The comment is open again.");
  },
};
