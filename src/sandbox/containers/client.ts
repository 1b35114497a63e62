/**
 * Requests to a container engine over its unix socket. Each request has a connection of its own: a kept one would fail
 * after the engine's restart.
 */
import { request as open, type IncomingMessage } from "node:http";
import * as Option from "effect/Option";
import * as Schema from "effect/Schema";

/** The engine answered, and does not do it. */
export class Refusal extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export interface EngineRequest {
  readonly method: "DELETE" | "GET" | "POST";
  /** With encoded names. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** A tar archive, or a value that is sent as JSON. */
  readonly body?: unknown;
  /** Without one, the request waits as long as the engine takes. */
  readonly signal?: AbortSignal;
}

/** The longest answer. Ten thousand containers in a list take a tenth of it. */
const ANSWER_MAX = 256 * 1024 * 1024;

const decodeMessage = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ message: Schema.String })),
);

const readText = async (answer: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > ANSWER_MAX) throw new Error(`its answer is longer than ${ANSWER_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
};

const encodeBody = (body: unknown): { readonly type: string; readonly bytes: Buffer } | null => {
  if (body === undefined) return null;
  if (Buffer.isBuffer(body)) return { type: "application/x-tar", bytes: body };
  return { type: "application/json", bytes: Buffer.from(JSON.stringify(body)) };
};

/**
 * @param socket the path of the engine's unix socket
 * @returns the text of the answer
 * @throws Refusal if the engine answers with an error; otherwise the connection's error, with its `code`
 */
export const askEngine = async (
  socket: string,
  { method, path, query = {}, body, signal }: EngineRequest,
): Promise<string> => {
  const content = encodeBody(body);
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const request = open({
    socketPath: socket,
    agent: false,
    method,
    path: `${path}?${new URLSearchParams(query).toString()}`,
    headers: {
      host: "localhost",
      "content-length": content?.bytes.length ?? 0,
      ...(content !== null && { "content-type": content.type }),
    },
    ...(signal !== undefined && { signal }),
  });
  request.on("response", resolve).on("error", reject);
  request.end(content?.bytes);
  const answer = await promise;
  const text = await readText(answer);
  const status = answer.statusCode ?? 0;
  if (status >= 400) {
    const errorAnswer = decodeMessage(text);
    throw new Refusal(status, Option.isSome(errorAnswer) ? errorAnswer.value.message : text);
  }
  return text;
};
