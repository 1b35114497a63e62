/** Calls of agents that wait for a person: what is asked, and the decision. */
import { getJson, post } from "../api/api.js";
import { askFor, tell } from "../frame/dialog.js";
import { h } from "../elements/dom.js";
import { button, callout, code, commandBlock, projectLink, time } from "../elements/parts.js";
import { projectPath } from "../projects/project.js";

/** @typedef {import("../wire.d.ts").Approval} Approval */

/** The open calls of a project as cards. A session's own are conversation/approval.tsx. @param {string} project @param {Approval[]} approvals */
export const approvalCards = (project, approvals) =>
  approvals.length > 0 &&
  h(
    "div",
    { class: "calls-asked", "data-key": "calls-asked" },
    approvals.map((approval) => card(project, approval)),
  );

/** @param {string} project @param {Approval} approval */
const card = (project, { id, connector, tool, session_id, arguments: given, expires_at }) => {
  const name = `${connector} ${tool}`;
  /** @param {string} action @param {string} label @param {string} look */
  const act = (action, label, look) =>
    button(action, label, {
      class: look,
      "data-project": project,
      "data-approval": id,
      "data-title": name,
      "aria-label": `${label}: ${name}`,
    });
  return h(
    "div",
    { "data-key": `approval-${id}` },
    callout(
      "warn",
      h("p", {}, h("strong", {}, "The agent asks to call "), code(name)),
      commandBlock(JSON.stringify(given, null, 2), `the arguments of ${name}`),
      h(
        "p",
        { class: "quiet" },
        "Without a decision, the call expires ",
        time(expires_at),
        ". ",
        h("a", { href: projectLink(project, `/sessions/${session_id}`) }, "Show the session"),
      ),
      h(
        "p",
        { class: "actions" },
        act("approve-call", "Approve", "primary"),
        act("deny-call", "Deny", "plain"),
        JSON.stringify(given).includes('"[hidden, ') && act("show-hidden", "Show hidden values", "plain"),
      ),
    ),
  );
};

/** @param {string} project @param {string} id @param {"approve" | "deny"} decision */
const path = (project, id, decision) => `${projectPath(project)}/approvals/${id}/${decision}`;

/** @type {Record<string, import("../frame/actions.js").Action>} */
export const actions = {
  "show-hidden": async ({ project = "", approval = "", title = "" }, page) => {
    const { approvals } = await getJson(
      `${projectPath(project)}/approvals?status=pending&hidden=show&limit=200`,
    );
    const found = approvals.find((/** @type {Approval} */ { id }) => id === approval);
    if (found === undefined) return page.notice(`${title} does not wait any more.`);
    tell({
      title: `The arguments of ${title}`,
      text: "The server gets these values. Secrets of the project stay masked.",
      secret: JSON.stringify(found.arguments, null, 2),
    });
  },

  "approve-call": async ({ project = "", approval = "", title = "" }, page) => {
    await post(path(project, approval, "approve"));
    page.notice(`${title} is approved. The agent gets the result.`);
  },

  "deny-call": async ({ project = "", approval = "", title = "" }, page) => {
    const typed = await askFor(
      {
        title: `Deny ${title}?`,
        text: "The tool is not called. The agent hears that you denied the call.",
        confirm: "Deny",
      },
      {
        reason: {
          label: "Reason",
          hint: "Optional. The agent reads it.",
          value: "",
          lines: 2,
          required: false,
        },
      },
    );
    if (typed === null) return;
    const { reason = "" } = typed;
    await post(path(project, approval, "deny"), reason === "" ? {} : { reason });
    page.notice(`${title} is denied.`);
  },
};
