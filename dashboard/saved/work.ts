/** Work that the service saved: whether a restart brings it back. */
import { hasContents } from "../../src/domain/save/shown.ts";
import { hasEnded } from "../projects/project.ts";
import type { Session } from "../wire.d.ts";

/** The id of the box in which the reader says whether a restart brings saved work back. */
export const RESTORE_BOX = "restore-saved";

/** Whether a restart of this session would have something to bring back. */
export const canRestore = ({ status, saved }: Pick<Session, "status" | "saved">): boolean =>
  hasEnded(status) && saved !== null && (hasContents(saved) || (saved.earlier ?? []).length > 0);

/** What the reader wishes of a restart. Without a box, as in a list, saved work is brought back. */
export const isRestoreWanted = (): boolean => {
  const box = document.querySelector(`#${RESTORE_BOX}`);
  return !(box instanceof HTMLInputElement) || box.checked;
};
