/** The agent's state at a moment, in a reader's words. It uses no document. */
import { ACTIVITY_WORDS } from "../../../src/domain/session/activity-words.ts";
import { type Conversation, silentSince } from "../reading/model.ts";
import { isLive } from "../../projects/project.ts";
import type { Session, Turn } from "../../wire.d.ts";

/** A model that thinks says nothing for as long as this, ms. */
const SILENT_MS = 30_000;
/** The state of a session whose agent rests, as the style sheet names it. */
const STATES: Readonly<Partial<Record<Session["activity"], string>>> = {
  needs_you: "requires_action",
  failed: "failed",
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

/** The word at the page's head. It may be older than the conversation, which knows that the agent is done. */
const restState = (activity: Session["activity"]): Pick<TurnState, "word" | "state"> => {
  const known = ACTIVITY_WORDS[activity].group === "working" ? "resting" : activity;
  return { word: ACTIVITY_WORDS[known].word, state: STATES[known] ?? "idle" };
};

/** @param nowMs since the epoch */
export const turnState = (
  conversation: Conversation,
  { status, activity, pending_approvals: calls }: Pick<Session, "status" | "activity" | "pending_approvals">,
  nowMs: number,
): TurnState => {
  const { since } = conversation.turn;
  const resting = { workedMs: null, silentMs: null };
  if (status === "provisioning") return { word: ACTIVITY_WORDS.starting.word, state: status, ...resting };
  if (!isLive(status) || conversation.turn.state === "idle") return { ...restState(activity), ...resting };
  // The runtime counts a call that waits as work.
  const state: Turn["state"] = calls > 0 ? "requires_action" : conversation.turn.state;
  const silence = calls > 0 ? null : silentSince(conversation);
  const silentMs = silence === null ? 0 : nowMs - silence;
  return {
    word: ACTIVITY_WORDS[state === "running" ? "working" : "needs_you"].word,
    state,
    workedMs: since === null ? null : nowMs - Date.parse(since),
    silentMs: silentMs >= SILENT_MS ? silentMs : null,
  };
};
