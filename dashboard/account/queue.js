/** Fires and people's sessions that wait for a free session, in every project of the account, in the order in which they start. */
import { getJson } from "../api/api.js";
import { h } from "../elements/dom.js";
import { counted } from "../elements/format.js";
import { button, empty, fireLink, idTail, projectLink, time, trail } from "../elements/parts.js";
import { row as sessionRow } from "../projects/session-list.js";

/** @typedef {import("../wire.d.ts").Project} Project */
/** @typedef {import("../wire.d.ts").QueuedFire} QueuedFire */
/** @typedef {import("../wire.d.ts").Session} Session */
/** @typedef {import("../wire.d.ts").Me} Me */

/** Ten thousand fires may wait. A reader wants to see which start next. */
const SHOWN = 200;
/** Of the sessions in use, in each status. */
const IN_USE_SHOWN = 50;

/** @typedef {{queue: QueuedFire[], inUse: Session[], names: Map<string, string>}} QueuePage names of projects by their id */

/** The sessions that hold a place: agents at rest first, and of these the oldest. @param {Session[]} sessions */
const byRest = (sessions) =>
  sessions.toSorted(
    (a, b) =>
      Number(a.turn.state !== "idle" || a.status !== "running") -
        Number(b.turn.state !== "idle" || b.status !== "running") || a.created_at.localeCompare(b.created_at),
  );

export const queue = {
  /** @returns {Promise<QueuePage>} */
  load: async () => {
    const [{ queue: waiting }, { projects }, running, starting] = await Promise.all([
      getJson(`/v1/queue?limit=${SHOWN}`),
      getJson("/v1/projects?limit=200"),
      getJson(`/v1/sessions?status=running&limit=${IN_USE_SHOWN}`),
      getJson(`/v1/sessions?status=provisioning&limit=${IN_USE_SHOWN}`),
    ]);
    return {
      queue: waiting,
      inUse: byRest([...running.sessions, ...starting.sessions]),
      names: new Map(projects.map((/** @type {Project} */ project) => [project.id, project.name])),
    };
  },

  title: () => "Queue",

  /** @param {QueuePage} data @param {Me | null} me */
  view: ({ queue: waiting, inUse, names }, me) => [
    trail([
      ["Projects", "#/projects"],
      ["Queue", null],
    ]),
    h(
      "header",
      { class: "head", "data-key": "head" },
      h("h1", {}, "Queue"),
      h(
        "p",
        { class: "quiet" },
        "Runs of triggers, and sessions that people asked for, in the order in which they will start.",
        me !== null && ` ${usage(me)}`,
      ),
    ),
    waiting.length === 0
      ? empty(
          "The queue is empty.",
          "Runs and sessions wait here while all sessions of the account are in use.",
        )
      : h(
          "ol",
          { class: "rows", "data-key": "queue" },
          waiting.map((fire) => row(fire, names.get(fire.project_id))),
        ),
    me !== null &&
      me.account.queued_fires > waiting.length &&
      h(
        "p",
        { class: "quiet", "data-key": "more" },
        `${me.account.queued_fires - waiting.length} more wait.`,
      ),
    inUse.length > 0 &&
      h(
        "section",
        { "data-key": "in-use" },
        h("h2", {}, "Sessions in use"),
        h(
          "p",
          { class: "quiet" },
          "Each one uses a place, even while its agent is idle. If you stop one, its work is saved, and the next session starts.",
        ),
        h(
          "ul",
          { class: "rows" },
          inUse.map((session) => sessionRow(session, names.get(session.project_id))),
        ),
      ),
  ],
};

/** @param {Me} me */
const usage = ({ account }) =>
  `${account.active_sessions} of ${counted(account.session_cap, "session")} ${account.session_cap === 1 ? "is" : "are"} in use.`;

/** @param {QueuedFire} fire @param {string | undefined} projectName */
const row = (fire, projectName) => {
  const { kind, trigger_slug: slug, title, person, files } = fire;
  const name = slug ?? (title?.trim().split("\n", 1)[0] || "Session");
  return h(
    "li",
    { class: "row waiting", "data-key": fire.fire_id },
    h("span", { class: "place" }, h("span", { class: "unseen" }, "Position "), fire.position),
    h(
      "span",
      { class: "row-main" },
      h("a", { class: "cover", href: fireLink(fire.project_id, fire.fire_id) }, name),
      h(
        "a",
        { class: "quiet", href: projectLink(fire.project_id) },
        projectName ?? ["project ", idTail(fire.project_id)],
      ),
      person !== null && h("span", { class: "quiet" }, person.name),
      files > 0 && h("span", { class: "quiet" }, `with ${counted(files, "file")}`),
    ),
    h(
      "span",
      { class: "row-side" },
      h("span", {}, "queued ", time(fire.queued_at)),
      h("span", { class: "quiet" }, "expires ", time(fire.expires_at)),
    ),
    button("cancel-fire", "Cancel", {
      "data-project": fire.project_id,
      "data-fire": fire.fire_id,
      "data-title": name,
      "data-kind": kind,
      "aria-label": `Cancel ${name} at position ${fire.position}`,
    }),
  );
};
