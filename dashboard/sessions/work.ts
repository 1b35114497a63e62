/** The work of a session: what its workspace has while it runs, its pushed commits, and their diff. */
import type { Answer } from "../../src/cli/contract.ts";
import { ApiError, getText } from "../api/api.ts";
import { readAt } from "../api/client.ts";
import { forgetLoaded } from "../diff/files.ts";
import type { Session, SessionData } from "./session.ts";

export type PushedChanges = Answer<"GET /v1/projects/:pid/sessions/:sid/changes">;
export type WorkspaceChanges = Answer<"GET /v1/projects/:pid/sessions/:sid/workspace/changes">;

/** So much of the time is left to the sandbox: a reading begins this long after the one before. */
const REST_MS = 1000;

export interface Work {
  /** The pushed work. Null before the first answer. */
  readonly changes: PushedChanges | null;
  /** The content of the workspace, while the session runs. Null: it cannot be read. */
  readonly live: WorkspaceChanges | null;
  /** Of the workspace, otherwise of the branch. */
  readonly diff: string;
  /** Why the branch or the workspace could not be read. */
  readonly problem: string | null;
  /** The branch's commit that the session named when this was read. */
  readonly named: string | null;
}

export const NO_WORK: Work = { changes: null, live: null, diff: "", problem: null, named: null };

const saidBy = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** @param url of the session in the API */
const readWork = async (url: string, before: Work, isRunning: boolean): Promise<Omit<Work, "named">> => {
  const [changes, workspace]: [PushedChanges, WorkspaceChanges | string | null] = await Promise.all([
    readAt<"GET /v1/projects/:pid/sessions/:sid/changes">(`${url}/changes`),
    isRunning
      ? readAt<"GET /v1/projects/:pid/sessions/:sid/workspace/changes">(`${url}/workspace/changes`).catch(
          saidBy,
        )
      : null,
  ]);
  // A message: the sandbox does not answer, or ends. The branch has what was pushed.
  if (typeof workspace === "string" || workspace === null) {
    // A merge changes what is new, and not the branch.
    const isSame =
      before.live === null &&
      changes.head_commit === before.changes?.head_commit &&
      changes.commits_total === before.changes?.commits_total;
    const pushed = async () => (changes.files_changed_total > 0 ? await getText(`${url}/diff`) : "");
    return { changes, live: null, problem: workspace, diff: isSame ? before.diff : await pushed() };
  }
  const path = `${url}/workspace/diff`;
  const diff = workspace.files_changed_total > 0 ? await getText(path) : "";
  if (diff !== before.diff) forgetLoaded(path);
  return { changes, live: workspace, problem: null, diff };
};

/**
 * Reads the work again whenever the session's state changes, when somebody has pushed, when its agent has finished a tool, and
 * when a reader comes back to it. Never while the page is hidden.
 *
 * @param url of the session in the API
 */
export const followWork = (url: string, changed: () => void) => {
  let work = NO_WORK;
  let [isRunning, hasEnded, isReading, isOutdated] = [false, false, false, false];
  let [seen, wasShown] = ["", true];
  let named: string | null = null;

  const read = async (): Promise<void> => {
    isOutdated = true;
    if (isReading || hasEnded || document.visibilityState !== "visible") return;
    isOutdated = false;
    isReading = true;
    const known = named;
    try {
      work = { ...(await readWork(url, work, isRunning)), named: known };
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return;
      work = { ...work, problem: saidBy(error), named: known };
    } finally {
      // oxlint-disable-next-line no-restricted-globals -- the browser's timer
      setTimeout(() => {
        isReading = false;
        if (isOutdated) void read();
      }, REST_MS);
    }
    if (!hasEnded) changed();
  };
  const shown = (): void => {
    if (isOutdated) void read();
  };
  document.addEventListener("visibilitychange", shown);

  return {
    now: () => work,
    /** @param tools how many tools the agent has finished @param isShown whether the reader has the changes before her */
    see: (
      { session, changes }: Pick<SessionData, "session" | "changes">,
      tools: number,
      isShown: boolean,
    ): void => {
      isRunning = session.status === "running";
      const merged = changes.filter(({ status }) => status === "merged").length;
      named = session.changes?.head_commit ?? null;
      const state = `${session.status} ${session.turn.state} ${session.last_turn?.at ?? ""} ${named ?? ""} ${String(merged)} ${isRunning ? String(tools) : ""}`;
      const isBack = isShown && !wasShown && seen !== "";
      wasShown = isShown;
      if (state === seen && !isBack) return;
      seen = state;
      void read();
    },
    end: (): void => {
      hasEnded = true;
      document.removeEventListener("visibilitychange", shown);
    },
  };
};

/** Whether a change request could propose something. The session knows of a push before its work is read. */
export const hasNewWork = ({ changes }: Work, { activity }: Pick<Session, "activity">): boolean =>
  (changes?.commits_total ?? 0) > 0 || activity === "ready_for_review";

/** Whether somebody has pushed since this was read. */
export const isBehind = ({ changes: pushed, named }: Work, { changes }: Pick<Session, "changes">): boolean =>
  pushed !== null && changes !== null && changes.head_commit !== named;

/** How many files the session has changed. */
export const filesIn = ({ changes, live }: Work): number => (live ?? changes)?.files_changed_total ?? 0;
