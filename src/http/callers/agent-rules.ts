/**
 * The rules for what agents do by the API or by the platform's own tools (domain/connector/own-tools.ts U1).
 *
 *  R1 A session is started by an agent wherever one begins to boot at its request: a new one, a fire, a replay, a restart. The project's
 *     rule for `start_session` holds for all of them. A new session and a fire's are children of the agent's session: the limits of depth and of
 *     live children hold for them.
 */
import * as Effect from "effect/Effect";
import type { GuardedTool } from "../../domain/connector/connector.ts";
import { projectExecutor } from "../../services/connectors/connectors.ts";
import type { Principal } from "../../store/ports/people/identity.ts";
import { Sessions } from "../../store/ports/sessions/sessions.ts";
import { PARENTS_MAX } from "../../domain/session/session.ts";
import { Conflict, Forbidden } from "../api/errors.ts";

/** Fails with 403 if the caller is an agent and its project denies this to agents. */
export const requireAllowed = Effect.fnUntraced(function* (
  { sessionId }: Principal,
  projectId: string,
  tool: GuardedTool,
) {
  if (sessionId === null) return;
  const executor = yield* projectExecutor(projectId);
  if (executor?.denied.includes(tool) !== true) return;
  return yield* new Forbidden({
    error: `platform.toml denies ${tool} to this project's agents.`,
    code: "forbidden",
  });
});

/** The session whose agent wishes a session. An agent's sessions start others to a depth of PARENTS_MAX. */
export const parentSession = Effect.fnUntraced(function* ({ sessionId }: Principal) {
  if (sessionId === null) return {};
  const sessions = yield* Sessions;
  let above = yield* sessions.get(sessionId);
  for (let depth = 1; above?.parentSessionId !== null && above !== null; depth += 1) {
    if (depth >= PARENTS_MAX)
      return yield* new Conflict({
        error:
          "This session was started by the agent of a session that an agent started. It cannot start another one.",
        code: "child_session_depth",
      });
    above = yield* sessions.get(above.parentSessionId);
  }
  return { parentSessionId: sessionId };
});
