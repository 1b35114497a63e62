/** Which page an address shows. */
import { h } from "../elements/dom.ts";
import { inProject } from "./in-project.ts";
import { lazyPage } from "./later.ts";
import { empty, refusedLink } from "../elements/parts.ts";
import type { Page } from "./page.ts";

/** No event, or few, tell what these show. */
const polled = (folder: string, name: string) => lazyPage(folder, name, { isPolled: true });
/** Events tell of nearly all that these show. */
const heard = (folder: string, name: string) => lazyPage(folder, name, { isHeard: true });
/** The stream of its conversation has the project's news. */
const session = lazyPage("sessions", "session", { hearsProject: true });
/** Readers who are not signed in see it, too. */
const join = lazyPage("people", "join", { isOpen: true });

/** The list of runs has the refused deliveries, too. Older links lead here. */
const REFUSED = {
  load: async ([id = ""]: string[]) => location.replace(refusedLink(id)),
  title: () => "Refused deliveries",
  view: () => [],
};

const ID = "([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})";

const ROUTES: [RegExp, Page][] = [
  [/^(?:#\/?)?$/, heard("home", "home")],
  [/^#\/projects$/, polled("projects", "projects")],
  [/^#\/new$/, lazyPage("projects", "newProject")],
  [/^#\/queue$/, heard("account", "queue")],
  [/^#\/automations$/, heard("automations", "allTriggers")],
  [/^#\/activity$/, heard("activity", "activity")],
  [/^#\/account$/, polled("account", "account")],
  [/^#\/operator$/, polled("operator", "operator")],
  [/^#\/people$/, polled("people", "people")],
  [/^#\/models$/, polled("providers", "providers")],
  [/^#\/browsers$/, polled("account", "browsers")],
  [/^#\/device$/, polled("account", "device")],
  [/^#\/audit$/, polled("audit", "audit")],
  // The code is a secret, and no parameter.
  [/^#\/join\/[\w-]+$/, join],
  [/^#\/joined$/, lazyPage("people", "joined")],
  [new RegExp(`^#/projects/${ID}$`), inProject(heard("projects", "sessions"), "")],
  [new RegExp(`^#/projects/${ID}/setup$`), inProject(polled("projects", "setup"), "")],
  [new RegExp(`^#/projects/${ID}/new$`), inProject(lazyPage("projects", "newSession"), "")],
  [new RegExp(`^#/projects/${ID}/triggers$`), inProject(lazyPage("automations", "triggers"), "/triggers")],
  [
    new RegExp(`^#/projects/${ID}/triggers/new$`),
    inProject(lazyPage("automations", "newTrigger"), "/triggers"),
  ],
  [
    new RegExp(`^#/projects/${ID}/triggers/([^/]+)/edit$`),
    inProject(lazyPage("automations", "editTrigger"), "/triggers"),
  ],
  [new RegExp(`^#/projects/${ID}/fires$`), inProject(heard("automations", "runs"), "/fires")],
  [new RegExp(`^#/projects/${ID}/fires/${ID}$`), inProject(lazyPage("automations", "run"), "/fires")],
  [new RegExp(`^#/projects/${ID}/webhook-refusals$`), REFUSED],
  [
    new RegExp(`^#/projects/${ID}/change-requests$`),
    inProject(heard("change-requests", "changeRequests"), "/change-requests"),
  ],
  [
    new RegExp(`^#/projects/${ID}/change-requests/([1-9][0-9]*)$`),
    inProject(lazyPage("change-requests", "changeRequest"), "/change-requests"),
  ],
  [new RegExp(`^#/projects/${ID}/usage$`), inProject(lazyPage("projects", "usage"), "/usage")],
  [
    new RegExp(`^#/projects/${ID}/environment$`),
    inProject(lazyPage("environments", "environment"), "/environment"),
  ],
  [
    new RegExp(`^#/projects/${ID}/environment/builds/${ID}$`),
    inProject(lazyPage("environments", "environmentBuild"), "/environment"),
  ],
  [new RegExp(`^#/projects/${ID}/secrets$`), inProject(lazyPage("projects", "secrets"), "/secrets")],
  [new RegExp(`^#/projects/${ID}/settings$`), inProject(lazyPage("settings", "settings"), "/settings")],
  [new RegExp(`^#/projects/${ID}/audit$`), inProject(lazyPage("audit", "projectAudit"), "/settings")],
  [new RegExp(`^#/projects/${ID}/connectors$`), inProject(lazyPage("connectors", "connectors"), "/settings")],
  [
    new RegExp(`^#/projects/${ID}/connectors/([a-z0-9-]+)$`),
    inProject(lazyPage("connectors", "connector"), "/settings"),
  ],
  [new RegExp(`^#/projects/${ID}/notifications$`), inProject(lazyPage("account", "receivers"), "/settings")],
  [
    new RegExp(`^#/projects/${ID}/notifications/${ID}$`),
    inProject(lazyPage("account", "receiver"), "/settings"),
  ],
  [new RegExp(`^#/projects/${ID}/sessions/${ID}$`), inProject(session, "")],
  [/^#\/account\/state$/, polled("state", "account")],
  [new RegExp(`^#/projects/${ID}/sessions/${ID}/state$`), inProject(polled("state", "session"), "")],
  [
    new RegExp(`^#/projects/${ID}/triggers/([^/]+)/state$`),
    inProject(polled("state", "trigger"), "/triggers"),
  ],
  [
    new RegExp(`^#/projects/${ID}/change-requests/([1-9][0-9]*)/state$`),
    inProject(polled("state", "changeRequest"), "/change-requests"),
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

/** @param path an address without its query */
export const pageAt = (path: string): { page: Page; params: string[] } => {
  for (const [pattern, page] of ROUTES) {
    const match = pattern.exec(path);
    if (match !== null) return { page, params: match.slice(1) };
  }
  return { page: NOWHERE, params: [] };
};
