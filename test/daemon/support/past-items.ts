/** Items of a history that an agent in a fresh sandbox gets. */
import type { PastItem } from "../../../src/domain/conversation/history.ts";

/** When they were completed, unless a test says otherwise: ms since the epoch. */
export const PAST_MS = Date.UTC(2026, 10, 20, 12);

export const pastItem = (fields: Partial<PastItem>): PastItem => ({
  kind: "message",
  role: "agent",
  status: "completed",
  text: "",
  files: [],
  tool: null,
  plan: [],
  model: "held/one",
  agent: null,
  usage: null,
  error: null,
  created_at: PAST_MS - 1000,
  completed_at: PAST_MS - 900,
  ...fields,
});
