/** A project's triggers, with their last and next fires, and the invalid entries. */
import { getJson, getJsonOrNull } from "./api.js";
import { h } from "./dom.js";
import { counted } from "./format.js";
import {
  badge,
  button,
  callout,
  code,
  commandLine,
  empty,
  fireLink,
  firesLink,
  facts,
  projectLink,
  prose,
  refusedLink,
  tag,
  time,
} from "./parts.js";
import { isArchived, projectHead, projectPath } from "./project.js";
import { lackedRole } from "./roles.js";
import { instantsView } from "./schedule.js";
import { eventsOf, sendersView } from "./senders.js";

/** @typedef {import("./wire.d.ts").Trigger} Trigger */
/** @typedef {import("./wire.d.ts").TriggerListing} TriggerListing */

/**
 * @typedef {object} TriggersPage
 * @property {import("./wire.d.ts").Project} project
 * @property {TriggerListing} listing
 * @property {Map<string, boolean> | null} secrets by name, whether the value is masked in logs; null: not this reader's to see
 */

export const triggers = {
  /** @param {string[]} params @returns {Promise<TriggersPage>} */
  load: async ([id = ""]) => {
    const [project, listing, secrets] = await Promise.all([
      getJson(projectPath(id)),
      getJson(`${projectPath(id)}/triggers`),
      getJsonOrNull(`${projectPath(id)}/secrets`, [403, 404]),
    ]);
    const masked = secrets?.secrets.map(
      (/** @type {{name: string, masked: boolean}} */ secret) =>
        /** @type {const} */ ([secret.name, secret.masked]),
    );
    return { project, listing, secrets: masked ? new Map(masked) : null };
  },

  /** @param {TriggersPage} data */
  title: ({ project }) => `Triggers of ${project.name}`,

  /** @param {TriggersPage} data */
  view: ({ project, listing, secrets }) => [
    ...projectHead(project, "/triggers"),
    pageActions(project, listing),
    listing.triggers_paused &&
      !isArchived(project) &&
      callout(
        "warn",
        "All triggers of this project are paused. Webhook deliveries get a 404 response. You can still run a trigger by hand. ",
        h("a", { href: refusedLink(project.id) }, "Show refused deliveries"),
      ),
    listing.manifest.stale &&
      callout(
        "warn",
        "platform.toml has a syntax error. The triggers of its last valid version stay active.",
      ),
    listing.scheduler?.late &&
      callout("warn", "The scheduler is behind. Cron triggers run later than their schedule says."),
    ...listing.warnings.map(({ code: kind, message }) =>
      callout("warn", tag(kind.replaceAll("_", " "), "warn"), " ", ...prose(message)),
    ),
    listing.errors.length > 0 && errorList(listing.errors),
    listing.triggers.length === 0
      ? empty(
          "No triggers yet.",
          "A trigger starts sessions on a schedule, or when another system sends a signed request. It is an entry of ",
          code("platform.toml"),
          " on the default branch.",
        )
      : h(
          "ul",
          { class: "cards wide", "data-key": "triggers" },
          listing.triggers.map((trigger) => card(trigger, { project, secrets })),
        ),
    listing.manifest.commit !== null &&
      h(
        "p",
        { class: "quiet", "data-key": "manifest" },
        "Triggers read from commit ",
        code(listing.manifest.commit.slice(0, 10)),
        " ",
        time(listing.manifest.synced_at),
      ),
  ],
};

/** @param {TriggersPage["project"]} project @param {TriggerListing} listing */
const pageActions = (project, { triggers_paused: paused, triggers: list }) =>
  h(
    "p",
    { class: "actions page-actions", "data-key": "actions" },
    !isArchived(project) &&
      lackedRole("propose-trigger") === null &&
      h("a", { class: "button primary", href: projectLink(project.id, "/triggers/new") }, "Add a trigger"),
    !isArchived(project) &&
      (paused || list.length > 0) &&
      button(
        paused ? "resume-triggers" : "pause-triggers",
        paused ? "Resume all triggers" : "Pause all triggers",
        { "data-project": project.id },
      ),
  );

/** @param {TriggerListing["errors"]} errors */
const errorList = (errors) =>
  h(
    "section",
    { class: "callout", "data-tone": "bad", "data-key": "errors" },
    h("h2", {}, `platform.toml has ${counted(errors.length, "error")}`),
    h(
      "ul",
      {},
      errors.map((error) =>
        h(
          "li",
          {},
          h(
            "strong",
            {},
            error.slug ?? (error.index === null ? "platform.toml" : `entry ${error.index + 1}`),
          ),
          error.path && [" ", code(error.path)],
          error.line !== null && ` line ${error.line}`,
          ": ",
          ...prose(error.message),
        ),
      ),
    ),
  );

/** Half of a character, which no address can hold. */
const LONE = /[\ud800-\udfff]/gu;

/** Why a trigger is in its state. @param {string} projectId @param {string} slug */
const stateLink = (projectId, slug) =>
  projectLink(projectId, `/triggers/${encodeURIComponent(slug.replace(LONE, "\ufffd"))}/state`);

/** @param {Trigger} trigger @param {Pick<TriggersPage, "project" | "secrets">} known */
const card = (trigger, { project, secrets }) =>
  h(
    "li",
    { class: "card", "data-key": trigger.slug },
    h(
      "header",
      { class: "card-head" },
      h(
        "div",
        {},
        h("h2", {}, trigger.name),
        h(
          "p",
          { class: "quiet" },
          code(trigger.slug),
          " ",
          tag(trigger.type),
          !trigger.enabled && tag("disabled", "warn"),
        ),
      ),
      cardActions(project, trigger),
    ),
    facts([
      ["Last run", time(trigger.last_fired_at)],
      ["Runs", ledger(project.id, trigger)],
      ["Next run", trigger.type === "cron" ? next(trigger, project) : null],
      ["State", h("a", { href: stateLink(project.id, trigger.slug) }, `Why ${trigger.slug} fires or waits`)],
      ["Schedule", trigger.cron ? h("span", {}, code(trigger.cron), ` ${trigger.timezone ?? "UTC"}`) : null],
      ["Agent", trigger.agent],
      ["Filter", trigger.filter ? filter(trigger.filter) : null],
      ["Secret", trigger.secret_env ? secret(trigger.secret_env, { project, secrets }) : null],
      ["Webhook", trigger.webhook_url ? commandLine(trigger.webhook_url) : null],
    ]),
    trigger.type === "webhook" && sendersView(trigger, { project, secrets }),
    h("details", {}, h("summary", {}, "Prompt"), h("pre", { class: "text", tabindex: 0 }, trigger.prompt)),
  );

/** @param {import("./wire.d.ts").Project} project @param {Trigger} trigger */
const cardActions = (project, trigger) => {
  const target = { "data-project": project.id, "data-slug": trigger.slug, "data-title": trigger.name };
  return h(
    "p",
    { class: "actions" },
    button("preview", "Preview", {
      ...target,
      "data-type": trigger.type,
      "data-upcoming": trigger.upcoming.join(" "),
      "data-events": eventsOf(trigger).join(" "),
      "aria-label": `Preview ${trigger.name}`,
    }),
    !isArchived(project) &&
      button("fire", "Run now", { ...target, "aria-label": `Run now: ${trigger.name}` }),
  );
};

/**
 * Its newest row of the ledger, with any status, and a link to the others. @param {string} projectId @param {Trigger}
 * trigger
 */
const ledger = (projectId, { slug, name, last_fire: newest }) =>
  h(
    "span",
    { class: "parts" },
    newest &&
      h(
        "span",
        {},
        badge(newest.status),
        " ",
        h("a", { href: fireLink(projectId, newest.id) }, time(newest.at)),
      ),
    h("a", { href: firesLink(projectId, slug), "aria-label": `All runs of ${name}` }, "all runs"),
  );

/** Its next due instants, soonest first. @param {Trigger} trigger @param {import("./wire.d.ts").Project} project */
const next = ({ enabled, next_fire_at: soonest, upcoming, timezone = "UTC" }, project) => {
  if (isArchived(project)) return h("span", { class: "quiet" }, "none: the project is archived");
  if (!enabled) return h("span", { class: "quiet" }, "disabled");
  if (soonest === null) return h("span", { class: "quiet" }, project.triggers_paused ? "paused" : "never");
  return instantsView(upcoming.length > 0 ? upcoming : [soonest], timezone);
};

/** The conditions on a delivery. @param {import("./wire.d.ts").WebhookFilter} filter */
const filter = ({ events, branches, if: conditions, ...includes }) =>
  h(
    "ul",
    { class: "plain" },
    events && h("li", {}, "event ", listed(events)),
    branches && h("li", {}, "branch ", listed(branches)),
    Object.entries(conditions ?? {}).map(([path, value]) =>
      h("li", {}, code(path), " = ", code(JSON.stringify(value))),
    ),
    includes.deletions && h("li", {}, "also deletions of branches and tags"),
    includes.own_pushes && h("li", {}, "also pushes to sessions' branches"),
    includes.own_requests && h("li", {}, "also the service's own pull requests"),
    includes.own_comments && h("li", {}, "also the service's own comments"),
  );

/** @param {string[]} names */
const listed = (names) => names.map((name, index) => h("span", {}, index > 0 && ", ", code(name)));

/** @param {string} name @param {Pick<TriggersPage, "project" | "secrets">} known */
const secret = (name, { project, secrets }) =>
  h(
    "span",
    { class: "parts" },
    h("span", {}, code(name), secrets !== null && !secrets.has(name) && [" ", tag("has no value", "bad")]),
    secrets?.get(name) === false && [
      tag("not masked in logs", "bad"),
      h("span", { class: "quiet" }, "The value is shorter than 6 bytes. Set a longer one."),
    ],
    secrets !== null &&
      button("set-secret", secrets.has(name) ? "Replace" : "Set", {
        class: "plain",
        "data-project": project.id,
        "data-secret": name,
        "data-service": "yes",
        "data-rotates": secrets.has(name) ? "yes" : "",
        "aria-label": `${secrets.has(name) ? "Replace" : "Set"} the secret ${name}`,
      }),
  );
