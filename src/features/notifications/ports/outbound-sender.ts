/** The port to receivers outside: one request with its answer. The adapter is sender.ts. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";

export interface OutboundRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface OutboundAnswer {
  /** Null if there was no answer. */
  readonly status: number | null;
  /** Why there was no answer, as a sentence for the people of the project. */
  readonly error: string | null;
  /** The first `ANSWER_KEPT` bytes of the body. */
  readonly body: Uint8Array;
  /** The header of this name. */
  readonly retryAfter: string | null;
  readonly tookMs: number;
}

/** Sends a POST without following redirects, and waits for its answer for `TRY_TIMEOUT_MS`. It never fails. */
export type SendOutbound = (request: OutboundRequest) => Effect.Effect<OutboundAnswer>;

/** Without an adapter, nothing leaves the service. */
export const OutboundSender = Context.Reference<SendOutbound>("platform/notifications/OutboundSender", {
  defaultValue: () => () =>
    Effect.succeed({
      status: null,
      error: "This service sends no webhooks.",
      body: new Uint8Array(),
      retryAfter: null,
      tookMs: 0,
    }),
});
