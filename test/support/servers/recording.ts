/** An upstream on a bare socket: it records the bytes that reach it, and answers as the test says. */
import { once } from "node:events";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";

export const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

export class Recording {
  /** One element for each connection, as latin1 text. */
  readonly connections: string[] = [];
  readonly sockets: Socket[] = [];
  /** Called with each received piece. By default the first one of a connection is answered. */
  onBytes: (socket: Socket, soFar: string) => void = (socket, soFar) => {
    if (soFar.includes("\r\n\r\n")) socket.write(OK);
  };
  /** Called when the other side has ended its half. */
  onEnd: (socket: Socket) => void = (socket) => void socket.end();
  readonly server: Server = createServer({ allowHalfOpen: true }, (socket) => this.#take(socket));

  static async start(): Promise<Recording> {
    const recording = new Recording();
    recording.server.listen(0, "127.0.0.1");
    await once(recording.server, "listening");
    return recording;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** All received bytes, over all connections. */
  get bytes(): string {
    return this.connections.join("");
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
    await once(this.server, "close");
  }

  #take(socket: Socket): void {
    const index = this.connections.push("") - 1;
    this.sockets.push(socket);
    socket.on("error", () => undefined);
    socket.on("end", () => this.onEnd(socket));
    socket.on("data", (chunk: Buffer) => {
      const soFar = (this.connections[index] ?? "") + chunk.toString("latin1");
      this.connections[index] = soFar;
      this.onBytes(socket, soFar);
    });
  }
}

/** Reads recorded bytes as a strict parser would. Throws if they are not valid requests. */
export const requestsIn = (bytes: string): { readonly head: string; readonly body: string }[] => {
  const found: { head: string; body: string }[] = [];
  for (let rest = bytes; rest !== "";) {
    const end = rest.indexOf("\r\n\r\n");
    if (end === -1) throw new Error(`bytes without an end of headers: ${JSON.stringify(rest)}`);
    const head = rest.slice(0, end);
    if (/[\r\n]/.test(head.replaceAll("\r\n", "")))
      throw new Error(`a bare CR or LF: ${JSON.stringify(head)}`);
    const { body, length } = bodyIn(head, rest.slice(end + 4));
    found.push({ head, body });
    rest = rest.slice(end + 4 + length);
  }
  return found;
};

const bodyIn = (head: string, rest: string): { readonly body: string; readonly length: number } => {
  const lengths = [...head.matchAll(/\r\ncontent-length: (\d+)(?=\r\n|$)/gi)];
  const codings = [...head.matchAll(/\r\ntransfer-encoding: (.*)/gi)];
  if (lengths.length + codings.length > 1) throw new Error(`framed twice: ${JSON.stringify(head)}`);
  if (codings.length === 0) {
    const length = Number(lengths[0]?.[1] ?? 0);
    if (rest.length < length) throw new Error(`a body cut short: ${JSON.stringify(rest)}`);
    return { body: rest.slice(0, length), length };
  }
  if (codings[0]?.[1] !== "chunked") throw new Error(`another coding: ${JSON.stringify(head)}`);
  let body = "";
  for (let at = 0; ;) {
    const [line = "", size = ""] = /^([1-9a-f][0-9a-f]*|0)\r\n/.exec(rest.slice(at)) ?? [];
    const [from, length] = [at + line.length, Number.parseInt(size, 16)];
    at = from + length + 2;
    if (line === "" || rest.slice(at - 2, at) !== "\r\n")
      throw new Error(`chunks without an end: ${JSON.stringify(rest)}`);
    if (length === 0) return { body, length: at };
    body += rest.slice(from, from + length);
  }
};
