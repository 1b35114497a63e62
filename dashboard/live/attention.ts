/**
 * What waits for the reader, sessions of any project and change requests that she is asked to review: as a number in the page's title, as a mark on its icon, and as a
 * notification of the browser if the reader asked for those.
 */
import { request } from "../api/client.ts";
import { browserWish } from "../frame/kept.ts";
import { projectLink } from "../elements/parts.ts";
import { activitiesIn } from "../../src/domain/session/activity-words.ts";
import { sessionName } from "../projects/project.ts";
import { visible } from "../elements/text.ts";
import type { ListedChangeRequest, Session } from "../wire.d.ts";

type Review = ListedChangeRequest;
type Waits = { readonly sessions: readonly Session[]; readonly reviews: readonly Review[] };

/** How many are shown and counted. */
const SHOWN = 50;
const wish = browserWish("notifications");

/** those of the last reading; null before the first */
let known: Set<string> | null = null;

export const readWaiting = async (): Promise<Waits> => {
  const [{ sessions }, { change_requests: reviews }] = await Promise.all([
    request("GET /v1/sessions", { query: { activity: activitiesIn("needs_you"), limit: SHOWN } }),
    request("GET /v1/change-requests", { query: { reviewer: "me", limit: SHOWN } }),
  ]);
  return { sessions, reviews };
};

export const countWaiting = ({ sessions, reviews }: Waits) => sessions.length + reviews.length;

/** Forgets what was seen: the reader has signed out. */
export const forgetWaiting = () => {
  known = null;
  mark(0);
};

export const seeWaiting = ({ sessions, reviews }: Waits) => {
  mark(countWaiting({ sessions, reviews }));
  const before = known;
  // finished.ts tells of those that failed.
  const asking = sessions.filter(({ waits_for: wait }) => wait !== null);
  known = new Set([...asking.map(({ id }) => id), ...reviews.map(askedKey)]);
  if (before === null || document.visibilityState !== "hidden") return;
  for (const session of asking) if (!before.has(session.id)) tellOf(session);
  for (const review of reviews) if (!before.has(askedKey(review))) tellOfReview(review);
};

/** Who is asked again is told again. */
const askedKey = ({ id, review_asked: asked }: Review) => `${id} ${asked?.at ?? ""}`;

/** @returns what stands before the page's title */
export const countMark = (count: number): string =>
  count === 0 ? "" : `(${count >= SHOWN ? `${SHOWN}+` : count}) `;

/** The page's icon has a dot while a session waits. */
const mark = (count: number) => {
  const wanted = count === 0 ? "icon.svg" : "icon-waiting.svg";
  const icon = document.querySelector('link[rel="icon"]');
  if (icon !== null && icon.getAttribute("href") !== wanted) icon.setAttribute("href", wanted);
};

/** @returns whether the browser tells the reader */
export const notificationState = (): "on" | "off" | "denied" | "impossible" => {
  if (!("Notification" in window)) return "impossible";
  if (Notification.permission === "denied") return "denied";
  return Notification.permission === "granted" && wish.read() ? "on" : "off";
};

/** Asks the browser once. Called on a click only. */
export const allowNotifications = async () => {
  if (!("Notification" in window)) return;
  if ((await Notification.requestPermission()) === "granted") wish.keep(true);
};

export const stopNotifications = () => wish.keep(false);

const WORDS: Record<NonNullable<Session["waits_for"]>["kind"], string> = {
  question: "The agent needs your answer",
  permission: "The agent needs your permission",
  plan: "The agent's plan needs your approval",
  approval: "The agent needs your approval",
  work_unsaved: "The work of a resting session cannot be saved",
};

const tellOf = (session: Session) => notify(session, WORDS[session.waits_for?.kind ?? "question"]);

const tellOfReview = ({ id, project_id: project, number, title, review_asked: asked }: Review) =>
  show(`${visible(asked?.by.name ?? "")} asks for your review`, {
    body: title,
    tag: id,
    go: projectLink(project, `/change-requests/${number}`),
  });

/** A notification of a session, if the reader asked for those. */
export const notify = (session: Session, words: string) =>
  show(words, {
    body: sessionName(session),
    tag: session.id,
    go: projectLink(session.project_id, `/sessions/${session.id}`),
  });

/** @param about `go`: where a click leads */
const show = (words: string, { body, tag, go }: { body: string; tag: string; go: string }) => {
  if (notificationState() !== "on") return;
  const shown = new Notification(words, { body: visible(body), tag, icon: "icon-waiting.svg" });
  shown.addEventListener("click", () => {
    window.focus();
    location.hash = go;
    shown.close();
  });
};
