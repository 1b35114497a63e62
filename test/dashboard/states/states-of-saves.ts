/** States of saved work: of sessions that run and that have ended, of a stop that is refused, and of the space it takes. */
import type { World } from "../fakes/fake-service.ts";
import { FAILED_ID, PROJECT_ID, SESSION_ID, STOPPED_ID } from "../samples/sample-project.ts";
import {
  PENDING,
  samplePartial,
  sampleRestored,
  sampleSaved,
  sampleSizes,
  sampleUnsaved,
} from "../samples/sample-saves.ts";
import { sampleWork } from "../samples/sample-settings.ts";
import { chosen, pressed, type State } from "./state-of-a-page.ts";

const PROJECT = `#/projects/${PROJECT_ID}`;
const SESSION = `${PROJECT}/sessions/${SESSION_ID}`;
const STOPPED = `${PROJECT}/sessions/${STOPPED_ID}`;

// eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
const now = (): number => Date.now();

/** The session has these fields, and every save the same files. */
const withSession =
  (id: string, rest: () => Readonly<Record<string, unknown>>) =>
  (world: World): void => {
    world.work = sampleWork(now());
    world.sessions = world.sessions.map((one) => (one["id"] === id ? { ...one, ...rest() } : one));
  };

/** The stop is refused with the paths that are not saved. */
export const refusingStops = (world: World): void => {
  world.refused = {
    status: 409,
    code: "not_saved",
    error: "Not everything could be saved.",
    details: { pending: PENDING, saved: { error: "The work could not be saved within 60 s." } },
  };
};

export const stopping = async (page: Parameters<NonNullable<State["act"]>>[0]): Promise<void> => {
  await chosen("Stop session")(page);
  await page.getByRole("dialog").getByRole("button", { name: "Stop", exact: true }).click();
};

const withFiles = { hash: `${STOPPED}?tab=details`, shows: "#saved-files .file" };

export const STATES_OF_SAVES: readonly State[] = [
  { name: "saved-not-yet", hash: `${SESSION}?tab=details`, shows: "#saved" },
  {
    name: "saved-running",
    hash: `${SESSION}?tab=details`,
    shows: "#saved",
    change: withSession(SESSION_ID, () => ({ saved: sampleSaved(now()) })),
  },
  {
    name: "saved-running-part",
    hash: `${SESSION}?tab=details`,
    shows: "#saved .paths",
    change: withSession(SESSION_ID, () => ({ saved: samplePartial(now()), restored: sampleRestored })),
  },
  {
    name: "saved-waits",
    hash: `${SESSION}?tab=details`,
    shows: "#saved .paths",
    change: withSession(SESSION_ID, () => ({ saved: samplePartial(now()), unsaved: sampleUnsaved(now()) })),
  },
  { name: "saved-stopped", ...withFiles, change: withSession(STOPPED_ID, () => ({})) },
  {
    name: "saved-stopped-part",
    ...withFiles,
    change: withSession(STOPPED_ID, () => ({ saved: samplePartial(now()) })),
  },
  {
    name: "saved-earlier",
    ...withFiles,
    change: withSession(STOPPED_ID, () => ({ saved: samplePartial(now()) })),
    act: async (page) => {
      await page.locator("#saved .row").first().getByRole("button", { name: "Show" }).click();
      await page.getByRole("heading", { name: /^The save of/ }).waitFor();
    },
  },
  {
    name: "saved-failed",
    hash: `${PROJECT}/sessions/${FAILED_ID}?tab=details`,
    shows: "#saved",
    change: withSession(FAILED_ID, () => ({
      saved: sampleSaved(now(), { state: "failed", error: "the sandbox was lost before its work was saved" }),
    })),
  },
  {
    name: "saved-nothing",
    hash: `${STOPPED}?tab=details`,
    shows: "#saved",
    change: withSession(STOPPED_ID, () => ({
      saved: { ...sampleSaved(now()), at: null, wip: null, files: 0, commits: 0, skipped: [] },
    })),
  },
  {
    name: "stop-refused",
    hash: SESSION,
    shows: ".items > .item",
    change: refusingStops,
    act: async (page) => {
      await stopping(page);
      await page.getByText("The session still runs").waitFor();
    },
  },
  {
    name: "stop-progress",
    hash: SESSION,
    shows: ".items > .item",
    change: withSession(SESSION_ID, () => ({ saved: samplePartial(now()) })),
    act: async (page) => {
      // The answer never comes.
      await page.route("**/stop", () => undefined);
      await stopping(page);
      await page.getByText("40 paths are left.").waitFor();
    },
  },
  {
    name: "delete-save",
    hash: `${STOPPED}?tab=details`,
    shows: "#saved .row",
    change: withSession(STOPPED_ID, () => ({ saved: samplePartial(now()) })),
    act: (page) => page.locator("#saved").getByRole("button", { name: "Delete" }).first().click(),
  },
  {
    name: "home-unsaved",
    hash: "#/",
    shows: ".session",
    change: withSession(SESSION_ID, () => ({ saved: samplePartial(now()), unsaved: sampleUnsaved(now()) })),
    act: pressed("Decide: on-push"),
  },
  {
    name: "settings-saves",
    hash: `${PROJECT}/settings`,
    shows: "form",
    change: (world) => {
      world.saves = sampleSizes(world.sessions);
    },
  },
];
