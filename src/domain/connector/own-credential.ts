/**
 * When a person's own credential works in her session (docs/use/own-credentials.md): for a connector, and for a provider of models.
 *
 *  O1 It works while she alone steers the session. The first act of another person suspends it, before the act takes effect.
 *  O2 The person who steers an agent steers the sessions that it started: each is suspended with the session above it.
 *  O3 She alone gives it back, for one session at a time. A later act of another person suspends it again. A waiting message of
 *     another person suspends it, too, when it goes out.
 */

/** What another person did to steer a session, and the words for it. */
export const STEERING_ACTS = {
  message: "sent a message to the agent",
  answer: "answered the agent",
  restart: "restarted the session",
  terminal: "opened a terminal",
  runtime: "used the agent runtime",
  port: "sent a request to a program in the sandbox",
  push: "pushed to the session's branch",
} as const;
export type SteeringAct = keyof typeof STEERING_ACTS;

/** Whether somebody other than the session's person steers it. A trigger's session has no person. */
export const steersForAnother = (
  session: { readonly origin: "session" | "trigger"; readonly createdBy: string },
  userId: string,
): boolean => session.origin === "session" && session.createdBy !== userId;

/** Whether a request to a program inside can steer it. Pages and event streams are read. */
export const isSteeringRequest = (method: string | undefined, isUpgrade: boolean): boolean =>
  isUpgrade || (method !== "GET" && method !== "HEAD");

export interface Suspension {
  /** The session that was steered: the agent's own, or one above it. */
  readonly sessionId: string;
  readonly by: { readonly id: string; readonly name: string };
  readonly act: SteeringAct;
  readonly at: number;
}

/** Why a call is refused, for the agent and for the record of calls. @param what e.g. `The connector mail` */
export const suspendedMessage = (what: string, { sessionId, by, act }: Suspension): string =>
  `${what} uses the own credential of the person who started this session. It is suspended here: ${by.name} ` +
  `${STEERING_ACTS[act]}. She can give it back: platform sessions give-credentials ${sessionId}.`;
