/** The session with whose work another one began. The service says it in the metadata of the new one. It uses no document. */
import type { Session } from "../wire.d.ts";

interface Begun {
  readonly session_id: string;
  /** As the session was called then. */
  readonly title: string;
  /** When the work was saved. Null: not known. */
  readonly at: string | null;
}

const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Null: it began with a branch, or its metadata are a program's own. */
export const begunFrom = ({ metadata }: Pick<Session, "metadata">): Begun | null => {
  const begun = metadata["begun_from"];
  if (typeof begun !== "object" || begun === null) return null;
  const { session_id, title, at } = begun as Readonly<Record<string, unknown>>;
  return typeof session_id === "string" && ID.test(session_id) && typeof title === "string"
    ? { session_id, title, at: typeof at === "string" && !Number.isNaN(Date.parse(at)) ? at : null }
    : null;
};
