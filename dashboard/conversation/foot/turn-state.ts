/** The agent's state at a moment, in a reader's words. It uses no document. */
import { type Conversation, silentSince } from "../reading/model.ts";
import type { Session, Turn } from "../../wire.d.ts";

/** The state of a turn, in the words of the session's (ui/activity.tsx). */
const TURN_WORDS: Readonly<Record<Turn["state"], string>> = {
  idle: "Resting",
  running: "Working",
  requires_action: "Needs you",
};
/** A model that thinks says nothing for as long as this, ms. */
const SILENT_MS = 30_000;
const SESSION_WORDS: Readonly<Record<string, string>> = {
  provisioning: "Starting",
  stopped: "Asleep",
  failed: "Failed",
};

export interface TurnState {
  readonly word: string;
  /** What the word stands for: the turn's state, or the session's. */
  readonly state: string;
  /** How long the agent has worked, ms. Null: it does not. */
  readonly workedMs: number | null;
  /** How long its model has said nothing, if that is remarkable, ms. */
  readonly silentMs: number | null;
}

/** @param nowMs since the epoch */
export const turnState = (
  conversation: Conversation,
  { status, pending_approvals: calls }: Pick<Session, "status" | "pending_approvals">,
  nowMs: number,
): TurnState => {
  const { state, since } = conversation.turn;
  const outside = SESSION_WORDS[status];
  if (outside !== undefined) return { word: outside, state: status, workedMs: null, silentMs: null };
  // The runtime counts a call that waits as work.
  const word = TURN_WORDS[state === "running" && calls > 0 ? "requires_action" : state];
  const silence = state === "idle" || calls > 0 ? null : silentSince(conversation);
  const silentMs = silence === null ? 0 : nowMs - silence;
  return {
    word,
    state,
    workedMs: state === "idle" || since === null ? null : nowMs - Date.parse(since),
    silentMs: silentMs >= SILENT_MS ? silentMs : null,
  };
};
