/** The agent's state at a moment, in a reader's words. It uses no document. */
import { ACTIVITY_WORDS } from "../../../src/domain/session/activity-words.ts";
import { type Conversation, silentSince } from "../reading/model.ts";
import type { Session } from "../../wire.d.ts";

/** A model that thinks says nothing for as long as this, ms. */
const SILENT_MS = 30_000;
/** The state of a session whose agent rests, as the style sheet names it. */
const STATES: Readonly<Partial<Record<Session["activity"], string>>> = {
  needs_you: "requires_action",
  failed: "failed",
  working: "running",
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

/** The facts that the head of the page has, too. */
type Known = Pick<Session, "status" | "activity" | "pending_approvals" | "last_turn">;

/**
 * The present activity of a session. The conversation hears of a turn before the session's record does. Before its first turn, it
 * knows less.
 */
export const activityNow = (
  { turn, order }: Pick<Conversation, "turn" | "order">,
  { status, activity, pending_approvals: calls, last_turn: last }: Known,
): Session["activity"] => {
  if (status !== "running") return activity;
  // The runtime counts a call that waits as work.
  if (turn.state !== "idle") return turn.state === "requires_action" || calls > 0 ? "needs_you" : "working";
  const hasBegun = last !== null || order.some(({ role }) => role === "agent");
  return activity === "working" && hasBegun ? "resting" : activity;
};

/** @param nowMs since the epoch */
export const turnState = (conversation: Conversation, session: Known, nowMs: number): TurnState => {
  const { status } = session;
  const { since, state: turn } = conversation.turn;
  const activity = activityNow(conversation, session);
  const { word } = ACTIVITY_WORDS[activity];
  const resting = { word, workedMs: null, silentMs: null };
  if (status === "provisioning") return { ...resting, state: status };
  if (status !== "running" || turn === "idle") return { ...resting, state: STATES[activity] ?? "idle" };
  const silence = activity === "working" ? silentSince(conversation) : null;
  const silentMs = silence === null ? 0 : nowMs - silence;
  return {
    word,
    state: activity === "working" ? "running" : "requires_action",
    workedMs: since === null ? null : nowMs - Date.parse(since),
    silentMs: silentMs >= SILENT_MS ? silentMs : null,
  };
};
