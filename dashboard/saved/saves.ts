/** The files of a save: of a session that has ended, and whenever the reader asks. */
import { ApiError, getText } from "../api/api.ts";
import { readAt } from "../api/client.ts";
import type { Session, SessionChanges } from "../wire.d.ts";
import { canRestore } from "./work.ts";

/** The save whose files are shown. */
export interface SavedFiles {
  /** Its id. "": the newest. */
  readonly save: string;
  /** The reader asked for it. */
  readonly isWished: boolean;
  /** Null before the answer. */
  readonly changes: SessionChanges | null;
  readonly diff: string;
  /** Of the diff, in the API. */
  readonly url: string;
  /** Why they could not be read. */
  readonly problem: string | null;
}

export type Saves = ReturnType<typeof followSaves>;

/** Reads the files of a save. @param path of the session in the API @param changed is called after each change */
export const followSaves = (path: string, changed: () => void) => {
  /** Which save of which commit. Null: none is shown. */
  let key: string | null = null;
  let files: SavedFiles | null = null;
  /** The save that the reader wants to see. */
  let wish: string | null = null;
  const read = async (query: string): Promise<void> => {
    const asked = key;
    let answer: Partial<SavedFiles>;
    try {
      const changes = await readAt<"GET /v1/projects/:pid/sessions/:sid/changes">(`${path}/changes?${query}`);
      const diff = changes.files_changed_total > 0 ? await getText(`${path}/diff?${query}`) : "";
      answer = { changes, diff };
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return;
      answer = { problem: error instanceof Error ? error.message : String(error) };
    }
    // The reader may have chosen another one meanwhile.
    if (key !== asked || files === null) return;
    files = { ...files, ...answer };
    changed();
  };
  const see = (session: Session): void => {
    const { saved } = session;
    const isShown = saved !== null && (wish !== null || canRestore(session));
    const next = isShown ? `${saved.wip} ${saved.at} ${wish}` : null;
    if (next === key) return;
    key = next;
    const query = `of=saved${wish ? `&save=${encodeURIComponent(wish)}` : ""}`;
    const url = `${path}/diff?${query}`;
    files = isShown
      ? { save: wish ?? "", isWished: wish !== null, changes: null, diff: "", url, problem: null }
      : null;
    if (isShown) void read(query);
  };
  return {
    /** Null: none is shown. */
    files: (): SavedFiles | null => files,
    see,
    /** @param save its id. "": the newest */
    choose: (session: Session, save: string): void => {
      wish = save;
      see(session);
      changed();
    },
  };
};
