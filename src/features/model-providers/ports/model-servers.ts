/** The port to providers' servers. The adapter is sender.ts. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import type { Readable } from "node:stream";
import { UNFOLLOWED, type KeyAnswer } from "../../../domain/sandbox/model-key.ts";

type Headers = Readonly<Record<string, string | string[]>>;

export interface ServerCall {
  readonly base: URL;
  /** As it stands on the wire: with the base's, and with the query. */
  readonly path: string;
  readonly method: string;
  readonly headers: Headers;
  readonly body: Readable | null;
  /** Ends the call. */
  readonly left: AbortSignal;
}

export interface ServerAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** It fails if it breaks off. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** There is no answer. */
export interface Unreached {
  /** As part of a sentence about the host. It may name addresses. */
  readonly why: string;
  /** Likewise, without addresses: for sandboxes. */
  readonly discreetWhy: string;
  readonly isLate: boolean;
}

export interface ModelServersPort {
  /** One request whose answer is streamed. No redirect is followed. */
  readonly call: (call: ServerCall) => Effect.Effect<ServerAnswer, Unreached>;
  /** Whether the operator lets the service reach this place. The place is not asked. */
  readonly check: (url: URL) => Effect.Effect<void, Unreached>;
  /** One read, whose time and size are bounded. */
  readonly read: (url: URL, headers: Headers) => Effect.Effect<KeyAnswer, Unreached>;
}

const why = "is not asked by this service";
const unfollowed = `${UNFOLLOWED}: its base URL may be another one`;
export const REDIRECTED: Unreached = { why: unfollowed, discreetWhy: unfollowed, isLate: false };

const none = Effect.fail({ why, discreetWhy: why, isLate: false });

/** Without an adapter, no provider is asked. */
const NONE: ModelServersPort = { call: () => none, check: () => Effect.void, read: () => none };

export const ModelServers = Context.Reference<ModelServersPort>("platform/model-providers/ModelServers", {
  defaultValue: () => NONE,
});

/** The way to the managed gateway, which the operator chose: its address may be private. */
export const GatewayServer = Context.Reference<ModelServersPort>("platform/model-providers/GatewayServer", {
  defaultValue: () => NONE,
});
