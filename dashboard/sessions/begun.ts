/** The session with whose work another one began. The page keeps it in the metadata of the new one. It uses no document. */
import type { Session } from "../wire.d.ts";

interface Begun {
  readonly session_id: string;
  readonly turn_id?: string;
  /** As the session was called then. */
  readonly title: string;
  /** When the work was saved. Null: not known. */
  readonly at: string | null;
}

/** The longest title that is kept, in UTF-16 units. */
const TITLE_MAX = 200;
const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The metadata of a session that begins so. */
export const begunMetadata = ({ title, ...begun }: Begun) => ({
  begun_from: { ...begun, title: title.slice(0, TITLE_MAX) },
});

/** Null: it began with a branch, or its metadata are a program's own. */
export const begunFrom = ({ metadata }: Pick<Session, "metadata">): Omit<Begun, "turn_id"> | null => {
  const begun = metadata["begun_from"];
  if (typeof begun !== "object" || begun === null) return null;
  const { session_id, title, at } = begun as Readonly<Record<string, unknown>>;
  return typeof session_id === "string" && ID.test(session_id) && typeof title === "string"
    ? { session_id, title, at: typeof at === "string" && !Number.isNaN(Date.parse(at)) ? at : null }
    : null;
};
