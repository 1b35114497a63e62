/**
 * The session from which another one began: with its saved work, and with its conversation up to there. The service says it in the
 * metadata of the new one. Callers cannot write this field, because an agent is told the conversation that it names.
 */

/** The field of the metadata. */
const FIELD = "begun_from";

export interface BegunFrom {
  readonly session_id: string;
  /** The turn at whose end it began. Absent: it began at the newest save. */
  readonly turn_id?: string;
  /** As the session was called then. */
  readonly title: string;
  /** When the work was saved. Null if not known. */
  readonly at: string | null;
}

type Metadata = Readonly<Record<string, unknown>>;

const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Null if it began with a branch, or an earlier version let a program write the field. */
export const begunFrom = ({ metadata }: { readonly metadata: Metadata }): BegunFrom | null => {
  const record = metadata[FIELD];
  if (typeof record !== "object" || record === null) return null;
  const { session_id, turn_id, title, at } = record as Metadata;
  if (typeof session_id !== "string" || !ID.test(session_id) || typeof title !== "string") return null;
  return {
    session_id,
    ...(typeof turn_id === "string" && { turn_id }),
    title,
    at: typeof at === "string" && !Number.isNaN(Date.parse(at)) ? at : null,
  };
};

/** A caller's metadata and what the service says in them. @param origin null: the session began with a branch */
export const withBegunFrom = (metadata: Metadata, origin: BegunFrom | null): Metadata =>
  origin === null ? metadata : { ...metadata, [FIELD]: origin };

/** Whether a caller's metadata say of the beginning what the service says, or nothing. */
export const keepsBegunFrom = (metadata: Metadata, origin: BegunFrom | null): boolean =>
  !(FIELD in metadata) ||
  (origin !== null && JSON.stringify(begunFrom({ metadata })) === JSON.stringify(origin));
