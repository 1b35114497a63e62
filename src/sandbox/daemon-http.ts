/** The daemon's control surface over HTTP, on whatever link its provider gives. */
import { Agent, request, type IncomingMessage } from "node:http";
import * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Schema from "effect/Schema";
import * as Stream from "effect/Stream";
import { readLine } from "../domain/log-line.ts";
import { USER_CONTEXT_HEADER } from "../domain/user-context.ts";
import { DaemonClient, DaemonHealth, DaemonUnreachable } from "./daemon.ts";
import { linkTarget, type DaemonLink } from "./port.ts";

const TIMEOUT_MS = 1000;
/** Health is a page of text; a daemon that sends more is not ours. */
const ANSWER_LIMIT_BYTES = 1024 * 1024;

const decodeHealth = Schema.decodeUnknownEffect(Schema.fromJsonString(DaemonHealth));

const unreachable = (error: unknown) =>
  new DaemonUnreachable({ message: error instanceof Error ? error.message : String(error) });

/** A connection a request: the daemon of a sandbox that ended must never answer for the next one. */
const agent = new Agent({ keepAlive: false });

const get = (link: DaemonLink, path: string): Effect.Effect<string, DaemonUnreachable> =>
  Effect.callback((resume) => {
    const call = request({ ...linkTarget(link), path, agent, timeout: TIMEOUT_MS }, (answer) => {
      const chunks: Buffer[] = [];
      let size = 0;
      answer.on("data", (chunk: Buffer) => {
        size += chunk.length;
        if (size > ANSWER_LIMIT_BYTES) call.destroy(new Error("the answer is too long"));
        else chunks.push(chunk);
      });
      answer.on("end", () => resume(Effect.succeed(Buffer.concat(chunks).toString("utf8"))));
      answer.on("error", (error) => resume(Effect.fail(unreachable(error))));
    });
    call.on("timeout", () => call.destroy(new Error(`no answer within ${TIMEOUT_MS} ms`)));
    call.on("error", (error) => resume(Effect.fail(unreachable(error))));
    call.end();
    return Effect.sync(() => call.destroy());
  });

/** A stream that brings nothing for this long has lost its daemon: that sends a comment every 15 s. */
const SILENCE_MS = 60_000;

/** Opens the log's stream; it is closed with the scope. */
const openLog = (link: DaemonLink, asked: { readonly context: string; readonly after: number }) =>
  Effect.callback<IncomingMessage, DaemonUnreachable>((resume) => {
    const headers = { [USER_CONTEXT_HEADER]: asked.context, "last-event-id": String(asked.after) };
    const call = request({
      ...linkTarget(link),
      path: "/platform/logs",
      headers,
      agent,
      timeout: SILENCE_MS,
    });
    call.on("timeout", () => call.destroy(new Error(`no sign of life within ${SILENCE_MS} ms`)));
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
      else if (answer.destroyed) tell(Effect.fail(unreachable(new Error("the daemon hung up"))));
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

export const daemonHttp = Layer.succeed(DaemonClient, {
  health: (link) =>
    Effect.flatMap(get(link, "/platform/health"), (text) => Effect.mapError(decodeHealth(text), unreachable)),
  logs,
});
