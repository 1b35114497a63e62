/** A note in the conversation that no record of the runtime stands for. */
import { EMPTY_ITEM } from "../../src/domain/conversation/conversation.ts";
import type { ItemDraft } from "../adapters/adapter.ts";

/** @param about differs between the notes of a sandbox. The instant makes them differ between the sandboxes of a session. */
export const noteItem = (about: string, text: string, nowMs: number): ItemDraft => ({
  ...EMPTY_ITEM,
  native_id: `note_${about}_${nowMs}`,
  kind: "note",
  role: null,
  status: "completed",
  turn_id: null,
  content: [{ type: "text", text }],
  created_at: nowMs,
  completed_at: nowMs,
});
