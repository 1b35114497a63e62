/**
 * Reads a request's body within a size limit and within 30 s (api.md 1 "Bodies", threats.md W17, W18). A body is
 * refused while it still arrives, and the server then closes the connection.
 */
import * as ByteSize from "effect/ByteSize";
import * as Context from "effect/Context";
import type * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import { HttpIncomingMessage, HttpServerError, type HttpServerRequest } from "effect/http";
import { BadRequest, RequestTimeout, TooLarge } from "../api/errors.ts";

/** The limit of a JSON body. */
export const JSON_LIMIT_BYTES = 1024 * 1024;

/** How long a body may take to arrive. */
export const BodyTime = Context.Reference<Duration.Input>("platform/http/BodyTime", {
  defaultValue: () => "30 seconds",
});

export const tooLarge = (limitBytes: number) =>
  new TooLarge({ error: `The body is larger than ${limitBytes} bytes.`, code: "body_too_large" });

const isOverflow = (error: HttpServerError.HttpServerError): boolean =>
  error.reason._tag === "RequestParseError" &&
  error.reason.cause instanceof Error &&
  error.reason.cause.message === "maxBytes exceeded";

export const incomplete = () =>
  new BadRequest({ error: "The request ended before its body was complete.", code: "malformed_request" });

export const late = () =>
  new RequestTimeout({ error: "The body did not arrive in time.", code: "body_timeout" });

const inTime = <A, E, R>(reading: Effect.Effect<A, E, R>) =>
  Effect.flatMap(BodyTime, (duration) =>
    Effect.timeoutOrElse(reading, {
      duration,
      orElse: () => Effect.fail(late()),
    }),
  );

type Request = HttpServerRequest.HttpServerRequest;

const declaredLength = ({ headers }: Request): number | null =>
  headers["content-length"] === undefined ? null : Number(headers["content-length"]);

/** Reads a body that is decoded later. The request keeps it for every later reader. */
export const awaitBody = Effect.fnUntraced(function* (request: Request, limitBytes: number) {
  if ((declaredLength(request) ?? 0) > limitBytes) return yield* tooLarge(limitBytes);
  // In a fiber of its own: interrupting the reader would close the connection before the refusal is written.
  const reading = yield* Effect.forkDetach(
    Effect.provideService(request.arrayBuffer, HttpIncomingMessage.MaxBodySize, ByteSize.bytes(limitBytes)),
  );
  yield* Fiber.join(reading).pipe(
    Effect.mapError((error) => (isOverflow(error) ? tooLarge(limitBytes) : incomplete())),
    inTime,
  );
});
