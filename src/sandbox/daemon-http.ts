/** The daemon's control surface over HTTP, on whatever link its provider gives. */
import { Agent, request } from "node:http";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Schema from "effect/Schema";
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

export const daemonHttp = Layer.succeed(DaemonClient, {
  health: (link) =>
    Effect.flatMap(get(link, "/platform/health"), (text) => Effect.mapError(decodeHealth(text), unreachable)),
});
