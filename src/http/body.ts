/**
 * Reading a request's body: at most so many bytes, and all of them within 30 s (api.md 1 "Bodies", threats.md W17, W18).
 * What is refused is refused while it is on its way; the server ends the connection behind such an answer.
 */
import * as ByteSize from "effect/ByteSize";
import * as Context from "effect/Context";
import type * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import { HttpIncomingMessage, HttpServerError, type HttpServerRequest } from "effect/http";
import { BadRequest, RequestTimeout, TooLarge } from "./api/errors.ts";

/** A JSON body's. */
export const JSON_LIMIT_BYTES = 1024 * 1024;

/** How long a body may take to arrive. */
export const BodyTime = Context.Reference<Duration.Input>("platform/http/BodyTime", {
  defaultValue: () => "30 seconds",
});

const tooLarge = (limitBytes: number) =>
  new TooLarge({ error: `The body has more than ${limitBytes} bytes.`, code: "body_too_large" });

const isOverflow = (error: HttpServerError.HttpServerError): boolean =>
  error.reason._tag === "RequestParseError" &&
  error.reason.cause instanceof Error &&
  error.reason.cause.message === "maxBytes exceeded";

/** The body's bytes. They are kept by the request: a second reading gives them again. */
export const readBody = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  limitBytes: number,
) {
  if (Number(request.headers["content-length"] ?? 0) > limitBytes) return yield* tooLarge(limitBytes);
  // A fiber of its own: interrupting the reader would cut the connection before its refusal is written.
  const reading = yield* Effect.forkDetach(
    Effect.provideService(request.arrayBuffer, HttpIncomingMessage.MaxBodySize, ByteSize.bytes(limitBytes)),
  );
  const buffer = yield* Fiber.join(reading).pipe(
    Effect.mapError((error) =>
      isOverflow(error)
        ? tooLarge(limitBytes)
        : new BadRequest({ error: "The body ended before it was complete.", code: "malformed_request" }),
    ),
    Effect.timeoutOrElse({
      duration: yield* BodyTime,
      orElse: () =>
        Effect.fail(new RequestTimeout({ error: "The body did not arrive in time.", code: "body_timeout" })),
    }),
  );
  return new Uint8Array(buffer);
});
