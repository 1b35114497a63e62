/**
 * Keeps opencode connected to the gateway to tools. opencode connects to MCP servers when it opens its project, once: if the
 * service is away in that moment, the agent has no tools until something asks opencode to connect again.
 */
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { callHttp, type HttpFailure } from "../../http/client.ts";
import type { OpencodeApi } from "./api.ts";

/** The gateway's name in opencode's configuration. Agents see it at the beginning of each tool's name. */
export const GATEWAY = "platform-executor";
/** How long opencode waits for a tool of the gateway: a call waits two minutes for a person, and lasts up to a minute. */
export const GATEWAY_MS = 200_000;
/** The first look comes later than what opencode does at its start. Each one without a connection doubles the pause. */
const FIRST_PAUSE_MS = 2000;
const LONGEST_PAUSE_MS = 60_000;

const Servers = Schema.Record(Schema.String, Schema.Struct({ status: Schema.String }));

/** One look. It connects where the connection failed. @returns whether opencode is connected. Null if it has no gateway. */
const look = Effect.fnUntraced(function* (api: OpencodeApi): Effect.fn.Return<boolean | null, HttpFailure> {
  const status = (yield* api.get("/mcp", Servers))[GATEWAY]?.status;
  if (status === undefined) return null;
  if (status !== "failed") return true;
  // Attempts do not overlap: opencode itself gives up after this time.
  yield* callHttp({ url: api.url(`/mcp/${GATEWAY}/connect`), method: "POST", timeoutMs: GATEWAY_MS });
  return (yield* api.get("/mcp", Servers))[GATEWAY]?.status === "connected";
});

/** Ends only if opencode has no gateway. A look that fails, because opencode does not answer, is one without a connection. */
export const keepConnected = Effect.fnUntraced(function* (api: OpencodeApi) {
  let pauseMs = FIRST_PAUSE_MS;
  for (;;) {
    yield* Effect.sleep(pauseMs);
    const isConnected = yield* Effect.orElseSucceed(look(api), () => false);
    if (isConnected === null) return;
    pauseMs = isConnected ? LONGEST_PAUSE_MS : Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
  }
});
