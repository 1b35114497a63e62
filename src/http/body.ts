/**
 * Reading a request's body: at most so many bytes, and all of them within 30 s (api.md 1 "Bodies", threats.md W17, W18).
 * What is refused is refused while it is on its way; the server ends the connection behind such an answer.
 */
import * as ByteSize from "effect/ByteSize";
import * as Context from "effect/Context";
import type * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Stream from "effect/Stream";
import { HttpIncomingMessage, HttpServerError, type HttpServerRequest } from "effect/http";
import { BadRequest, RequestTimeout, TooLarge } from "./api/errors.ts";
import { BodyBudget, type Sender } from "./body-budget.ts";

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

const incomplete = () =>
  new BadRequest({ error: "The body ended before it was complete.", code: "malformed_request" });

const inTime = <A, E, R>(reading: Effect.Effect<A, E, R>) =>
  Effect.flatMap(BodyTime, (duration) =>
    Effect.timeoutOrElse(reading, {
      duration,
      orElse: () =>
        Effect.fail(new RequestTimeout({ error: "The body did not arrive in time.", code: "body_timeout" })),
    }),
  );

type Request = HttpServerRequest.HttpServerRequest;

const declaredLength = ({ headers }: Request): number | null =>
  headers["content-length"] === undefined ? null : Number(headers["content-length"]);

/** Reads a body that is decoded later: the request keeps it, and gives it again to whoever asks. */
export const awaitBody = Effect.fnUntraced(function* (request: Request, limitBytes: number) {
  if ((declaredLength(request) ?? 0) > limitBytes) return yield* tooLarge(limitBytes);
  // A fiber of its own: interrupting the reader would cut the connection before its refusal is written.
  const reading = yield* Effect.forkDetach(
    Effect.provideService(request.arrayBuffer, HttpIncomingMessage.MaxBodySize, ByteSize.bytes(limitBytes)),
  );
  yield* Fiber.join(reading).pipe(
    Effect.mapError((error) => (isOverflow(error) ? tooLarge(limitBytes) : incomplete())),
    inTime,
  );
});

/** Where the bytes of a large body are accounted for while it arrives. */
export interface Ledger {
  readonly limitBytes: number;
  readonly sender: Sender;
}

/** A body's bytes as they came, held within the budget of all bodies: a declared length before a byte is read. */
export const readAccounted = Effect.fnUntraced(function* (request: Request, { limitBytes, sender }: Ledger) {
  const declared = declaredLength(request);
  if ((declared ?? 0) > limitBytes) return yield* tooLarge(limitBytes);
  const budget = yield* BodyBudget;
  return yield* budget.within(sender, declared ?? 0, (take) =>
    Effect.gen(function* () {
      const chunks: Uint8Array[] = [];
      let length = 0;
      yield* request.stream.pipe(
        Stream.mapError(incomplete),
        Stream.runForEach((chunk) => {
          length += chunk.length;
          chunks.push(chunk);
          if (length > limitBytes) return Effect.fail(tooLarge(limitBytes));
          return declared === null ? take(chunk.length) : Effect.void;
        }),
        inTime,
      );
      return new Uint8Array(Buffer.concat(chunks));
    }),
  );
});
