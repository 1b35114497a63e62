/** A note in the conversation that no record of the runtime stands for. */
import type { ItemDraft } from "../adapters/adapter.ts";

/** @param about differs between the notes of a sandbox. The instant makes them differ between the sandboxes of a session. */
export const noteItem = (about: string, text: string, nowMs: number): ItemDraft => ({
  native_id: `note_${about}_${nowMs}`,
  kind: "note",
  role: null,
  status: "completed",
  message_id: null,
  turn_id: null,
  parent_id: null,
  content: [{ type: "text", text }],
  tool: null,
  plan: [],
  request: null,
  model: null,
  usage: null,
  error: null,
  created_at: nowMs,
  completed_at: nowMs,
});
