/** Which page an address shows. */
import { h } from "../elements/dom.ts";
import { framed } from "./framed.ts";
import { later, remade } from "./later.ts";
import { empty, refusedLink } from "../elements/parts.ts";

const [account, browsers, device, notification, notifications, queue] = [
  "account",
  "browsers",
  "device",
  "notification",
  "notifications",
  "queue",
].map((name) => remade("account", name));
const home = remade("home", "home");
const [newProject, newSession, projects, secrets, sessions, usage] = [
  "newProject",
  "newSession",
  "projects",
  "secrets",
  "sessions",
  "usage",
].map((name) => remade("projects", name));
/** No event says that somebody pushed. */
const setup = remade("projects", "setup", { isPolled: true });
const operator = remade("operator", "operator");
const [runs, run, triggers, newTrigger, editTrigger] = [
  "runs",
  "run",
  "triggers",
  "newTrigger",
  "editTrigger",
].map((name) => remade("automations", name));
const [changeRequests, changeRequest] = ["changeRequests", "changeRequest"].map((name) =>
  remade("change-requests", name),
);
const audit = remade("audit", "audit");
const projectAudit = remade("audit", "projectAudit");
/** The stream of its conversation has the project's news. */
const session = remade("sessions", "session", { hearsProject: true });
const people = remade("people", "people");
/** Readers who are not signed in see it, too. */
const join = remade("people", "join", { isOpen: true });
const joined = remade("people", "joined");
const providers = remade("providers", "providers");
const [environment, environmentBuild] = ["environment", "environmentBuild"].map((name) =>
  remade("environments", name),
);
const [connectors, connector] = ["connectors", "connector"].map((name) => remade("connectors", name));
/** The state's pages are polled: few events tell of them. @param {string} name */
const stateOf = (name) => later(() => import("../state/state.js"), name, { isPolled: true });
const settings = remade("settings", "settings");

/** The list of runs has the refused deliveries, too. Older links lead here. */
const REFUSED = {
  /** @param {string[]} params */
  load: async ([id = ""]) => location.replace(refusedLink(id)),
  title: () => "Refused deliveries",
  view: () => [],
};

const ID = "([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})";

/** @type {[RegExp, import("./page.ts").Page][]} */
const ROUTES = [
  [/^(?:#\/?)?$/, home],
  [/^#\/projects$/, projects],
  [/^#\/new$/, newProject],
  [/^#\/queue$/, queue],
  [/^#\/account$/, account],
  [/^#\/operator$/, operator],
  [/^#\/people$/, people],
  [/^#\/models$/, providers],
  [/^#\/browsers$/, browsers],
  [/^#\/device$/, device],
  [/^#\/audit$/, audit],
  // The code is a secret, and no parameter.
  [/^#\/join\/[\w-]+$/, join],
  [/^#\/joined$/, joined],
  [new RegExp(`^#/projects/${ID}$`), framed(sessions, "")],
  [new RegExp(`^#/projects/${ID}/setup$`), framed(setup, "")],
  [new RegExp(`^#/projects/${ID}/new$`), framed(newSession, "")],
  [new RegExp(`^#/projects/${ID}/triggers$`), framed(triggers, "/triggers")],
  [new RegExp(`^#/projects/${ID}/triggers/new$`), framed(newTrigger, "/triggers")],
  [new RegExp(`^#/projects/${ID}/triggers/([^/]+)/edit$`), framed(editTrigger, "/triggers")],
  [new RegExp(`^#/projects/${ID}/fires$`), framed(runs, "/fires")],
  [new RegExp(`^#/projects/${ID}/fires/${ID}$`), framed(run, "/fires")],
  [new RegExp(`^#/projects/${ID}/webhook-refusals$`), REFUSED],
  [new RegExp(`^#/projects/${ID}/change-requests$`), framed(changeRequests, "/change-requests")],
  [new RegExp(`^#/projects/${ID}/change-requests/([1-9][0-9]*)$`), framed(changeRequest, "/change-requests")],
  [new RegExp(`^#/projects/${ID}/usage$`), framed(usage, "/usage")],
  [new RegExp(`^#/projects/${ID}/environment$`), framed(environment, "/environment")],
  [new RegExp(`^#/projects/${ID}/environment/builds/${ID}$`), framed(environmentBuild, "/environment")],
  [new RegExp(`^#/projects/${ID}/secrets$`), framed(secrets, "/secrets")],
  [new RegExp(`^#/projects/${ID}/settings$`), framed(settings, "/settings")],
  [new RegExp(`^#/projects/${ID}/audit$`), framed(projectAudit, "/settings")],
  [new RegExp(`^#/projects/${ID}/connectors$`), framed(connectors, "/settings")],
  [new RegExp(`^#/projects/${ID}/connectors/([a-z0-9-]+)$`), framed(connector, "/settings")],
  [new RegExp(`^#/projects/${ID}/notifications$`), framed(notifications, "/settings")],
  [new RegExp(`^#/projects/${ID}/notifications/${ID}$`), framed(notification, "/settings")],
  [new RegExp(`^#/projects/${ID}/sessions/${ID}$`), framed(session, "")],
  [/^#\/account\/state$/, stateOf("account")],
  [new RegExp(`^#/projects/${ID}/sessions/${ID}/state$`), framed(stateOf("session"), "")],
  [new RegExp(`^#/projects/${ID}/triggers/([^/]+)/state$`), framed(stateOf("trigger"), "/triggers")],
  [
    new RegExp(`^#/projects/${ID}/change-requests/([1-9][0-9]*)/state$`),
    framed(stateOf("changeRequest"), "/change-requests"),
  ],
];

const NOWHERE = {
  load: async () => ({}),
  title: () => "Page not found",
  view: () => [
    h("h1", { class: "unseen" }, "No such page"),
    empty("Page not found.", h("a", { href: "#/projects" }, "Show the projects")),
  ],
};

/** @param {string} path an address without its query @returns {{page: import("./page.ts").Page, params: string[]}} */
export const pageAt = (path) => {
  for (const [pattern, page] of ROUTES) {
    const match = pattern.exec(path);
    if (match !== null) return { page, params: match.slice(1) };
  }
  return { page: NOWHERE, params: [] };
};
