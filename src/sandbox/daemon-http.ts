/** The daemon's control surface over HTTP, on whatever link its provider gives. */
import { Agent, request, type IncomingMessage } from "node:http";
import * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Schema from "effect/Schema";
import * as Stream from "effect/Stream";
import { NumberedTurn } from "../domain/last-turn.ts";
import { readLine } from "../domain/log-line.ts";
import { Saved } from "../domain/saved.ts";
import { storableText } from "../domain/text.ts";
import { USER_CONTEXT_HEADER } from "../domain/user-context.ts";
import { DaemonClient, DaemonHealth, DaemonUnreachable, EnvironmentChanged } from "./daemon.ts";
import { linkRequest, linkTarget, type DaemonLink } from "./port.ts";

const HEALTH_TIMEOUT_MS = 1000;
const ENV_TIMEOUT_MS = 180_000;
/** Longer than the daemon keeps the question open. */
const TURN_TIMEOUT_MS = 40_000;
/** Answers are a page of text; a daemon that sends more is not ours. */
const ANSWER_LIMIT_BYTES = 1024 * 1024;

const decodeHealth = Schema.decodeUnknownEffect(Schema.fromJsonString(DaemonHealth));

const unreachable = (error: unknown) =>
  new DaemonUnreachable({ message: error instanceof Error ? error.message : String(error) });

/** A connection a request: the daemon of a sandbox that ended must never answer for the next one. */
const agent = new Agent({ keepAlive: false });

/** Raw headers by name. */
const named = (raw: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(raw.flatMap((name, at) => (at % 2 === 0 ? [[name, raw[at + 1] ?? ""]] : [])));

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
    const method = body === undefined ? "GET" : "POST";
    const asked = linkRequest(link, { method, path, by: "service" });
    const opened = request(
      {
        ...linkTarget(link),
        path: asked.path,
        agent,
        method,
        headers: { ...headers, ...call.headers, ...named(asked.headers) },
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

/** A stream that brings nothing for this long has lost its daemon: that sends a comment every 15 s. */
const SILENCE_MS = 60_000;

/** Opens the log's stream; it is closed with the scope. */
const openLog = (link: DaemonLink, asked: { readonly context: string; readonly after: number }) =>
  Effect.callback<IncomingMessage, DaemonUnreachable>((resume) => {
    const over = linkRequest(link, { method: "GET", path: "/platform/logs", by: "service" });
    const headers = { [USER_CONTEXT_HEADER]: asked.context, "last-event-id": String(asked.after) };
    const call = request({
      ...linkTarget(link),
      path: over.path,
      headers: { ...headers, ...named(over.headers) },
      agent,
      timeout: SILENCE_MS,
    });
    call.on("timeout", () => call.destroy(new Error(`no data within ${SILENCE_MS} ms`)));
    call.on("error", (error) => resume(Effect.fail(unreachable(error))));
    call.on("response", (answer) => {
      // An error after the answer began is told by whoever reads it.
      answer.on("error", () => undefined);
      if (answer.statusCode === 200) return resume(Effect.succeed(answer));
      call.destroy();
      resume(
        Effect.fail(unreachable(new Error(`the log was refused with ${answer.statusCode ?? "nothing"}`))),
      );
    });
    call.end();
    return Effect.sync(() => call.destroy());
  });

const nobody = (): void => undefined;

/**
 * Takes an answer's bytes as they are asked for.
 *
 * @returns the next bytes, when they are there; done at the answer's end. Interrupting it takes nothing from the answer.
 */
const taker = (answer: IncomingMessage): Effect.Effect<Buffer, DaemonUnreachable | Cause.Done> => {
  let look = nobody;
  for (const sign of ["readable", "end", "close"]) answer.on(sign, () => look());
  return Effect.callback((resume) => {
    const tell = (outcome: Effect.Effect<Buffer, DaemonUnreachable | Cause.Done>): void => {
      // Before the asker hears of it, who may ask again at once.
      look = nobody;
      resume(outcome);
    };
    look = () => {
      const chunk = answer.read() as Buffer | null;
      if (chunk !== null) tell(Effect.succeed(chunk));
      else if (answer.readableEnded) tell(Cause.done());
      else if (answer.destroyed)
        tell(Effect.fail(unreachable(new Error("the daemon closed the connection"))));
    };
    look();
    return Effect.sync(() => {
      look = nobody;
    });
  });
};

const DATA = "data: ";

const logs = (link: DaemonLink, asked: { readonly context: string; readonly after: number }) =>
  Stream.unwrap(
    Effect.map(
      Effect.acquireRelease(openLog(link, asked), (answer) => Effect.sync(() => answer.destroy()), {
        interruptible: true,
      }),
      (answer) => Stream.fromEffectRepeat(taker(answer)),
    ),
  ).pipe(
    Stream.decodeText,
    Stream.splitLines,
    Stream.filter((line) => line.startsWith(DATA)),
    Stream.map((line) => readLine(line.slice(DATA.length))),
    Stream.filter((line) => line !== null),
  );

const Aborted = Schema.Struct({ aborted: Schema.Boolean });

/** Asks the control surface for something and decodes what it says of it. */
const post = <A>(
  link: DaemonLink,
  { context, ...call }: Required<Omit<Call, "headers">> & { readonly context: string },
  said: Schema.Decoder<A>,
): Effect.Effect<A, DaemonUnreachable> =>
  ask(link, { ...call, headers: { [USER_CONTEXT_HEADER]: context } }).pipe(
    Effect.flatMap((answer) =>
      answer.status === 200
        ? Effect.mapError(Schema.decodeUnknownEffect(Schema.fromJsonString(said))(answer.text), unreachable)
        : Effect.fail(refused(answer)),
    ),
  );

/** As a row can hold it: its words are the sandbox's. */
const storable = ({ wip, skipped, error }: Saved): Saved => ({
  wip: wip === null ? null : storableText(wip),
  skipped: skipped.map(({ path, reason }) => ({ path: storableText(path), reason: storableText(reason) })),
  error: error === null ? null : storableText(error),
});

const TurnTold = Schema.Struct({ last: Schema.NullOr(NumberedTurn) });
const decodeTurn = Schema.decodeUnknownEffect(Schema.fromJsonString(TurnTold));

const turn = (link: DaemonLink, context: string, after: number) =>
  ask(link, {
    path: `/platform/turn?after=${after}`,
    timeoutMs: TURN_TIMEOUT_MS,
    headers: { [USER_CONTEXT_HEADER]: context },
  }).pipe(
    Effect.flatMap((answer) =>
      answer.status === 200
        ? Effect.mapError(decodeTurn(answer.text), unreachable)
        : Effect.fail(refused(answer)),
    ),
    Effect.map(({ last }) => last),
  );

export const daemonHttp = Layer.succeed(DaemonClient, {
  health: (link) =>
    ask(link, { path: "/platform/health", timeoutMs: HEALTH_TIMEOUT_MS }).pipe(
      Effect.flatMap(({ text }) => Effect.mapError(decodeHealth(text), unreachable)),
    ),
  abort: (link, context, timeoutMs) =>
    Effect.map(
      post(link, { path: "/platform/abort", context, timeoutMs, body: {} }, Aborted),
      ({ aborted }) => aborted,
    ),
  save: (link, context, timeoutMs) =>
    Effect.map(post(link, { path: "/platform/save", context, timeoutMs, body: {} }, Saved), storable),
  env: (link, context, change) =>
    post(
      link,
      { path: "/platform/env", context, timeoutMs: ENV_TIMEOUT_MS, body: { ...change, after_turn: true } },
      EnvironmentChanged,
    ),
  turn,
  logs,
});
