/** Whether a new session can begin from a turn, and from which save. It uses no document. */
import type { Session } from "../../wire.d.ts";

export interface ChosenTurn {
  /** Null: no message began it. */
  readonly id: string | null;
  /** Whether the workspace is still as the turn left it. */
  readonly isNewest: boolean;
}

export type Beginning =
  | { readonly from: { readonly session_id: string; readonly turn_id?: string } }
  | { readonly fault: string };

/** @param kept the turns whose saves the service has */
export const beginningAt = (
  { id: session_id, saved }: Pick<Session, "id" | "saved">,
  { id, isNewest }: ChosenTurn,
  kept: readonly { readonly id: string }[],
): Beginning => {
  const save = kept.find((one) => one.id === id);
  if (save !== undefined) return { from: { session_id, turn_id: save.id } };
  if (!isNewest)
    return {
      fault: "No save of this turn is kept. The last 50 turns have one, as far as the limits allow.",
    };
  if (saved === null) return { fault: "The work of this turn is not saved yet." };
  return saved.state === "failed"
    ? { fault: "The last save failed. The details of the session say why." }
    : { from: { session_id } };
};
