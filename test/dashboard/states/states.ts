/** Every page and state that the fake service can show: for the check of accessibility, and for pictures to look at. */
import type { Page } from "playwright-core";
import { openBarMenu } from "../browser-window.ts";
import type { World } from "../fakes/fake-service.ts";
import { FAILED_FIRE_ID, FIRED_ID, PROJECT_ID, QUEUED_ID, SESSION_ID } from "../samples/sample-project.ts";
import { having, chosen, completing, type State } from "./state-of-a-page.ts";
import { STATES_OF_CONNECTORS } from "./states-of-connectors.ts";
import { STATES_OF_ENVIRONMENT } from "./states-of-environment.ts";
import { none, STATES_OF_HOME, withTurns } from "./states-of-home.ts";
import { STATES_OF_PEOPLE } from "./states-of-people.ts";
import { STATES_OF_RECEIVERS } from "./states-of-receivers.ts";
import { STATES_OF_SETTINGS } from "./states-of-settings.ts";
import { STATES_OF_WORK } from "./states-of-work.ts";

const PROJECT = `#/projects/${PROJECT_ID}`;

const press = (key: string) => (page: Page) => page.keyboard.press(key);

/** The sessions were started by the agent of another one. */
const asChild = (world: World): void => {
  const parent = "01995f2c-1e5b-7b0e-8a44-b7d15c2a9001";
  world.sessions = world.sessions.map((one) => ({ ...one, parent_session_id: parent }));
};

const inSession = { hash: `${PROJECT}/sessions/${SESSION_ID}`, shows: ".items > .item" };
const inSessions = { hash: PROJECT, shows: ".row" };

export const STATES: readonly State[] = [
  ...STATES_OF_CONNECTORS,
  ...STATES_OF_ENVIRONMENT,
  ...STATES_OF_PEOPLE,
  ...STATES_OF_RECEIVERS,
  ...STATES_OF_SETTINGS,
  ...STATES_OF_WORK,
  { name: "sign-in", hash: "", shows: "form", signedIn: false },
  ...STATES_OF_HOME,
  { name: "projects", hash: "#/projects", shows: ".card" },
  { name: "projects-empty", hash: "#/projects", shows: ".empty", change: none },
  {
    name: "problem",
    hash: "#/",
    shows: "[role=alert]",
    change: having(() => ({ broken: { status: 503, error: "The database cannot be reached." } })),
  },
  { name: "nowhere", hash: "#/nothing", shows: ".empty" },
  { name: "automations", hash: "#/automations", shows: ".row" },
  {
    name: "automations-paused",
    hash: "#/automations",
    shows: ".row",
    change: (world) => {
      world.listing = {
        ...world.listing,
        triggers_paused: true,
        manifest: { ...Object(world.listing["manifest"]), stale: true },
      };
    },
  },
  { name: "automations-none", hash: "#/automations", shows: ".empty", change: none },
  { name: "activity", hash: "#/activity", shows: ".row" },
  { name: "activity-mine", hash: "#/activity?only=mine", shows: ".row" },
  {
    name: "activity-none",
    hash: "#/activity",
    shows: ".empty",
    change: (world) => {
      world.activity = [];
      world.activitySeen = null;
    },
  },
  { name: "queue", hash: "#/queue", shows: ".row" },
  { name: "operator", hash: "#/operator", shows: ".callout" },
  {
    name: "operator-well",
    hash: "#/operator",
    shows: ".callout",
    change: (world) => {
      world.operator = {
        ...world.operator,
        problems: [],
        sandboxes: { ...Object(world.operator?.["sandboxes"]), doctor: world.doctor },
      };
    },
  },
  {
    name: "operator-refused",
    hash: "#/operator",
    shows: ".empty",
    change: having(() => ({ operator: null })),
  },
  { name: "sessions", ...inSessions, change: withTurns },
  {
    name: "sessions-menu",
    ...inSessions,
    change: withTurns,
    act: (page) => page.locator("main .menu > summary").first().click(),
  },
  { name: "bar-menu", hash: "#/projects", shows: ".card", act: openBarMenu },
  { name: "sessions-filtered", hash: `${PROJECT}?status=waiting`, shows: ".empty" },
  { name: "sessions-queued", hash: `${PROJECT}?status=queued`, shows: ".row" },
  { name: "sessions-empty", hash: PROJECT, shows: ".empty", change: having(() => ({ sessions: [] })) },
  { name: "session", ...inSession },
  { name: "session-child", ...inSession, change: asChild },
  { name: "sessions-child", ...inSessions, change: asChild },
  { name: "session-question", ...inSession, act: chosen("Stop session") },
  { name: "session-commands", ...inSession, act: completing("message", "/") },
  { name: "session-paths", ...inSession, act: completing("message", "Compare this with @e") },
  { name: "new-session", hash: `${PROJECT}/new`, shows: "form" },
  { name: "triggers", hash: `${PROJECT}/triggers`, shows: ".card" },
  { name: "runs", hash: `${PROJECT}/fires`, shows: ".row" },
  { name: "run", hash: `${PROJECT}/fires/${FIRED_ID}`, shows: ".request" },
  { name: "run-queued", hash: `${PROJECT}/fires/${QUEUED_ID}`, shows: ".request" },
  { name: "run-failed", hash: `${PROJECT}/fires/${FAILED_FIRE_ID}`, shows: "h1" },
  { name: "refusals", hash: `${PROJECT}/fires?status=refused`, shows: ".row" },
  { name: "change-requests", hash: `${PROJECT}/change-requests`, shows: ".row" },
  { name: "change-request", hash: `${PROJECT}/change-requests/7`, shows: ".diff .coloured" },
  { name: "usage", hash: `${PROJECT}/usage`, shows: ".row" },
  {
    name: "palette",
    ...inSessions,
    act: async (page) => {
      await page.keyboard.press("Control+k");
      await page.locator(".palette li").first().waitFor();
    },
  },
  { name: "shortcuts", ...inSessions, act: press("?") },
];
