/** The daemon's control surface over HTTP, on whatever link its provider gives. */
import { Agent, request } from "node:http";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Schema from "effect/Schema";
import { USER_CONTEXT_HEADER } from "../domain/user-context.ts";
import { DaemonClient, DaemonHealth, DaemonUnreachable, EnvironmentChanged } from "./daemon.ts";
import { linkTarget, type DaemonLink } from "./port.ts";

const HEALTH_TIMEOUT_MS = 1000;
const ENV_TIMEOUT_MS = 180_000;
/** Answers are a page of text; a daemon that sends more is not ours. */
const ANSWER_LIMIT_BYTES = 1024 * 1024;

const decodeHealth = Schema.decodeUnknownEffect(Schema.fromJsonString(DaemonHealth));
const decodeChanged = Schema.decodeUnknownEffect(Schema.fromJsonString(EnvironmentChanged));

const unreachable = (error: unknown) =>
  new DaemonUnreachable({ message: error instanceof Error ? error.message : String(error) });

/** A connection a request: the daemon of a sandbox that ended must never answer for the next one. */
const agent = new Agent({ keepAlive: false });

interface Call {
  readonly path: string;
  readonly timeoutMs: number;
  /** Sent as JSON by POST; without one it is a GET. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

const ask = (
  link: DaemonLink,
  { path, timeoutMs, ...call }: Call,
): Effect.Effect<Answer, DaemonUnreachable> =>
  Effect.callback<Answer, DaemonUnreachable>((resume) => {
    const body = call.body === undefined ? undefined : JSON.stringify(call.body);
    const headers =
      body === undefined
        ? {}
        : { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    const opened = request(
      {
        ...linkTarget(link),
        path,
        agent,
        method: body === undefined ? "GET" : "POST",
        headers: { ...headers, ...call.headers },
      },
      (answer) => {
        const chunks: Buffer[] = [];
        let size = 0;
        answer.on("data", (chunk: Buffer) => {
          size += chunk.length;
          if (size > ANSWER_LIMIT_BYTES) opened.destroy(new Error("the answer is too long"));
          else chunks.push(chunk);
        });
        answer.on("end", () => {
          const text = Buffer.concat(chunks).toString("utf8");
          resume(Effect.succeed({ status: answer.statusCode ?? 0, text }));
        });
        answer.on("error", (error) => resume(Effect.fail(unreachable(error))));
      },
    );
    opened.on("error", (error) => resume(Effect.fail(unreachable(error))));
    opened.end(body);
    return Effect.sync(() => opened.destroy());
  }).pipe(
    Effect.timeoutOrElse({
      duration: timeoutMs,
      orElse: () => Effect.fail(unreachable(new Error(`no answer within ${timeoutMs} ms`))),
    }),
  );

const decodeCode = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ code: Schema.String })));

/** A refusal is told by its code alone: its sentence is the sandbox's. */
const refused = ({ status, text }: Answer): DaemonUnreachable => {
  const code = decodeCode(text);
  const word = code._tag === "Some" && /^[a-z_]{1,40}$/.test(code.value.code) ? ` ${code.value.code}` : "";
  return new DaemonUnreachable({ message: `the daemon answered ${status}${word}` });
};

export const daemonHttp = Layer.succeed(DaemonClient, {
  health: (link) =>
    ask(link, { path: "/platform/health", timeoutMs: HEALTH_TIMEOUT_MS }).pipe(
      Effect.flatMap(({ text }) => Effect.mapError(decodeHealth(text), unreachable)),
    ),
  env: (link, context, change) =>
    ask(link, {
      path: "/platform/env",
      timeoutMs: ENV_TIMEOUT_MS,
      body: change,
      headers: { [USER_CONTEXT_HEADER]: context },
    }).pipe(
      Effect.flatMap((answer) =>
        answer.status === 200
          ? Effect.mapError(decodeChanged(answer.text), unreachable)
          : Effect.fail(refused(answer)),
      ),
    ),
});
