/** The daemon's log as the service reads it, from the daemon's own server. */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Stream from "effect/Stream";
import { afterEach, beforeEach, describe, expect } from "vitest";
import { daemonHttp } from "../../src/sandbox/daemon-http.ts";
import { DaemonClient } from "../../src/sandbox/daemon.ts";
import { contextHeader, Served } from "../daemon/support/served.ts";

let served: Served;
beforeEach(async () => {
  served = await Served.start((_, response) => response.end());
});
afterEach(() => served.stop());

const line = (seq: number): string =>
  JSON.stringify({
    seq,
    at: "2026-11-20T06:52:05.045Z",
    event: "output",
    source: "runtime",
    line: `ünï ${seq}`,
  });
const say = (count: number): void => {
  for (let n = 0; n < count; n += 1) served.ring.add(line);
};
const logs = (after: number, context = contextHeader()) =>
  Stream.unwrap(
    Effect.map(DaemonClient, (daemon) =>
      daemon.logs({ kind: "unix", path: served.socketPath }, { context, after }),
    ),
  ).pipe(Stream.provide(daemonHttp));

describe("a daemon's log", () => {
  it.live("is read from a given line on, and then as it grows", () =>
    Effect.gen(function* () {
      say(3);
      const seen: number[] = [];
      const reading = logs(1).pipe(
        Stream.tap(({ seq }) => Effect.sync(() => seen.push(seq))),
        Stream.take(4),
        Stream.runCollect,
      );
      const fiber = yield* Effect.forkChild(reading, { startImmediately: true });
      yield* Effect.promise(() => expect.poll(() => seen).toEqual([2, 3]));
      say(2);
      expect((yield* Fiber.join(fiber)).map((read) => read.line)).toEqual([
        "ünï 2",
        "ünï 3",
        "ünï 4",
        "ünï 5",
      ]);
    }),
  );

  it.live("is complete at any length", () =>
    Effect.gen(function* () {
      say(5000);
      const read = yield* logs(0).pipe(Stream.take(5000), Stream.runCollect);
      expect(read.map(({ seq }) => seq)).toEqual(Array.from({ length: 5000 }, (_, index) => index + 1));
    }),
  );

  it.live("is refused without a valid context", () =>
    Effect.gen(function* () {
      const failure = yield* Effect.flip(Stream.runDrain(logs(0, contextHeader("another key"))));
      expect(failure.message).toContain("401");
    }),
  );

  it.live("ends with its daemon, and a missing daemon is unreachable", () =>
    Effect.gen(function* () {
      say(1);
      const seen: number[] = [];
      const reading = Stream.runForEach(logs(0), ({ seq }) => Effect.sync(() => seen.push(seq)));
      const fiber = yield* Effect.forkChild(Effect.exit(reading), { startImmediately: true });
      yield* Effect.promise(() => expect.poll(() => seen).toEqual([1]));
      yield* Effect.promise(() => served.stop());
      yield* Fiber.join(fiber);
      const failure = yield* Effect.flip(Stream.runDrain(logs(0)));
      expect(failure._tag).toBe("DaemonUnreachable");
    }),
  );

  it.live("closes the connection when its reader leaves, also while the reader waits", () =>
    Effect.gen(function* () {
      say(1);
      const seen: number[] = [];
      const reading = Stream.runForEach(logs(0), ({ seq }) => Effect.sync(() => seen.push(seq)));
      const fiber = yield* Effect.forkChild(reading, { startImmediately: true });
      yield* Effect.promise(() => expect.poll(() => seen).toEqual([1]));
      expect(served.ring.listeners).toBe(1);
      yield* Fiber.interrupt(fiber);
      yield* Effect.promise(() => expect.poll(() => served.ring.listeners).toBe(0));
    }),
  );
});
