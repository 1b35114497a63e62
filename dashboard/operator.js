/** The operator's page: what is wrong with the service and what to do, then the state of each part. */
import { getJsonOrNull } from "./api.js";
import { h } from "./dom.js";
import { counted, duration, size } from "./format.js";
import { button, callout, code, empty, facts, prose, tag, time } from "./parts.js";

/** @typedef {import("./wire.d.ts").Service} Service */
/** @typedef {{service: Service | null}} Operator null: this reader is not the operator */

const operator = {
  /** @returns {Promise<Operator>} */
  load: async () => ({ service: await getJsonOrNull("/v1/operator", [403, 404]) }),

  /** @param {Operator} data */
  title: ({ service }) =>
    service === null || service.problems.length === 0
      ? "Operator"
      : `${counted(service.problems.length, "problem")} · Operator`,

  /** @param {Operator} data */
  view: ({ service }) =>
    service === null
      ? [
          h("h1", { "data-key": "heading" }, "Operator"),
          empty(
            "This page is for the operator.",
            "Sign in with a token of the account that the first start of the service created. The token must reach the whole account.",
          ),
        ]
      : serviceView(service),
};

/** @param {Service} service */
const serviceView = (service) => [
  h(
    "header",
    { class: "head", "data-key": "heading" },
    h("h1", {}, "Operator"),
    h(
      "p",
      { class: "quiet" },
      `Version ${service.version} · Node.js ${service.runtime_version} · started `,
      time(service.started_at),
    ),
  ),
  problemsView(service.problems),
  h(
    "div",
    { class: "columns even", "data-key": "state" },
    section("Database", databaseFacts(service)),
    section("Queues", queueFacts(service)),
    section("Boots of the last 24 hours", bootFacts(service)),
    section("Scheduler and recovery", dutyFacts(service)),
  ),
  section("Sandboxes of this node", ...sandboxesView(service.sandboxes)),
  section("Nodes", nodesView(service)),
  section("Background work of this node", dutiesView(service.duties)),
  section("Actors that moved in the last hour", actorsView(service.actors)),
];

/** @param {string} title @param {...(import("./dom.js").Child)} children */
const section = (title, ...children) => h("section", { "data-key": title }, h("h2", {}, title), ...children);

/** @param {Service["problems"]} problems */
const problemsView = (problems) =>
  problems.length === 0
    ? h(
        "div",
        { "data-key": "problems" },
        callout("good", h("strong", {}, "Everything works. "), "The service has found no problem."),
      )
    : h(
        "section",
        { "data-key": "problems", "aria-label": "Problems" },
        h("h2", {}, counted(problems.length, "problem")),
        problems.map(({ code: name, message, remedy }) =>
          callout(
            "bad",
            h("strong", {}, prose(message)),
            h("p", {}, prose(remedy)),
            h("p", { class: "quiet" }, code(name)),
          ),
        ),
      );

/** @param {Service} service */
const databaseFacts = ({ database }) =>
  facts([
    ["Server", `Postgres ${database.version}`],
    ["Size", size(database.size_bytes)],
    ["Connections", `${database.connections} of ${database.connections_max}`],
  ]);

/** @param {import("./wire.d.ts").Backlog} backlog */
const backlog = ({ waiting, oldest_at }) =>
  h("span", {}, String(waiting), oldest_at !== null && [", oldest ", time(oldest_at)]);

/** @param {Service} service */
const queueFacts = ({ queues, ownerless_sessions, stale_manifests }) =>
  facts([
    ["Queued runs", backlog(queues.fires)],
    ["Commands of actors", backlog(queues.commands)],
    ["Sessions without an owner", String(ownerless_sessions)],
    ["Manifests that cannot be read", String(stale_manifests)],
  ]);

/** @param {import("./wire.d.ts").Spread | null} times */
const spread = (times) =>
  times === null ? "no boot yet" : `${duration(times.p50_ms)} median, ${duration(times.p95_ms)} for 95 %`;

/** @param {Service} service */
const bootFacts = ({ boots }) =>
  facts([
    ["Started", String(boots.started)],
    ["Waiting time", spread(boots.waited)],
    ["Boot time", spread(boots.booted)],
    [
      "Failed",
      boots.failures.length === 0
        ? "none"
        : boots.failures.map((failure) => `${failure.count} ${failure.code}`).join(", "),
    ],
  ]);

/** @param {Service} service */
const dutyFacts = ({ scheduler, duties }) =>
  facts([
    ["Scheduler ran", h("span", {}, time(scheduler.ticked_at), scheduler.late && tag("late", "warn"))],
    ["Scheduled triggers", String(scheduler.scheduled)],
    ...["recovery", "orphans"].map((name) => {
      const duty = duties.find((one) => one.name === name);
      /** @type {[string, import("./dom.js").Child]} */
      const row = [
        name === "recovery" ? "Recovery ran" : "Search for orphans",
        h("span", {}, time(duty?.last_run_at, "not yet"), duty?.failed === true && tag("crashed", "bad")),
      ];
      return row;
    }),
  ]);

/** @param {Service["sandboxes"]} sandboxes */
const sandboxesView = ({ provider, summary, booting, waiting, doctor }) => [
  facts([
    ["Provider", h("span", {}, code(provider), " ", summary)],
    ["Booting", `${booting}, and ${waiting} waiting for a place`],
    ["Examined", time(doctor?.at, "not since this start")],
  ]),
  doctor !== null && doctor.problem !== null && callout("bad", prose(doctor.problem)),
  doctor !== null &&
    table(
      ["Isolation", "Enforced by", "Detail"],
      doctor.findings.map(({ subject, how, detail }) => [
        subject,
        how === "not at all" ? tag(how, "warn") : how,
        detail,
      ]),
    ),
  h("p", { class: "actions" }, button("examine", "Examine the sandboxes")),
];

/** @param {Service} service */
const nodesView = ({ nodes, node_id }) =>
  table(
    ["Node", "State", "Address", "Sandboxes"],
    nodes.map(({ id, url, dead_at, sandboxes }) => [
      h("span", {}, code(id), id === node_id && tag("answers this page")),
      dead_at === null ? "alive" : h("span", {}, tag("dead", "bad"), " ", time(dead_at)),
      url ?? "none yet",
      String(sandboxes),
    ]),
  );

/** @param {Service["duties"]} duties */
const dutiesView = (duties) =>
  table(
    ["Work", "Every", "Last run", "Took", "Crashes"],
    duties.map(({ name, about, period_ms, last_run_at, took_ms, failed, failures }) => [
      h("span", {}, code(name), h("span", { class: "quiet" }, ` ${about}`)),
      duration(period_ms),
      h("span", {}, time(last_run_at, "not yet"), failed && tag("crashed", "bad")),
      took_ms === null ? "" : duration(took_ms),
      String(failures),
    ]),
  );

/** @param {Service["actors"]} actors */
const actorsView = (actors) =>
  actors.length === 0
    ? h("p", { class: "quiet" }, "None.")
    : table(
        ["Actor", "State", "Last event", "Commands", "When"],
        actors.map(({ kind, id, state, event, commands, at }) => [
          h("span", {}, kind.replaceAll("_", " "), " ", code(id)),
          tag(state.replaceAll("_", " ")),
          code(event),
          commands.join(", "),
          time(at),
        ]),
      );

/** A wide table scrolls by itself. @param {string[]} heads @param {import("./dom.js").Child[][]} rows */
const table = (heads, rows) =>
  h(
    "div",
    { class: "table-frame", tabindex: 0, role: "region", "aria-label": heads.join(", ") },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          heads.map((head) => h("th", { scope: "col" }, head)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((cells) =>
          h(
            "tr",
            {},
            cells.map((cell) => h("td", {}, cell)),
          ),
        ),
      ),
    ),
  );

export const pages = { operator };
