/**
 * Which sessions of any project wait for a person: as a number in the page's title, as a mark on its icon, and as a
 * notification of the browser if the reader asked for those.
 */
import { getJson } from "../api/api.js";
import { projectLink } from "../elements/parts.js";
import { sessionName } from "../projects/project.js";
import { visible } from "../elements/text.js";

/** @typedef {import("../wire.d.ts").Session} Session */

/** How many are shown and counted. */
const SHOWN = 50;
const ALLOWED = "notifications";

/** @type {Set<string> | null} those of the last reading; null before the first */
let known = null;

/** @returns {Promise<Session[]>} */
export const readWaiting = async () =>
  (await getJson(`/v1/sessions?activity=needs_you&limit=${SHOWN}`)).sessions;

/** Forgets what was seen: the reader has signed out. */
export const forgetWaiting = () => {
  known = null;
  mark(0);
};

/** @param {Session[]} waiting */
export const seeWaiting = (waiting) => {
  mark(waiting.length);
  const fresh = known === null ? [] : waiting.filter(({ id }) => known?.has(id) === false);
  known = new Set(waiting.map(({ id }) => id));
  if (document.visibilityState === "hidden") for (const session of fresh) tellOf(session);
};

/** @param {number} count @returns {string} what stands before the page's title */
export const countMark = (count) => (count === 0 ? "" : `(${count === SHOWN ? `${SHOWN}+` : count}) `);

/** The page's icon has a dot while a session waits. @param {number} count */
const mark = (count) => {
  const wanted = count === 0 ? "icon.svg" : "icon-waiting.svg";
  const icon = document.querySelector('link[rel="icon"]');
  if (icon !== null && icon.getAttribute("href") !== wanted) icon.setAttribute("href", wanted);
};

/** @returns {"on" | "off" | "denied" | "impossible"} whether the browser tells the reader */
export const notificationState = () => {
  if (!("Notification" in window)) return "impossible";
  if (Notification.permission === "denied") return "denied";
  return Notification.permission === "granted" && isWanted() ? "on" : "off";
};

/** Asks the browser once. Called on a click only. */
export const allowNotifications = async () => {
  if (!("Notification" in window)) return;
  if ((await Notification.requestPermission()) === "granted") want("on");
};

export const stopNotifications = () => want("off");

/** @param {"on" | "off"} wish */
const want = (wish) => {
  try {
    localStorage.setItem(ALLOWED, wish);
  } catch {
    // Where the storage is forbidden, the browser tells nothing.
  }
};

const isWanted = () => {
  try {
    return localStorage.getItem(ALLOWED) === "on";
  } catch {
    return false;
  }
};

/** @type {Record<NonNullable<Session["waits_for"]>["kind"], string>} */
const WORDS = {
  question: "The agent needs your answer",
  permission: "The agent needs your permission",
  approval: "The agent needs your approval",
  work_unsaved: "The work of an idle session cannot be saved",
};

/** @param {Session} session */
const tellOf = (session) => notify(session, WORDS[session.waits_for?.kind ?? "question"]);

/** A notification of a session, if the reader asked for those. @param {Session} session @param {string} words */
export const notify = (session, words) => {
  if (notificationState() !== "on") return;
  const shown = new Notification(words, {
    body: visible(sessionName(session)),
    tag: session.id,
    icon: "icon-waiting.svg",
  });
  shown.addEventListener("click", () => {
    window.focus();
    location.hash = projectLink(session.project_id, `/sessions/${session.id}`);
    shown.close();
  });
};
