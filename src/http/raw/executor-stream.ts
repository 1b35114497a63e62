/** `GET /v1/projects/{pid}/executor/mcp`: tells an agent's client that its tools have changed (live/tools.ts). */
import * as Effect from "effect/Effect";
import { eventResponse } from "../live/events.ts";
import { streamCounter } from "../live/stream-counter.ts";
import { toolStream, type ToolTails } from "../live/tools.ts";
import { agentFor } from "./executor-caller.ts";
import { calledWith, endOfAccess } from "./raw-route.ts";

/** How many streams a session may have open: a client has one. */
const STREAMS_MAX = 4;

/** The route's handler. The stream ends with the session's token. */
export const listening = (tails: ToolTails) => {
  const count = streamCounter(STREAMS_MAX);
  return calledWith("call_tool", (caller, { pid }) =>
    Effect.gen(function* () {
      const { startedBy } = yield* agentFor(caller, pid);
      yield* count(caller.tokenId);
      const end = yield* endOfAccess(caller, pid, "member");
      return eventResponse(yield* toolStream(tails, pid, startedBy), end);
    }),
  );
};
