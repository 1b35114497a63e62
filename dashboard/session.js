/** One session: its conversation, its boot and life, its failure, its log, and its change requests. */
import { getJson, getJsonOrNull } from "./api.js";
import { conversationPlace, showConversation } from "./conversation.js";
import { finishedTools, openRequests } from "./conversation-model.js";
import { h } from "./dom.js";
import { bootView } from "./boot.js";
import { awaitedView, sandboxEnvironment } from "./environment-build.js";
import { isOver } from "./environment-log.js";
import { followLog } from "./log.js";
import {
  badge,
  button,
  callout,
  code,
  facts,
  idTail,
  projectLink,
  prose,
  sessionBadge,
  time,
  trail,
} from "./parts.js";
import { suspendedView } from "./own-credentials.js";
import { followPorts, portButtons } from "./ports.js";
import { bring } from "./later.js";
import { isLive, parentLink, projectPath, sessionName } from "./project.js";
import { followSaved } from "./saved-view.js";
import { savedCallout } from "./saved-work.js";
import { followLines } from "./review.js";
import { lackedRole, mayOpenTerminal } from "./roles.js";
import { logSection, timeline } from "./session-life.js";
import { followWork, hasNewWork, workSummary, workView } from "./work.js";

/** @typedef {import("./wire.d.ts").Session} Session */
/** @typedef {import("./wire.d.ts").Sandbox} Sandbox */
/** @typedef {import("./wire.d.ts").ChangeRequest} ChangeRequest */

/**
 * @typedef {object} SessionPage
 * @property {import("./wire.d.ts").Project} project
 * @property {Session} session
 * @property {Sandbox | null} sandbox
 * @property {import("./wire.d.ts").OwnCredentials} own
 * @property {ChangeRequest[]} changes
 * @property {import("./wire.d.ts").Build | null} awaited the build for which the sandbox waits
 */

/**
 * @typedef {object} Following
 * @property {import("./log.js").Log} log
 * @property {import("./conversation-stream.js").Reading} conversation
 * @property {import("./work.js").Work} work
 * @property {import("./saved-view.js").SavedView} saved
 * @property {import("./ports.js").Ports} ports
 */

/** Where the reader's comments on lines go. @param {import("./wire.d.ts").Project} project @param {import("./wire.d.ts").Session} session */
const reviewedBy = (project, { id, status }) =>
  lackedRole("ask-agent") === null ? { project: project.id, session: id, isLive: isLive(status) } : null;

export const session = {
  /** @param {string[]} params @returns {Promise<SessionPage>} */
  load: async ([projectId = "", id = ""]) => {
    const project = projectPath(projectId);
    const path = `${project}/sessions/${encodeURIComponent(id)}`;
    const [owner, found, sandbox, own, changes] = await Promise.all([
      getJson(project),
      getJson(path),
      getJsonOrNull(`${path}/sandbox`),
      getJson(`${path}/own-credentials`),
      getJson(`${project}/change-requests?limit=200`),
    ]);
    const buildId = sandbox?.boot_started_at === null ? sandbox.environment?.build_id : undefined;
    const build = buildId !== undefined && (await getJsonOrNull(`${project}/environment/builds/${buildId}`));
    return {
      project: owner,
      session: found,
      sandbox,
      own,
      awaited: found.status === "provisioning" && build && !isOver(build) ? build : null,
      changes: changes.change_requests.filter(
        (/** @type {ChangeRequest} */ change) => change.session_id === id,
      ),
    };
  },

  /** The stream of its conversation has the project's news. */
  hearsProject: true,

  /** @param {string[]} params @param {() => void} changed @param {import("./live.js").Listener} project */
  follow: ([projectId = "", id = ""], changed, project) => {
    const path = `${projectPath(projectId)}/sessions/${encodeURIComponent(id)}`;
    const log = followLog(path, changed);
    const conversation = showConversation(path, changed, project);
    const work = followWork(path, changed);
    const saved = followSaved(path, changed);
    const ports = followPorts(path, changed);
    const endLines = followLines(changed);
    return {
      log,
      saved: saved.shown,
      work: work.work,
      ports: ports.found,
      conversation: conversation.reading,
      /** @param {HTMLElement} main @param {SessionPage} data @param {import("./wire.d.ts").Me | null} me */
      drawn: (main, data, me) => {
        conversation.show(main, { session: data.session, me: me?.user.name ?? "You" });
        work.see(data.session, data.changes, finishedTools(conversation.reading.conversation));
        saved.see(data.session);
        showTree(main, path);
        ports.see(data.session);
        const place = main.querySelector(".session-log");
        // The boot is shown as it happens, and its steps are in the log.
        log.want(data.session.status === "provisioning" || place?.hasAttribute("open") === true);
        place?.addEventListener("toggle", changed);
      },
      end: () => {
        endLines();
        ports.end();
        saved.end();
        work.end();
        log.end();
        conversation.end();
      },
    };
  },

  /** @param {SessionPage} data @param {Following | null} live */
  title: (data, live) =>
    `${data.session.pending_approvals > 0 || isAsked(live) ? "The agent asks · " : ""}${sessionName(data.session)} · ${data.session.status}`,

  /** @param {SessionPage} data @param {import("./wire.d.ts").Me | null} me @param {Following | null} live */
  view: ({ project, session: found, sandbox, own, changes, awaited }, me, live) => [
    h(
      "div",
      { class: "workspace", "data-key": "workspace" },
      h(
        "div",
        { class: "screen", "data-key": "screen" },
        ...screenView({ project, session: found, own, changes, awaited }, me, live),
      ),
      workView(live?.work ?? null, reviewedBy(project, found)),
    ),
    live?.saved.view(found),
    h(
      "div",
      { class: "columns", "data-key": "columns" },
      h(
        "section",
        {},
        h("h2", {}, "Timeline"),
        timeline(found, sandbox),
        found.status === "provisioning" && bootView(found, sandbox, live?.log ?? null),
      ),
      h("section", {}, h("h2", {}, "Details"), sessionFacts(found, sandbox, awaited), detailActions(found)),
    ),
    changes.length > 0 &&
      h(
        "section",
        { "data-key": "changes" },
        h("h2", {}, "Change requests"),
        changeRows(project.id, changes),
      ),
    // It is the conversation's first message.
    found.initial_prompt !== null &&
      live?.conversation.heard !== true &&
      h(
        "section",
        { "data-key": "prompt" },
        h("h2", {}, "Prompt"),
        h("pre", { class: "text", tabindex: 0 }, found.initial_prompt),
      ),
    logSection(found, sandbox, live?.log ?? null),
  ],
};

/** Shows the files of the workspace once the reader opens them. @param {HTMLElement} main @param {string} path */
const showTree = (main, path) => {
  const fold = main.querySelector("#workspace-files");
  const place = fold?.querySelector("[data-own]");
  if (!(fold instanceof HTMLDetailsElement) || !(place instanceof HTMLElement)) return;
  fold.addEventListener("toggle", async () => {
    if (!fold.open || place.childElementCount > 0 || place.dataset["wanted"] === path) return;
    place.dataset["wanted"] = path;
    const { showFiles } = await bring(async () => ({
      showFiles: (await import("./workspace-files.js")).showFiles,
    }));
    await showFiles(place, path);
  });
};

/**
 * The part above the fold.
 *
 * @param {Omit<SessionPage, "sandbox">} data
 * @param {import("./wire.d.ts").Me | null} me
 * @param {Following | null} live
 * @returns {import("./dom.js").Child[]}
 */
const screenView = ({ project, session: found, own, changes, awaited }, me, live) => [
  trail([
    ["Projects", "#/projects"],
    [project.name, projectLink(project.id)],
    [sessionName(found), null],
  ]),
  h(
    "header",
    { class: "head", "data-key": "head" },
    h(
      "div",
      {},
      h("h1", {}, sessionName(found), " ", sessionBadge(found)),
      h(
        "p",
        {},
        h("span", { class: "quiet started" }, idTail(found.id), " · started ", time(found.created_at)),
        " ",
        workSummary(live?.work ?? null),
        " ",
        h("a", { href: projectLink(project.id, `/sessions/${found.id}/state`) }, "Why this state?"),
      ),
    ),
    h("p", { class: "actions" }, actions(found, changes, live)),
  ),
  found.failure &&
    callout(
      "bad",
      h("strong", {}, found.failure.code),
      h("p", { class: "text" }, prose(found.failure.message)),
      found.failure.code === "environment_failed" &&
        h("p", {}, h("a", { href: projectLink(project.id, "/environment") }, "Show the environment")),
    ),
  suspendedView(found, own, me?.user.id),
  awaitedView(awaited),
  savedCallout(found),
  h(
    "section",
    { class: "conversation-section", "data-key": "conversation-section" },
    h("h2", { class: "unseen" }, "Conversation"),
    conversationPlace(),
  ),
];

/** Whether the agent waits for the reader. @param {Following | null} live */
const isAsked = (live) => {
  const conversation = live?.conversation.conversation;
  return (
    conversation !== undefined &&
    (conversation.turn.state === "requires_action" || openRequests(conversation).length > 0)
  );
};

/** The one that a person can merge next. @param {Session} found @param {ChangeRequest} change */
const changeLink = ({ project_id: project }, { number }) =>
  h(
    "a",
    { class: "button", href: projectLink(project, `/change-requests/${number}`), "data-key": "change" },
    `Change request #${number}`,
  );

/** @param {Session} found @param {ChangeRequest[]} changes @param {Following | null} live */
const actions = (found, changes, live) => [
  isLive(found.status) &&
    button("stop-session", "Stop session", { "data-project": found.project_id, "data-session": found.id }),
  ...portButtons(found, live?.ports ?? null),
  found.status === "running" &&
    button("open-port", "Open a port", { "data-project": found.project_id, "data-session": found.id }),
  found.status === "running" &&
    mayOpenTerminal() &&
    button("open-terminal", "Terminal", { "data-project": found.project_id, "data-session": found.id }),
  ["stopped", "failed"].includes(found.status) &&
    button("restart-session", "Restart", { "data-project": found.project_id, "data-session": found.id }),
  hasNewWork(live?.work ?? null) &&
    !changes.some((change) => change.status === "open") &&
    button("open-change-request", "Open a change request", {
      "data-project": found.project_id,
      "data-session": found.id,
      "data-title": sessionName(found),
    }),
  ...changes.filter((change) => change.status === "open").map((change) => changeLink(found, change)),
];

/** @param {Session} found */
const detailActions = (found) => {
  const input = {
    "data-project": found.project_id,
    "data-session": found.id,
    "data-title": sessionName(found),
  };
  return h(
    "p",
    { class: "actions" },
    button("rename-session", "Rename", { ...input, "data-name": found.name }),
    button("delete-session", "Delete", input),
  );
};

/** @param {Session} found @param {Sandbox | null} sandbox @param {SessionPage["awaited"]} awaited */
const sessionFacts = (found, sandbox, awaited) =>
  facts([
    ["Branch", code(found.branch_name)],
    [
      "Created from",
      h(
        "span",
        {},
        code(found.base_ref),
        found.base_commit && [" at ", code(found.base_commit.slice(0, 10))],
      ),
    ],
    ["Agent", found.agent_name],
    ["Model", found.agent_model],
    [
      "Trigger",
      found.trigger_slug && h("a", { href: projectLink(found.project_id, "/triggers") }, found.trigger_slug),
    ],
    [
      "Triggered by",
      found.fire_id &&
        h(
          "a",
          { href: projectLink(found.project_id, `/fires/${found.fire_id}`) },
          "run ",
          idTail(found.fire_id),
        ),
    ],
    ["Started by", parentLink(found)],
    ["Sandbox", sandbox && h("span", {}, sandbox.provider, " ", badge(sandbox.status))],
    [
      "Last turn",
      found.last_turn && h("span", {}, badge(found.last_turn.state), " ", time(found.last_turn.at)),
    ],
    ["Environment", sandbox && sandboxEnvironment(found.project_id, sandbox, awaited)],
    ["Sandbox failure", sandbox?.failure && `${sandbox.failure.code}: ${sandbox.failure.message}`],
  ]);

/** @param {string} projectId @param {ChangeRequest[]} changes */
export const changeRows = (projectId, changes) =>
  h(
    "ul",
    { class: "rows" },
    changes.map((change) =>
      h(
        "li",
        { class: "row", "data-key": String(change.number) },
        h(
          "span",
          { class: "row-main" },
          h(
            "a",
            { class: "cover", href: projectLink(projectId, `/change-requests/${change.number}`) },
            `#${change.number} ${change.title}`,
          ),
          h("span", { class: "quiet" }, shortRef(change.head_ref), " → ", change.base_ref),
        ),
        badge(change.status),
        h("span", { class: "row-side" }, time(change.created_at)),
      ),
    ),
  );

/** Session branches are named by a UUID. @param {string} ref */
export const shortRef = (ref) => (/^[0-9a-f-]{36}$/.test(ref) ? idTail(ref) : code(ref));
