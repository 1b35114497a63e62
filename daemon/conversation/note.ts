/** A note in the conversation that no record of the runtime stands for. */
import type { ItemDraft } from "../adapters/adapter.ts";

/** @param nativeId is different for each note of a sandbox. */
export const noteItem = (nativeId: string, text: string, nowMs: number): ItemDraft => ({
  native_id: nativeId,
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
