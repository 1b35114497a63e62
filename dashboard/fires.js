/** The ledger: started, waiting and skipped fires with reasons; and a single fire with its request and its prompt. */
import { getJson, getList } from "./api.js";
import { h } from "./dom.js";
import { counted, moment } from "./format.js";
import { FIRE_STATUSES } from "./live.js";
import {
  badge,
  button,
  callout,
  code,
  empty,
  facts,
  idTail,
  pick,
  projectLink,
  prose,
  tag,
  time,
  trail,
} from "./parts.js";
import { projectHead, projectPath } from "./project.js";
import { prettyJson } from "./text.js";

/** @typedef {import("./wire.d.ts").Project} Project */
/** @typedef {import("./wire.d.ts").Fire} Fire */
/** @typedef {import("./wire.d.ts").FireDetail} FireDetail */

/** How much a browser shows at once without effort, in UTF-16 units. Requests may be far larger. */
const BODY_SHOWN = 256 * 1024;

/** Texts for the service's reason codes. Other reasons are texts already. */
const REASONS = new Map([
  ["account_session_cap", "All sessions of the account were in use."],
  ["missed", "The run was due while the service could not start it, and is now too old to catch up."],
  ["paused", "The project's triggers were paused."],
  ["overlapped", "A later run of the same trigger replaced it in the queue."],
  ["filtered", "The delivery does not match the trigger's filter."],
  ["deletion", "The delivery tells of a deleted branch or tag."],
  ["own_push", "The delivery is a push to a session's own branch."],
  ["own_request", "The delivery is about a pull request that the service opened or updated."],
  ["own_comment", "The delivery is a comment of the service itself."],
  ["same_delivery", "The delivery came again. A replay runs the first one's request again."],
  ["queue_ttl", "The run waited too long for a free session."],
  ["project_archived", "The project was archived."],
  ["prompt_too_large", "The rendered prompt was too large."],
]);

/** @param {string} reason */
const reasonText = (reason) => REASONS.get(reason) ?? reason;

/** The ledger of a project, or of one of its triggers. @param {string} projectId @param {string} [slug] */
export const firesLink = (projectId, slug) =>
  projectLink(projectId, slug === undefined ? "/fires" : `/fires?${new URLSearchParams({ slug })}`);

/** @param {string} projectId @param {string} id */
export const fireLink = (projectId, id) => projectLink(projectId, `/fires/${id}`);

/**
 * @typedef {object} Ledger
 * @property {Project} project
 * @property {Fire[]} fires
 * @property {boolean} more
 * @property {string[]} slugs to choose from
 * @property {{status: string, slug: string}} filter "" for all
 */

export const fires = {
  /** @param {string[]} params @param {import("./app.js").Extent} extent @returns {Promise<Ledger>} */
  load: async ([id = ""], { pages, query }) => {
    const asked = query.get("status") ?? "";
    const filter = { status: FIRE_STATUSES.includes(asked) ? asked : "", slug: query.get("slug") ?? "" };
    const wanted = new URLSearchParams(Object.entries(filter).filter(([, value]) => value !== ""));
    // A reader who looks for failed runs wants those, too, whose session failed.
    if (filter.status === "failed") {
      wanted.delete("status");
      wanted.set("outcome", "failed");
    }
    const [project, { items, more }, listing] = await Promise.all([
      getJson(projectPath(id)),
      getList(`${projectPath(id)}/fires${wanted.size === 0 ? "" : `?${wanted}`}`, "fires", pages),
      // If the filters' options cannot be read, the ledger is still shown.
      getJson(`${projectPath(id)}/triggers`).catch(() => ({ triggers: [] })),
    ]);
    const slugs = listing.triggers.map((/** @type {{slug: string}} */ trigger) => trigger.slug);
    return { project, fires: items, more, slugs, filter };
  },

  /** @param {Ledger} data */
  title: ({ project }) => `Runs of ${project.name}`,

  /** @param {Ledger} data */
  view: ({ project, fires: list, more, slugs, filter }) => [
    ...projectHead(project, "/fires"),
    filters(slugs, filter),
    // Announces the change of the list to readers who cannot see it.
    h(
      "p",
      { class: "unseen", role: "status", "data-key": "count" },
      `${counted(list.length, "run")}${more ? ", and older ones" : ""}`,
    ),
    list.length > 0
      ? h(
          "ul",
          { class: "rows", "data-key": "fires" },
          list.map((fire) => row(project.id, fire)),
        )
      : nothing(project.id, filter),
    more && h("p", { class: "more", "data-key": "more" }, button("more", "Show older runs")),
  ],
};

/** @param {string[]} slugs @param {Ledger["filter"]} filter */
const filters = (slugs, filter) => {
  // A trigger that left the manifest keeps its rows.
  const known = filter.slug === "" || slugs.includes(filter.slug) ? slugs : [...slugs, filter.slug];
  return h(
    "div",
    { class: "filters", role: "group", "aria-label": "Filter", "data-key": "filters" },
    pick({
      name: "status",
      label: "Status",
      all: "All",
      options: FIRE_STATUSES,
      chosen: filter.status,
      words: { fired: "session started" },
    }),
    pick({ name: "slug", label: "Trigger", all: "All", options: known, chosen: filter.slug }),
  );
};

/** @param {string} projectId @param {Ledger["filter"]} filter */
const nothing = (projectId, filter) =>
  filter.status === "" && filter.slug === ""
    ? empty(
        "No runs yet.",
        "A trigger runs when its webhook receives a delivery, when its schedule is due, or when you run it by hand. ",
        h("a", { href: projectLink(projectId, "/triggers") }, "Show the triggers"),
      )
    : empty("No runs match the filter.", h("a", { href: firesLink(projectId) }, "Show all runs"));

/** @param {string} projectId @param {Fire} fire */
const row = (projectId, fire) =>
  h(
    "li",
    { class: "row", "data-key": fire.id },
    h(
      "span",
      { class: "row-main" },
      h(
        "span",
        { class: "named" },
        h(
          "a",
          {
            class: "cover",
            href: fireLink(projectId, fire.id),
            "aria-label": `${fire.trigger_slug}, ${fire.kind}, ${resultOf(fire)}, ${moment(instantOf(fire))}`,
          },
          fire.trigger_slug,
        ),
        tag(fire.kind),
      ),
      fire.outcome?.state === "failed" &&
        fire.outcome.code !== null &&
        h("span", { class: "reason" }, "The session failed: ", code(fire.outcome.code)),
      fire.reason &&
        h("span", { class: fire.status === "failed" ? "reason" : "quiet" }, prose(reasonText(fire.reason))),
      origins(projectId, fire),
    ),
    badge(resultOf(fire)),
    h(
      "span",
      { class: "row-side" },
      h(
        "span",
        {},
        fire.scheduled_for !== null && h("span", { class: "quiet" }, "due "),
        time(instantOf(fire)),
      ),
      fire.session_id && sessionLink(projectId, fire.session_id),
    ),
  );

/** What became of its session; without one, of the run. @param {Fire} fire */
const resultOf = ({ status, outcome }) => outcome?.state ?? status;

/** Where it came from, and how many attempts it took. @param {string} projectId @param {Fire} fire */
const origins = (projectId, fire) => {
  const parts = [
    fire.delivery_id && h("span", {}, "delivery ", code(fire.delivery_id)),
    fire.attempts > 1 && `${fire.attempts} attempts`,
    fire.replay_of && replayOf(projectId, fire.replay_of),
  ].filter(Boolean);
  return (
    parts.length > 0 &&
    h(
      "span",
      { class: "quiet parts" },
      parts.map((part) => h("span", {}, part)),
    )
  );
};

/** The due instant, otherwise the time of arrival. @param {Fire} fire */
const instantOf = (fire) => fire.scheduled_for ?? fire.received_at;

/** @param {string} projectId @param {string} id */
const sessionLink = (projectId, id) =>
  h("a", { href: projectLink(projectId, `/sessions/${id}`) }, "session ", idTail(id));

/** @param {string} projectId @param {string} id */
const replayOf = (projectId, id) => h("a", { href: fireLink(projectId, id) }, "replay of ", idTail(id));

/** @typedef {{project: Project, fire: FireDetail}} FirePage */

export const fire = {
  /** @param {string[]} params @returns {Promise<FirePage>} */
  load: async ([projectId = "", id = ""]) => {
    const [project, found] = await Promise.all([
      getJson(projectPath(projectId)),
      getJson(`${projectPath(projectId)}/fires/${encodeURIComponent(id)}`),
    ]);
    return { project, fire: found };
  },

  /** @param {FirePage} data */
  title: ({ fire: found }) => `Run of ${found.trigger_slug} · ${resultOf(found)}`,

  /** @param {FirePage} data */
  view: ({ project, fire: found }) => [
    trail([
      ["Projects", "#/"],
      [project.name, projectLink(project.id)],
      ["Runs", firesLink(project.id)],
      [found.trigger_slug, null],
    ]),
    h(
      "header",
      { class: "head", "data-key": "head" },
      h("h1", {}, found.trigger_slug, " ", badge(resultOf(found))),
      h("p", { class: "quiet" }, idTail(found.id), " · ", time(instantOf(found))),
      actions(project.id, found),
    ),
    found.reason && why(found, found.reason),
    h("section", { "data-key": "facts" }, h("h2", {}, "Details"), fireFacts(project.id, found)),
    h("section", { "data-key": "prompt" }, h("h2", {}, "Prompt"), promptOf(found)),
    found.kind === "cron" && found.request === null
      ? null
      : h("section", { "data-key": "request" }, h("h2", {}, "Request"), requestOf(found)),
  ],
};

/** @param {string} projectId @param {FireDetail} found */
const actions = (projectId, found) => {
  const target = { "data-project": projectId, "data-fire": found.id, "data-title": found.trigger_slug };
  // A replay of a cron or manual fire needs no stored request. A webhook's prompt is rendered from it, a duplicate's from the first one's.
  const isLost = found.kind === "webhook" && found.request === null && !found.duplicate_of;
  return h(
    "p",
    { class: "actions" },
    button("replay", "Replay", { ...target, disabled: isLost, "aria-describedby": isLost && "not-stored" }),
    found.status === "queued" && button("cancel-fire", "Cancel", target),
    canPreview(found) &&
      button("preview-request", "Preview", {
        ...target,
        "data-slug": found.trigger_slug,
        title: "The prompt that the trigger renders today for this request",
      }),
    isLost &&
      h(
        "span",
        { id: "not-stored", class: "quiet" },
        "This run cannot be replayed because its request is not stored.",
      ),
  );
};

/** Whether its request fits the form of a preview. @param {FireDetail} found */
const canPreview = ({ kind, request }) =>
  kind === "webhook" && request !== null && request.encoding === "utf8" && request.body.length <= BODY_SHOWN;

/** @param {Fire} found @param {string} reason */
const why = (found, reason) => {
  if (found.status === "queued") {
    return callout(
      "warn",
      "Waits for a free session. ",
      ...prose(reasonText(reason)),
      " ",
      h("a", { href: "#/queue" }, "Show the queue"),
    );
  }
  const tone = found.status === "failed" || found.status === "expired" ? "bad" : "";
  return callout(tone, h("p", { class: "text" }, prose(reasonText(reason))));
};

/** @param {string} projectId @param {FireDetail} found */
const fireFacts = (projectId, found) =>
  facts([
    ["Trigger", h("a", { href: firesLink(projectId, found.trigger_slug) }, found.trigger_slug)],
    ["Kind", found.kind],
    ["Due", found.scheduled_for && moment(found.scheduled_for)],
    ["Received", moment(found.received_at)],
    ["Session", found.session_id && sessionLink(projectId, found.session_id)],
    ["Failed with", found.outcome?.state === "failed" && found.outcome.code && code(found.outcome.code)],
    ["Attempts", String(found.attempts)],
    ["Delivery", found.delivery_id && code(found.delivery_id)],
    ["Verified with", found.verified_with === "previous" && "the previous value of the secret"],
    [
      "Replay of",
      found.replay_of && h("a", { href: fireLink(projectId, found.replay_of) }, idTail(found.replay_of)),
    ],
    [
      "Duplicate of",
      found.duplicate_of &&
        h("a", { href: fireLink(projectId, found.duplicate_of) }, idTail(found.duplicate_of)),
    ],
    // The text is above; this is the code to search for.
    ["Reason", found.reason && REASONS.has(found.reason) && code(found.reason)],
  ]);

/** @param {FireDetail} found */
const promptOf = ({ prompt }) => {
  if (prompt === null) return h("p", { class: "quiet" }, "No prompt is stored for this run.");
  return prompt === ""
    ? h("p", { class: "quiet" }, "The prompt is empty.")
    : h("pre", { class: "text", tabindex: 0, "aria-label": "Prompt" }, prompt);
};

/** @param {FireDetail} found */
const requestOf = ({ request }) => {
  if (request === null) {
    return h(
      "p",
      { class: "quiet" },
      "The request is not stored. It was too large, or it was removed to make room for newer requests.",
    );
  }
  const { headers, body, encoding } = request;
  return h(
    "div",
    { class: "request" },
    facts([
      ["Content-Type", headers?.content_type && code(headers.content_type)],
      ["User-Agent", headers?.user_agent && code(headers.user_agent)],
      ["X-Forwarded-For", headers?.forwarded_for && code(headers.forwarded_for)],
    ]),
    encoding === "base64" && h("p", { class: "quiet" }, "The body is not text. It is shown in base64."),
    body === ""
      ? h("p", { class: "quiet" }, "The body is empty.")
      : h("pre", { class: "text", tabindex: 0, "aria-label": "Body" }, shownBody(request)),
    body.length > BODY_SHOWN &&
      h("p", { class: "quiet" }, `${body.length - BODY_SHOWN} more characters are not shown.`),
  );
};

/** @param {{body: string, encoding: string}} request */
const shownBody = ({ body, encoding }) => {
  if (body.length > BODY_SHOWN) return body.slice(0, BODY_SHOWN);
  return (encoding === "utf8" ? prettyJson(body) : null) ?? body;
};
