/**
 * Receives the bodies of webhooks: as raw bytes, with a size limit, within the budget of all bodies, and within a time
 * limit (api.md 1 "Bodies", threats.md W17, W18, W40). Below Effect: a fiber for each request would double a webhook's
 * cost.
 */
import type { IncomingMessage } from "node:http";
import * as Clock from "effect/Clock";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import { Unavailable, type ApiError } from "../api/errors.ts";
import { DUTIES } from "../../services/duties.ts";
import { runDuty } from "../../services/duty.ts";
import { Measures } from "../../telemetry/port.ts";
import { BodyBudget, type Hold, type Sender } from "./body-budget.ts";
import { BodyTime, incomplete, late, tooLarge } from "./body.ts";

export interface Arriving {
  /**
   * Reads a body and passes it on, or reports why it was refused. Calls neither if the sender leaves before the body is
   * complete. A refusal comes while the body still arrives, and the rest of the body is not read.
   */
  readonly read: (
    request: IncomingMessage,
    options: { readonly limitBytes: number; readonly sender: Sender },
    then: {
      /** `done` returns the bytes to the budget. */
      readonly body: (bytes: Buffer, done: () => void) => void;
      readonly refused: (error: ApiError) => void;
    },
  ) => void;
}

const busy = () =>
  new Unavailable({
    error: "The service is receiving too many webhook bodies. Send the delivery again later.",
    code: "busy",
  });

interface Reading {
  readonly deadline: number;
  readonly end: (error: ApiError) => void;
}

/** Lives as long as the scope. */
export const makeArriving = Effect.gen(function* () {
  const clock = yield* Clock.Clock;
  const timeMs = Duration.toMillis(Duration.fromInputUnsafe(yield* BodyTime));
  const measures = yield* Measures;
  const full = (): ApiError => {
    measures.count("limits_hit_total", { limit: "webhook_bodies" });
    return busy();
  };
  const budget = new BodyBudget();
  const underWay = new Set<Reading>();
  const look = Effect.sync(() => {
    const now = clock.currentTimeMillisUnsafe();
    for (const reading of underWay) if (reading.deadline <= now) reading.end(late());
  });
  const periodMs = Math.min(DUTIES.webhook_bodies.periodMs, timeMs / 4);
  yield* runDuty("webhook_bodies", { round: look, first: "a period", periodMs });

  const read: Arriving["read"] = (request, { limitBytes, sender }, then) => {
    const hold: Hold = budget.open(sender);
    if (Number(request.headers["content-length"] ?? 0) > limitBytes)
      return then.refused(tooLarge(limitBytes));
    if (hold.isFull()) return then.refused(full());
    const chunks: Buffer[] = [];
    let length = 0;
    const stop = (): void => {
      underWay.delete(reading);
      request.off("data", onData).off("end", onEnd).off("close", onClose);
      // Any further bytes are discarded.
      request.resume();
    };
    const reading: Reading = {
      deadline: clock.currentTimeMillisUnsafe() + timeMs,
      end: (error) => {
        stop();
        hold.release();
        then.refused(error);
      },
    };
    const onData = (chunk: Buffer): void => {
      length += chunk.length;
      if (length > limitBytes) return reading.end(tooLarge(limitBytes));
      if (!hold.take(chunk.length)) return reading.end(full());
      chunks.push(chunk);
    };
    const onEnd = (): void => {
      if (!request.complete) return reading.end(incomplete());
      stop();
      then.body(chunks.length === 1 ? (chunks[0] ?? Buffer.alloc(0)) : Buffer.concat(chunks), hold.release);
    };
    /** The connection is gone, so there is no answer (W40: nothing was decided yet). */
    const onClose = (): void => {
      stop();
      hold.release();
    };
    underWay.add(reading);
    request.on("data", onData).on("end", onEnd).on("close", onClose);
    // The `close` event reports it too.
    request.on("error", () => undefined);
  };
  return { read } satisfies Arriving;
});
