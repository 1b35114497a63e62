import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as TestClock from "effect/testing/TestClock";
import { expect } from "vitest";
import { ActorUnavailable, type TellError } from "../../../src/services/actors.ts";
import { deliver } from "../../../src/actors/delivery.ts";
import { ActorNotFound, MailboxFull, type EventResult } from "../../../src/ground/mailbox.ts";
import { StoreError } from "../../../src/store/ports/journal.ts";

const answer: EventResult<string> = { accepted: true, snapshot: "here" };

it.effect("repeats a message until the receiver answers", () =>
  Effect.gen(function* () {
    const refusals: TellError[] = [
      new StoreError({ operation: "load", cause: new Error("connection refused") }),
      new MailboxFull({ actorId: "a", capacity: 1 }),
      ...Array.from({ length: 50 }, () => new ActorUnavailable({ actorId: "a", reason: "elsewhere" })),
    ];
    let tries = 0;
    const delivery = Effect.suspend((): Effect.Effect<EventResult<string>, TellError> => {
      tries += 1;
      const refusal = refusals.shift();
      return refusal === undefined ? Effect.succeed(answer) : Effect.fail(refusal);
    });
    const fiber = yield* Effect.forkChild(deliver(delivery));
    yield* TestClock.adjust("10 minutes");
    yield* Fiber.join(fiber);
    expect(tries).toBe(53);
  }),
);

it.effect("counts a message as delivered if the receiver does not exist or does not accept the event", () =>
  Effect.gen(function* () {
    yield* deliver(Effect.fail(new ActorNotFound({ actorId: "a" })));
    yield* deliver(Effect.succeed({ ...answer, accepted: false }));
  }),
);
