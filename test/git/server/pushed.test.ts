/** The message about an accepted push, in the protocol that its other hooks use before. */
import { PassThrough } from "node:stream";
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as TestClock from "effect/testing/TestClock";
import { expect } from "vitest";
import { pushListener } from "../../../src/git/server/pushed.ts";

const NOBODY_SAID = null;
const said = (channel: PassThrough): string | null =>
  (channel.read() as Buffer | null)?.toString() ?? NOBODY_SAID;

it.effect("writes nothing before the hook asks, however long the push takes", () =>
  Effect.gen(function* () {
    const channel = new PassThrough();
    const written = pushListener(() => Effect.succeed(["Well done."]));
    yield* Effect.forkScoped(written.answer(channel));
    yield* TestClock.adjust("1 hour");
    expect(said(channel)).toBe(NOBODY_SAID);
    written.hear("over");
    yield* TestClock.adjust(0);
    expect(said(channel)).toContain("Well done.");
  }),
);

it.effect("reports the end if there is no message in time", () =>
  Effect.gen(function* () {
    const channel = new PassThrough();
    const written = pushListener(() => Effect.never);
    yield* Effect.forkScoped(written.answer(channel));
    written.hear("over");
    yield* TestClock.adjust("5 seconds");
    expect(said(channel)).toBe("over\n");
  }),
);
