/** Any HTTP server as agent runtime. It takes the prompt from PLATFORM_INITIAL_PROMPT, and its turns are unknown. */
import * as Effect from "effect/Effect";
import { callHttp } from "../http/client.ts";
import { PROBE_TIMEOUT_MS, type RuntimeAdapter } from "./adapter.ts";

export const plainAdapter = (port: number): RuntimeAdapter => ({
  steering: null,
  environment: () => ({}),
  defaults: null,
  ownEdit: null,
  ahead: null,
  talk: null,
  lost: Effect.never,
  hasHttp: true,
  open: null,
  // Any answer proves that it runs, even a 404.
  probe: callHttp({ url: `http://127.0.0.1:${port}/`, timeoutMs: PROBE_TIMEOUT_MS }).pipe(
    Effect.asVoid,
    Effect.catch((failure) => (failure.status === null ? Effect.fail(failure) : Effect.void)),
  ),
  deliverPrompt: () => Effect.succeed("accepted"),
  restore: null,
  record: null,
  tell: () => Effect.void,
  follow: () => Effect.never,
  isBusy: Effect.succeed(false),
  abort: Effect.succeed(false),
});
