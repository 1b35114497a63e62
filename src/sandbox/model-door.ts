/**
 * What answers the calls of sandboxes to the account's own providers of models and to the managed gateway. The egress proxy knows from its socket which sandbox
 * calls, so no token decides, and none has to be in a sandbox. Who answers needs the store, and sandboxes start beside it, so it comes
 * later.
 */
import type { Readable } from "node:stream";

type Headers = Readonly<Record<string, string | string[] | undefined>>;

export interface ModelRequest {
  readonly method: string;
  /** As the sandbox wrote it, with the query. */
  readonly path: string;
  /** Names in lower case, without those of the proxy itself. */
  readonly headers: Headers;
  /** The managed gateway's base URL: the policy allows the request. Null means one of the account's providers, by the path. */
  readonly gateway: URL | null;
  readonly body: Readable | null;
  /** Aborts when the caller leaves. */
  readonly left: AbortSignal;
}

export interface ModelAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** The call's settlement begins before it ends or is left. It fails if the answer breaks off. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** The call is answered here. The sentence is for people. */
export interface ModelRefusal {
  readonly refused: 403 | 502 | 504;
  readonly reason: string;
}

/** Null if the path names no provider of the account, or the sandbox has ended. */
export type ServeModel = (request: ModelRequest) => Promise<ModelAnswer | ModelRefusal | null>;

export class ModelDoor {
  #serve: ((sandboxId: string, request: ModelRequest) => ReturnType<ServeModel>) | null = null;

  /** From now on, this one answers. If null, calls are refused. */
  answerWith(serve: ((sandboxId: string, request: ModelRequest) => ReturnType<ServeModel>) | null): void {
    this.#serve = serve;
  }

  /** The door of one sandbox. */
  serve(sandboxId: string): ServeModel {
    return async (request) =>
      this.#serve === null
        ? { refused: 502, reason: "the service starts or ends: try again" }
        : this.#serve(sandboxId, request);
  }
}
