/** Saved work over HTTP: a daemon's listing, contents of its workspace, and what a booting one gets back (saves.md). */
import { request, type IncomingMessage } from "node:http";
import { pipeline, type Readable } from "node:stream";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import type * as Scope from "effect/Scope";
import { Listing, RESTORE_PART_HEADER, restorePartText } from "../domain/save/listing.ts";
import { Restored } from "../domain/save/saved.ts";
import { storableText } from "../domain/text.ts";
import { USER_CONTEXT_HEADER } from "../domain/sandbox/user-context.ts";
import type { DaemonUnreachable, SavingClient } from "./daemon.ts";
import { askFor, decodeAs, dialOptions, nameHeaders, toUnreachable, unreachable } from "./daemon-ask.ts";
import { linkRequest, type DaemonLink } from "./port.ts";

/** The longest listing, bytes. */
const LISTING_BYTES = 64 * 1024 * 1024;
/** The longest answer to a restoration, and the longest refusal. */
const ANSWER_BYTES = 16 * 1024 * 1024;
/** The daemon gives the runtime and the terminals some seconds to end. */
const RETIRE_TIMEOUT_MS = 60_000;

interface Streamed {
  readonly path: string;
  readonly context: string;
  readonly body: Readable | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a call whose body or answer is a stream. @returns the answer as it begins. The connection ends with the scope */
const open = (
  link: DaemonLink,
  { path, context, body, headers }: Streamed,
): Effect.Effect<IncomingMessage, DaemonUnreachable, Scope.Scope> => {
  const over = linkRequest(link, { method: "POST", path, by: "service" });
  const isWhole = Buffer.isBuffer(body);
  const call = Effect.sync(() =>
    request({
      ...dialOptions(link),
      method: "POST",
      path: over.path,
      headers: {
        [USER_CONTEXT_HEADER]: context,
        "content-type": isWhole ? "application/json" : "application/octet-stream",
        ...(isWhole && { "content-length": body.length }),
        ...headers,
        ...nameHeaders(over.headers),
      },
    }),
  );
  return Effect.flatMap(
    Effect.acquireRelease(call, (outgoing) => Effect.sync(() => outgoing.destroy())),
    (outgoing) =>
      Effect.callback<IncomingMessage, DaemonUnreachable>((resume) => {
        outgoing.on("error", (error) => resume(Effect.fail(unreachable(error))));
        outgoing.on("response", (answer) => {
          // The reader of the answer sees an error of its own.
          answer.on("error", () => undefined);
          resume(Effect.succeed(answer));
        });
        if (isWhole) outgoing.end(body);
        else
          pipeline(body, outgoing, (error) => {
            if (error != null) resume(Effect.fail(unreachable(error)));
          });
      }),
  );
};

/** The whole text of an answer. */
const readText = (answer: IncomingMessage): Effect.Effect<string, DaemonUnreachable> =>
  Effect.callback((resume) => {
    const chunks: Buffer[] = [];
    let size = 0;
    answer.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= ANSWER_BYTES) chunks.push(chunk);
      else answer.destroy(new Error("the answer is too long"));
    });
    answer.on("error", (error) => resume(Effect.fail(unreachable(error))));
    answer.on("end", () => resume(Effect.succeed(Buffer.concat(chunks).toString("utf8"))));
  });

/** Fails unless the answer is the wanted one. */
const requireAccepted = (answer: IncomingMessage): Effect.Effect<IncomingMessage, DaemonUnreachable> => {
  const { statusCode: status = 0 } = answer;
  if (status === 200) return Effect.succeed(answer);
  return Effect.flatMap(readText(answer), (text) => Effect.fail(toUnreachable({ status, text })));
};

/** Results of a daemon in a form that a row can store. */
export const storableRestored = (restored: Restored): Restored => ({
  ...restored,
  wip: restored.wip === null ? null : storableText(restored.wip),
  refs: restored.refs.map((ref) => storableText(ref)),
  renamed: restored.renamed.map(({ path, as }) => ({ path: storableText(path), as: storableText(as) })),
  skipped: restored.skipped.map((one) => ({
    ...one,
    path: storableText(one.path),
    reason: storableText(one.reason),
  })),
  error: restored.error === null ? null : storableText(restored.error),
});

export const savingHttp: SavingClient = {
  listing: (link, context, { request: body, timeoutMs }) =>
    askFor(
      link,
      { path: "/platform/save/list", timeoutMs, body, limitBytes: LISTING_BYTES, context },
      Listing,
    ),
  read: (link, context, part) =>
    Effect.flatMap(
      open(link, { path: "/platform/save/read", context, body: Buffer.from(JSON.stringify(part)) }),
      requireAccepted,
    ),
  restore: (link, context, { body, timeoutMs, part }) =>
    Effect.scoped(
      open(link, {
        path: "/platform/restore",
        context,
        body,
        ...(part !== undefined && { headers: { [RESTORE_PART_HEADER]: restorePartText(part) } }),
      }).pipe(
        Effect.flatMap(requireAccepted),
        Effect.flatMap(readText),
        Effect.flatMap(decodeAs(Restored)),
        Effect.map(storableRestored),
      ),
    ).pipe(
      Effect.timeoutOrElse({
        duration: timeoutMs,
        orElse: () => Effect.fail(unreachable(new Error(`no answer within ${timeoutMs} ms`))),
      }),
    ),
  retire: (link, context) =>
    Effect.asVoid(
      askFor(
        link,
        { path: "/platform/retire", timeoutMs: RETIRE_TIMEOUT_MS, body: {}, context },
        Schema.Unknown,
      ),
    ),
};
