/** The project's rules for what its agents do by the API or by the platform's own tools (domain/own-tools.ts U1). */
import * as Effect from "effect/Effect";
import type { GuardedTool } from "../domain/connector.ts";
import { executorOf } from "../services/connectors.ts";
import type { Principal } from "../store/ports/identity.ts";
import { Forbidden } from "./api/errors.ts";

/** Fails with 403 if the caller is an agent and its project denies this to agents. */
export const requireAllowed = Effect.fnUntraced(function* (
  { sessionId }: Principal,
  projectId: string,
  tool: GuardedTool,
) {
  if (sessionId === null) return;
  const executor = yield* executorOf(projectId);
  if (executor?.denied.includes(tool) !== true) return;
  return yield* new Forbidden({
    error: `platform.toml denies ${tool} to this project's agents.`,
    code: "forbidden",
  });
});
