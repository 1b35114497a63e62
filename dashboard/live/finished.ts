/**
 * Tells the reader, by a notification of the browser, that the agent has finished or failed in a session that she started, or
 * wrote to in this browser.
 *
 *  F1 A turn is told once in this browser: the page that sees its end first writes that down before it tells.
 *  F2 No page tells while a visible page shows that session: a visible page holds a lock with the session's id.
 *  F3 A turn after which the agent goes on with the next message is not told.
 */
import { readAt, request } from "../api/client.ts";
import { notificationState, notify } from "./attention.ts";
import { browserChoice, objectOr } from "../frame/kept.ts";
import { now } from "../elements/format.ts";
import { isStartedBy } from "../../src/domain/person/own-session.ts";
import { projectPath } from "../projects/project.ts";
import { writtenTo } from "./written.ts";
import type { Session } from "../wire.d.ts";

/** How many of the newest sessions are looked at, beside those that the reader wrote to. */
const LOOKED_AT = 50;
const TOLD = "told-turns";
/** How many turns are remembered as told. */
const TOLD_MAX = 100;
/** A turn that ended before the page was opened is no news. The clocks of the service and of the browser may differ. */
const SLACK_MS = 60_000;
const openedAt = now() - SLACK_MS;
/** Events come in bursts. */
const PAUSE_MS = 3_000;
let lookedAt = 0;
let later: ReturnType<typeof globalThis.setTimeout> | undefined;

const pathOf = ({ project_id: project, id }: Session) => `${projectPath(project)}/sessions/${id}`;

const isOwn = (session: Session, userId: string): boolean =>
  isStartedBy(
    {
      createdBy: session.created_by,
      triggerSlug: session.trigger_slug,
      parentSessionId: session.parent_session_id,
    },
    userId,
  );

/** The reader's sessions. */
const readOwn = async (userId: string): Promise<Session[]> => {
  const { sessions } = await request("GET /v1/sessions", { query: { limit: LOOKED_AT } });
  const written = writtenTo();
  const known = new Set(sessions.map(pathOf));
  const others = written.filter((path) => !known.has(path));
  // One that was deleted meanwhile is left out.
  const found = await Promise.all(
    others.map((path) => readAt<"GET /v1/projects/:pid/sessions/:sid">(path).catch(() => null)),
  );
  const own = sessions.filter((one) => isOwn(one, userId) || written.includes(pathOf(one)));
  return [...own, ...found.filter((one) => one !== null)];
};

/** Looks whether an agent of the reader has finished, and tells her. A look that fails is made up for by the next one. */
export const seeFinished = async (userId: string | undefined) => {
  holdShown();
  if (userId === undefined || notificationState() !== "on") return;
  clearTimeout(later);
  const rests = lookedAt + PAUSE_MS - now();
  if (rests > 0) {
    // eslint-disable-next-line no-restricted-globals -- the browser's timer
    later = setTimeout(seeFinished, rests, userId);
    return;
  }
  lookedAt = now();
  try {
    await look(userId);
  } catch {
    // The page itself reports what it cannot read.
  }
};

const look = async (userId: string) => {
  for (const session of await readOwn(userId)) {
    if (!isNews(session)) continue;
    // oxlint-disable-next-line no-await-in-loop -- few of them are news at the same time
    const isSeen = shownHere() === session.id || (await isShown(session.id));
    // oxlint-disable-next-line no-await-in-loop -- the same
    if ((isSeen || (await isAtRest(session))) && claim(session) && !isSeen) tell(session);
  }
};

const isNews = ({ id, turn, last_turn: last, pending_approvals: calls }: Session) =>
  last !== null &&
  (last.state === "completed" || last.state === "failed") &&
  turn.state === "idle" &&
  calls === 0 &&
  Date.parse(last.at) > openedAt &&
  told.read()[id] !== last.at;

/** F3. */
const isAtRest = async (session: Session) => {
  const {
    state,
    queue,
    queue_held: isHeld,
  } = await readAt<"GET /v1/projects/:pid/sessions/:sid/conversation">(
    `${pathOf(session)}/conversation?limit=1`,
  );
  return state.state === "idle" && (queue.length === 0 || isHeld);
};

/** By session, when its last turn that was told ended. */
const told = browserChoice(TOLD, (kept) => objectOr<Record<string, string>>(kept, {}));

/** F1. @returns whether this page may tell */
const claim = ({ id, last_turn: last }: Session): boolean => {
  const kept = told.read();
  if (last === null || kept[id] === last.at) return false;
  const entries = [...Object.entries(kept).filter(([known]) => known !== id), [id, last.at]];
  return told.keep(Object.fromEntries(entries.slice(-TOLD_MAX)));
};

const tell = (session: Session) =>
  notify(session, session.last_turn?.state === "failed" ? "The agent failed" : "The agent has finished");

/** The session that this page shows, while it is visible. */
const shownHere = (): string | null =>
  document.visibilityState === "visible" ? (/\/sessions\/([^/?]+)/.exec(location.hash)?.[1] ?? null) : null;

const lockOf = (id: string) => `shows ${id}`;
let held: { id: string; release: () => void } | null = null;

/** F2: other pages of this browser learn what this one shows. Where the browser has no locks, it has no notifications. */
const holdShown = () => {
  const id = shownHere();
  if (held?.id === id || !("locks" in navigator)) return;
  held?.release();
  held = null;
  if (id === null) return;
  const until: Promise<void> = new Promise((release) => {
    held = { id, release };
  });
  void navigator.locks.request(lockOf(id), { mode: "shared" }, () => until);
};

const isShown = async (id: string) => {
  if (!("locks" in navigator)) return false;
  const { held: all = [] } = await navigator.locks.query();
  return all.some(({ name }) => name === lockOf(id));
};

document.addEventListener("visibilitychange", holdShown);
addEventListener("hashchange", holdShown);
