/**
 * The life of a project (api.md 2). A deleted project behaves as an archived one for a week, in which its owners can restore it. Then it
 * is gone, with everything that belongs to it.
 *
 *  L1 Only an active project starts something. Every door asks whether the status is `active`.
 *  L2 A deletion that is asked for again keeps its first instant.
 *  L3 A restored project is what it was before. From the instant on, nothing restores it.
 */
export const PROJECT_STATUSES = ["active", "archived", "deleted"] as const;
export type ProjectStatus = (typeof PROJECT_STATUSES)[number];
/** What a person sets. */
export type SetProjectStatus = Exclude<ProjectStatus, "deleted">;

/** How long a deleted project can be restored, ms. */
export const RESTORABLE_MS = 7 * 24 * 60 * 60 * 1000;

interface Deletable {
  readonly status: ProjectStatus;
  /** When it is gone, ms. Null if it is not deleted. */
  readonly deletesAt: number | null;
}

/** When a project that is deleted now is gone (L2). @param now ms since the epoch */
export const deletionAt = ({ deletesAt }: Pick<Deletable, "deletesAt">, now: number): number =>
  deletesAt ?? now + RESTORABLE_MS;

/** Whether a deleted project can be restored (L3). @param now ms since the epoch */
export const isRestorable = ({ deletesAt }: Pick<Deletable, "deletesAt">, now: number): boolean =>
  deletesAt !== null && now < deletesAt;

/** Why a project starts nothing, as a code of fires and deliveries. Null if it may start something (L1). */
export const inactivity = ({
  status,
}: Pick<Deletable, "status">): "project_archived" | "project_deleted" | null =>
  status === "active" ? null : `project_${status}`;
