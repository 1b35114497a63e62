/** `platform sessions wait`: returns when the agent of a session rests, with an exit code that says how. */
import { setTimeout as pause } from "node:timers/promises";
import type { Client } from "../../client.ts";
import { command } from "../../command.ts";
import type { Answer } from "../../contract.ts";
import { EXIT, Failure } from "../../failure.ts";
import { type Screen, time, safeLine } from "../../terminal.ts";
import { duration, sessionId } from "../../words.ts";
import { contentText } from "../../../domain/conversation/growing.ts";
import { Talk } from "./talk/talk.ts";

type Session = Answer<"GET /v1/projects/:pid/sessions/:sid">;
type Conversation = Answer<"GET /v1/projects/:pid/sessions/:sid/conversation">;

/** Pauses between two looks: the first ones are short, for turns that end soon. */
const PAUSE_MS = 500;
const PAUSE_MAX_MS = 5_000;
/** How long an idle session may lack the end of its newest turn. It comes within moments; clocks of machines may differ. */
const LATE_MS = 10_000;
/** How many items are searched for the newest message of a person. */
const LOOKED_AT = 100;

const agentFailure = (code: string, message: string): Failure =>
  new Failure(EXIT.agentFailed, code, { message });

/** What the agent asks, if it asks anything. */
const asks = ({ turn, pending_approvals: calls, waits_for: wait }: Session): Failure | null => {
  const kind = wait?.kind ?? "work_unsaved";
  if (calls === 0 && turn.state !== "requires_action" && kind === "work_unsaved") return null;
  const what = calls > 0 ? "an approval" : wait?.kind === "plan" ? "the approval of its plan" : "an answer";
  return new Failure(EXIT.agentAsks, "requires_action", { message: `The agent waits for ${what}.` });
};

/** How the last turn ended. */
const ofTurn = ({ last_turn: turn }: Session): Failure | null => {
  if (turn === null || turn.state === "completed") return null;
  if (turn.state === "interrupted") return agentFailure("interrupted", "The agent was interrupted.");
  const { code, message } = turn.error ?? { code: "turn_failed", message: "no reason given" };
  return agentFailure(code, `The agent failed: ${message}`);
};

/** How a session that is not live ended. */
const ofEnd = (session: Session): Failure | null => {
  const { status, failure, last_turn: turn, stop_reason: reason } = session;
  if (status === "failed")
    return agentFailure(
      failure?.code ?? "session_failed",
      `The session failed: ${failure?.message ?? "no reason given"}`,
    );
  if (turn === null)
    return agentFailure(reason ?? status, "The session ended before the agent finished a turn.");
  return ofTurn(session);
};

/**
 * Whether the last turn that ended is the newest one. A message that the agent has just accepted is followed by a turn that no
 * report may show yet, and the end of a turn may come a moment after the report that the agent rests.
 */
const isNewest = ({ last_turn: turn }: Session, { items }: Conversation): boolean => {
  if (items.length === 0) return true;
  const message = items.find(
    ({ kind, role, status }) => kind === "message" && role === "user" && status === "accepted",
  );
  const since = message?.completed_at ?? items.at(-1)?.created_at ?? "";
  return turn !== null && Date.parse(turn.at) >= Date.parse(since);
};

type Look =
  | { readonly is: "busy" }
  /** The service cannot be reached, or is busy. */
  | { readonly is: "away"; readonly why: Failure }
  /** `rest`: the agent rests. `late`: nothing goes on, and the end of the newest turn is missing. `failure`: null if it finished. */
  | {
      readonly is: "rest" | "late";
      readonly session: Session;
      readonly text: string;
      readonly failure: Failure | null;
      /** Null if it was not read. */
      readonly conversation: Conversation | null;
    };

interface Watched {
  readonly client: Client;
  readonly params: { readonly pid: string; readonly sid: string };
}

const BUSY: Look = { is: "busy" };
const ENDED: ReadonlySet<Session["status"]> = new Set(["stopped", "failed", "completed"]);

const look = async ({ client, params }: Watched): Promise<Look> => {
  const { value: session, text } = await client.call("GET /v1/projects/:pid/sessions/:sid", { params });
  const rest = { is: "rest", session, text, conversation: null } as const;
  const failure = asks(session);
  if (failure !== null) return { ...rest, failure: failure };
  // A restart waits for a place: a message to it came during its stop.
  if (session.activity === "queued") return BUSY;
  if (ENDED.has(session.status)) return { ...rest, failure: ofEnd(session) };
  if (session.status !== "running" || session.turn.state !== "idle") return BUSY;
  const { value: conversation } = await client.call("GET /v1/projects/:pid/sessions/:sid/conversation", {
    params,
    query: { limit: LOOKED_AT },
  });
  const { state, queue, queue_held: isHeld } = conversation;
  if (state.state !== "idle" || (queue.length > 0 && !isHeld)) return BUSY;
  const is = isNewest(session, conversation) ? "rest" : "late";
  return { is, session, text, failure: ofTurn(session), conversation };
};

const lookOnce = async (target: Watched): Promise<Look> => {
  try {
    return await look(target);
  } catch (error) {
    if (error instanceof Failure && error.exit === EXIT.tryAgain) return { is: "away", why: error };
    throw error;
  }
};

/** Looks until the agent rests. @returns the last look; null if the time is over */
const untilRest = async (
  target: Watched,
  limitMs: number,
  note: (line: string) => void,
): Promise<Extract<Look, { is: "rest" | "late" }> | null> => {
  const deadline = performance.now() + limitMs;
  let lateSince: number | null = null;
  let isAway = false;
  for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(pauseMs * 1.5, PAUSE_MAX_MS)) {
    // oxlint-disable-next-line no-await-in-loop -- one look follows the other
    const latest = await lookOnce(target);
    const now = performance.now();
    if (latest.is === "rest") return latest;
    lateSince = latest.is === "late" ? (lateSince ?? now) : null;
    if (latest.is === "late" && now - (lateSince ?? now) > LATE_MS) return latest;
    if (latest.is === "away" && !isAway) note(`${latest.why.message} Trying again.`);
    isAway = latest.is === "away";
    if (now >= deadline) return null;
    // oxlint-disable-next-line no-await-in-loop -- the next look waits
    await pause(Math.min(pauseMs, Math.max(deadline - now, 1)));
  }
};

/** Shows the agent's last answer on a screen, as the chat does. */
const showAnswer = (screen: Screen, { items }: Conversation): void => {
  const answer = items.find(
    (item) => item.kind === "message" && item.role === "agent" && contentText(item) !== "",
  );
  if (answer === undefined) return;
  const talk = new Talk(screen);
  talk.take({ id: null, event: "item", data: JSON.stringify(answer) });
  screen.write("\n");
};

export const wait = command({
  name: "sessions wait",
  about: "Wait until the agent of a session has finished, failed or asks something",
  example: "sessions wait 1a2b3c4d --timeout 30m",
  takes: ["SESSION"],
  inProject: true,
  options: { timeout: { value: "TIME", about: "Give up after this time: 90s, 30m or 24h (no limit)" } },
  notes:
    "The agent has finished when its turn has ended and no message waits for it. The command prints one line, and at a terminal the agent's last answer above it. Exit codes of its own: 7 the agent failed or was interrupted, or the session ended before it finished; 8 the agent waits for an answer or an approval, also of its plan. When the time of --timeout is over, the exit code is 6. While the service cannot be reached, the command tries again.",
  run: async ({ given, options, screen, note, api, project }) => {
    const limitMs = options.timeout === undefined ? Infinity : duration(options.timeout, "--timeout");
    const target = { client: api(), params: { pid: await project(), sid: sessionId(given.SESSION) } };
    const rest = await untilRest(target, limitMs, note);
    if (rest === null)
      throw new Failure(EXIT.tryAgain, "timeout", {
        message: `The agent has not finished within ${options.timeout ?? ""}.`,
      });
    if (rest.failure !== null) throw rest.failure;
    const { id, last_turn: turn } = rest.session;
    if (screen !== null && rest.conversation !== null) showAnswer(screen, rest.conversation);
    const what = turn === null ? "has nothing to do" : `finished at ${time(turn.at)}`;
    return { json: rest.text, text: safeLine(`${id} The agent ${what}.`) };
  },
});
