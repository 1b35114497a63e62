/**
 * What answers the calls of sandboxes to the account's own providers of models. The egress proxy knows from its socket which sandbox
 * calls, so no token decides, and none has to be in a sandbox. Who answers needs the store, and sandboxes start beside it, so it comes
 * later.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Refusal } from "./egress-messages.ts";

export interface ModelRequest {
  /** As the sandbox wrote it, with the query. */
  readonly path: string;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
}

/** @returns false: the path names no provider of the account, and nothing was sent. @throws Refusal or NetFault before anything was sent */
export type ServeModel = (request: ModelRequest) => Promise<boolean>;

export class ModelDoor {
  #serve: ((sandboxId: string, request: ModelRequest) => Promise<boolean>) | null = null;

  /** From now on, this one answers. Null: nobody does. */
  answerWith(serve: ((sandboxId: string, request: ModelRequest) => Promise<boolean>) | null): void {
    this.#serve = serve;
  }

  /** The door of one sandbox. */
  of(sandboxId: string): ServeModel {
    return async (request) => {
      if (this.#serve === null) throw new Refusal(502, "the service starts or ends: try again");
      return this.#serve(sandboxId, request);
    };
  }
}
