/** Who uses the gateway, for both of its methods (executor.ts G1, G3). */
import * as Effect from "effect/Effect";
import { HttpServerRequest } from "effect/http";
import type { AgentCaller } from "../../services/connectors/executor-decision.ts";
import type { Principal } from "../../store/ports/people/identity.ts";
import type { RequestCaller } from "../api/access.ts";
import { Forbidden } from "../api/errors.ts";
import { forbidden } from "../callers/authorize.ts";
import { requireProject } from "../steps/answers.ts";
import { Addresses } from "../limits.ts";

/** The session of a sandbox's token, or null for any other token. */
const toAgentCaller = (caller: Principal, projectId: string): AgentCaller | null =>
  caller.sessionId === null || caller.projectId !== projectId
    ? null
    : {
        projectId,
        sessionId: caller.sessionId,
        userId: caller.user.id,
        startedBy: caller.origin === "trigger" ? "trigger" : "user",
      };

const refuseRequests = (what: string) =>
  new Forbidden({ error: `This address does not accept requests ${what}.`, code: "forbidden" });

/** G3. The service's own names, for people and for sandboxes. Sandboxes send no origin. */
const checkSource = Effect.fnUntraced(function* ({ headers }: HttpServerRequest.HttpServerRequest) {
  const { publicUrl, internalUrl } = yield* Addresses;
  const own = [new URL(publicUrl), new URL(internalUrl)];
  const { host, origin } = headers;
  if (!own.some((url) => url.host === host)) return yield* refuseRequests("for another host");
  if (origin !== undefined && !own.some((url) => url.origin === origin))
    return yield* refuseRequests("from another origin");
  return null;
});

/** The agent that calls, and a request that is meant for this service. */
export const agentFor = Effect.fnUntraced(function* (caller: RequestCaller, projectId: string) {
  yield* checkSource(yield* HttpServerRequest.HttpServerRequest);
  yield* requireProject(caller, projectId);
  return toAgentCaller(caller, projectId) ?? (yield* forbidden(caller, { by: "token" }));
});
