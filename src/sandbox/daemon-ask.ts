/** Calls to the daemon over HTTP that have one answer. */
import { Agent, request } from "node:http";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { USER_CONTEXT_HEADER } from "../domain/sandbox/user-context.ts";
import { thrownText } from "../ground/thrown.ts";
import { DaemonUnreachable } from "./daemon.ts";
import { linkRequest, linkTarget, type DaemonLink } from "./port.ts";

/** Answers are a page of text. A longer one does not come from our daemon. */
const ANSWER_LIMIT_BYTES = 1024 * 1024;

export const unreachable = (error: unknown) => new DaemonUnreachable({ message: thrownText(error) });

/** A connection for each request: an ended sandbox's daemon must never answer for the next one. */
const agent = new Agent({ keepAlive: false });

/** Node's request options for a link. */
export const dialOptions = (link: DaemonLink) => {
  const target = linkTarget(link);
  return "createConnection" in target ? target : { ...target, agent };
};

/** Raw headers by name. */
export const nameHeaders = (raw: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(raw.flatMap((name, at) => (at % 2 === 0 ? [[name, raw[at + 1] ?? ""]] : [])));

export interface Call {
  readonly path: string;
  readonly timeoutMs: number;
  /** Bytes are sent as they are, by PUT; anything else as JSON, by POST. Without a body the call is a GET. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** The longest answer. Absent: 1 MiB. */
  readonly limitBytes?: number;
}

export interface Answer {
  readonly status: number;
  readonly text: string;
}

const sentAs = (body: unknown) => {
  if (body === undefined) return { method: "GET", body, headers: {} };
  const isRaw = body instanceof Uint8Array;
  const bytes = isRaw ? body : Buffer.from(JSON.stringify(body));
  return {
    method: isRaw ? "PUT" : "POST",
    body: bytes,
    headers: {
      "content-type": isRaw ? "application/octet-stream" : "application/json",
      "content-length": bytes.length,
    },
  };
};

/** Sends one call and reads the whole answer. */
export const ask = (
  link: DaemonLink,
  { path, timeoutMs, limitBytes = ANSWER_LIMIT_BYTES, ...call }: Call,
): Effect.Effect<Answer, DaemonUnreachable> =>
  Effect.callback<Answer, DaemonUnreachable>((resume) => {
    const { method, body, headers } = sentAs(call.body);
    const target = linkRequest(link, { method, path, by: "service" });
    const outgoing = request(
      {
        ...dialOptions(link),
        path: target.path,
        method,
        headers: { ...headers, ...call.headers, ...nameHeaders(target.headers) },
      },
      (answer) => {
        const chunks: Buffer[] = [];
        let size = 0;
        answer.on("data", (chunk: Buffer) => {
          size += chunk.length;
          if (size > limitBytes) outgoing.destroy(new Error("the answer is too long"));
          else chunks.push(chunk);
        });
        answer.on("end", () => {
          const text = Buffer.concat(chunks).toString("utf8");
          resume(Effect.succeed({ status: answer.statusCode ?? 0, text }));
        });
        answer.on("error", (error) => resume(Effect.fail(unreachable(error))));
      },
    );
    outgoing.on("error", (error) => resume(Effect.fail(unreachable(error))));
    outgoing.end(body);
    return Effect.sync(() => outgoing.destroy());
  }).pipe(
    Effect.timeoutOrElse({
      duration: timeoutMs,
      orElse: () => Effect.fail(unreachable(new Error(`no answer within ${timeoutMs} ms`))),
    }),
  );

const decodeCode = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ code: Schema.String })));

/** The code of a refusal. */
export const refusalCode = ({ text }: Answer): string | null => {
  const code = decodeCode(text);
  return code._tag === "Some" && /^[a-z_]{1,40}$/.test(code.value.code) ? code.value.code : null;
};

/** Only a refusal's code is used: its sentence comes from the sandbox. */
export const toUnreachable = (answer: Answer): DaemonUnreachable => {
  const code = refusalCode(answer);
  return new DaemonUnreachable({
    message: `the daemon answered ${answer.status}${code === null ? "" : ` ${code}`}`,
  });
};

export const decodeAs =
  <A>(schema: Schema.Decoder<A>) =>
  (text: string): Effect.Effect<A, DaemonUnreachable> =>
    Effect.mapError(Schema.decodeUnknownEffect(Schema.fromJsonString(schema))(text), unreachable);

export interface ContextCall extends Omit<Call, "headers"> {
  readonly context: string;
}

/** Calls a session's daemon, and decodes the answer with status 200. */
export const askFor = <A, B = never, E = never>(
  link: DaemonLink,
  {
    context,
    others,
    ...call
  }: ContextCall & {
    /** What answers with another status mean. Undefined: the daemon failed. */
    readonly others?: (answer: Answer) => Effect.Effect<B, E> | undefined;
  },
  schema: Schema.Decoder<A>,
): Effect.Effect<A | B, DaemonUnreachable | E> =>
  ask(link, { ...call, headers: { [USER_CONTEXT_HEADER]: context } }).pipe(
    Effect.flatMap((answer): Effect.Effect<A | B, DaemonUnreachable | E> =>
      answer.status === 200
        ? decodeAs(schema)(answer.text)
        : (others?.(answer) ?? Effect.fail(toUnreachable(answer))),
    ),
  );
