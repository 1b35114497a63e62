/**
 * What the daemon sees of the model's calls: those that pass the forwarder to the service's own door (the managed gateway, and providers of
 * accounts, projects and persons), as plain HTTP. An agent tells
 * an error in words of its own, and may repeat a call for minutes first. The provider's status says at once what happened.
 *
 *  V1 Calls with a project's own key in the sandbox are encrypted, so they are not seen.
 *  V2 A head that arrives in pieces is not read: its call counts as unseen, and never as refused.
 */
import { subscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import * as Schema from "effect/Schema";
import { MODEL_HOST } from "../../src/domain/sandbox/account-provider.ts";
import { retryTime } from "../../src/domain/session/model-errors.ts";
import { TokensReader } from "../../src/domain/sandbox/model-tokens.ts";
import { PassedCalls } from "./passed-calls.ts";

const REQUEST = new RegExp(`^POST http://${MODEL_HOST.replaceAll(".", "\\.")}[:/]`, "i");
const ANSWER = /^HTTP\/1\.[01] (\d{3})[ \r]/;
/** How much of a piece is read. A head and the words of an error are shorter. */
const READ_MAX = 4096;

/** An answer of the gateway that is no success. */
export interface GatewayRefusal {
  readonly status: number;
  /** The provider's words. Empty: they were not read. */
  readonly words: string;
  /** When the provider takes requests again, in words (`retryTime`). Null if it did not say. */
  readonly again: string | null;
  /** How many there were in a row. */
  readonly times: number;
}

/** One connection through the forwarder. */
export interface Connection {
  readonly sent: (piece: Buffer) => void;
  readonly received: (piece: Buffer) => void;
  readonly closed: () => void;
}

/** An open call. */
interface Call {
  status: number | null;
  /** How many bytes are still to come. Null if the answer says itself when it ends. */
  left: number | null;
  /** The last characters that came. */
  tail: string;
  readonly tokens: TokensReader;
}

/** The last chunk of an answer. */
const LAST_CHUNK = "0\r\n\r\n";

const ErrorBody = Schema.fromJsonString(
  Schema.Struct({ error: Schema.Union([Schema.String, Schema.Struct({ message: Schema.String })]) }),
);
const decodeBody = Schema.decodeUnknownOption(ErrorBody);

const wordsIn = (piece: string): string => {
  const body = piece.slice(piece.indexOf("\r\n\r\n") + 4);
  // A body in chunks has its length before it.
  const errorBody = decodeBody(body.slice(Math.max(0, body.indexOf("{")), body.lastIndexOf("}") + 1));
  if (errorBody._tag === "None") return "";
  const { error } = errorBody.value;
  return typeof error === "string" ? error : error.message;
};

export class GatewayCalls {
  /** Successful calls that have ended. */
  readonly passed = new PassedCalls();
  readonly #open = new Set<Call>();
  #pieces = 0;
  #refused: GatewayRefusal | null = null;
  readonly #now: () => number;

  /** @param now ms since the epoch */
  // oxlint-disable-next-line no-restricted-properties -- for what sockets call, outside any fiber
  constructor(now: () => number = () => Date.now()) {
    this.#now = now;
  }

  /** A turn begins: what was before is not its own. */
  begin(): void {
    this.#refused = null;
    this.passed.clear();
  }

  /** Whether a call waits for its answer, or for more of it. */
  get isCalling(): boolean {
    return this.#open.size > 0;
  }

  /** How many pieces of calls have passed so far. */
  get pieces(): number {
    return this.#pieces;
  }

  /** The last answer, if it was no success. Null if it was one, or none came since the beginning. */
  get refused(): GatewayRefusal | null {
    return this.#refused;
  }

  connection(): Connection {
    let call: Call | null = null;
    const end = (): void => {
      if (call !== null) this.#ended(call);
      call = null;
    };
    return {
      sent: (piece) => {
        if (!REQUEST.test(piece.toString("latin1", 0, READ_MAX))) return;
        end();
        call = { status: null, left: null, tail: "", tokens: new TokensReader() };
        this.#open.add(call);
        this.#pieces += 1;
      },
      received: (piece) => {
        if (call === null) return;
        this.#pieces += 1;
        if (this.#take(call, piece)) end();
      },
      closed: end,
    };
  }

  #ended(call: Call): void {
    this.#open.delete(call);
    const { tokens } = call.tokens;
    if (tokens !== null && call.status !== null && call.status < 400) this.passed.passed(tokens);
  }

  /** @returns whether the answer is whole */
  #take(call: Call, piece: Buffer): boolean {
    const text = piece.toString("latin1");
    call.tail = `${call.tail}${text}`.slice(-LAST_CHUNK.length);
    call.tokens.take(text);
    if (call.status === null) {
      const [head = ""] = text.split("\r\n\r\n", 1);
      const [, status] = ANSWER.exec(head) ?? [];
      // V2.
      if (status === undefined) return true;
      call.status = Number(status);
      const [, length] = /^content-length: *(\d+)\r?$/im.exec(head) ?? [];
      call.left = length === undefined ? null : Number(length) + head.length + 4;
      const [, after = ""] = /^retry-after:([^\r\n]{1,64})\r?$/im.exec(head) ?? [];
      const again = retryTime(after, this.#now());
      this.#answered(call.status, { again, words: wordsIn(piece.toString("utf8", 0, READ_MAX)) });
    }
    if (call.left === null) return call.tail === LAST_CHUNK;
    call.left -= piece.length;
    return call.left <= 0;
  }

  #answered(status: number, detail: Pick<GatewayRefusal, "words" | "again">): void {
    this.#refused = status < 400 ? null : { status, ...detail, times: (this.#refused?.times ?? 0) + 1 };
  }
}

/** Looks at every connection that the forwarder of this process carries, while it lives. */
export const watchGateway = (): GatewayCalls => {
  const calls = new GatewayCalls();
  subscribe("platform.egress", (message) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the forwarder's own message
    const { client, proxy } = message as { readonly client: Socket; readonly proxy: Socket };
    const { sent, received, closed } = calls.connection();
    client.on("data", sent);
    proxy.on("data", received);
    proxy.on("close", closed);
  });
  return calls;
};
