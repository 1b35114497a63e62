/** A terminal of a real session, over a WebSocket. */
import { expect } from "vitest";
import { WebSocket } from "ws";
import { POLL, type LiveSession } from "./live-session.ts";

interface Said {
  readonly output_from?: number;
  readonly exit?: number;
}

/** One connection, and what came over it. */
export class Terminal {
  readonly socket: WebSocket;
  output = "";
  /** The number of the output's next byte. */
  next = -1;
  exit: number | null = null;
  close: { readonly code: number; readonly reason: string } | null = null;

  constructor(session: LiveSession, query: Readonly<Record<string, string>> | URLSearchParams) {
    const { url, headers } = session.address("terminal");
    url.protocol = "ws:";
    url.search = new URLSearchParams(query).toString();
    this.socket = new WebSocket(url, { headers });
    this.socket.on("error", () => undefined);
    this.socket.on("message", (data: Buffer, isBinary) => {
      if (!isBinary) this.#hear(JSON.parse(data.toString()) as Said);
      else {
        this.next += data.length;
        this.output = (this.output + data.toString("utf8")).slice(-100_000);
      }
    });
    this.socket.on("close", (code, reason) => (this.close = { code, reason: reason.toString() }));
  }

  #hear({ output_from: from, exit }: Said): void {
    this.next = from ?? this.next;
    this.exit = exit ?? this.exit;
  }

  type(text: string): void {
    this.socket.send(Buffer.from(text));
  }

  shows(text: string | RegExp): Promise<unknown> {
    return expect.poll(() => this.output, POLL).toMatch(text);
  }

  async closes(): Promise<number | undefined> {
    await expect.poll(() => this.close, POLL).not.toBeNull();
    return this.close?.code;
  }
}
