/** Whether a new session can begin from a turn. It uses no document. */
import type { Session } from "../../wire.d.ts";

/** @param isNewest whether the workspace is still as the turn left it @returns why not, or null */
export const branchFault = ({ saved }: Pick<Session, "saved">, isNewest: boolean): string | null => {
  if (!isNewest) return "Only the workspace of the newest turn is kept.";
  if (saved === null) return "The work of this turn is not saved yet.";
  return saved.state === "failed" ? "The last save failed. The details of the session say why." : null;
};
