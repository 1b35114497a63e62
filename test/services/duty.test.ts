import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { it } from "@effect/vitest";
import * as Clock from "effect/Clock";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as PubSub from "effect/PubSub";
import * as Queue from "effect/Queue";
import * as TestClock from "effect/testing/TestClock";
import { describe, expect } from "vitest";
import { DUTIES, DUTY_NAMES, type DutyName } from "../../src/services/duties.ts";
import { DutyRuns, dutyPart, runDuty, RunRecord } from "../../src/services/duty.ts";
import { Pause, PauseSwitch } from "../../src/ground/pause.ts";
import { StoreError } from "../../src/store/ports/journal.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** The duties that a restored copy would do a second time, beside its original. */
const OUTSIDE: ReadonlySet<DutyName> = new Set<DutyName>([
  "pull_requests",
  "outbound_webhooks",
  "connectors",
  "approvals",
]);

describe("a background duty", () => {
  it.effect("runs again after a round that crashed, and the record says so", () =>
    Effect.gen(function* () {
      const runs = new RunRecord();
      let rounds = 0;
      const round = Effect.suspend(() => {
        rounds += 1;
        return rounds === 1 ? Effect.die(new Error("refused for good")) : Effect.sleep("2 seconds");
      });
      const duty = runDuty("sweeper", { round, periodMs: HOUR_MS });
      yield* Effect.provideService(duty, DutyRuns, runs);
      yield* TestClock.adjust(0);
      expect(runs.lastRun("sweeper")).toEqual({ endedAt: 0, tookMs: 0, failed: true });
      yield* TestClock.adjust(HOUR_MS + 2_000);
      expect(rounds).toBe(2);
      expect(runs.lastRun("sweeper")).toEqual({ endedAt: HOUR_MS + 2_000, tookMs: 2_000, failed: false });
      expect(runs.failures("sweeper")).toBe(1);
      expect(runs.failed()).toEqual([]);
      expect(runs.lastRun("orphans")).toBeNull();
    }),
  );

  it.effect("ends its round if only a part of it crashed, and the record says so", () =>
    Effect.gen(function* () {
      const runs = new RunRecord();
      const done: string[] = [];
      const round = Effect.gen(function* () {
        yield* dutyPart("orphans", Effect.die(new Error("one of them")));
        yield* dutyPart(
          "orphans",
          Effect.sync(() => void done.push("another")),
        );
      });
      yield* Effect.provideService(runDuty("orphans", { round, periodMs: HOUR_MS }), DutyRuns, runs);
      yield* TestClock.adjust(0);
      expect(done).toEqual(["another"]);
      expect(runs.lastRun("orphans")).toMatchObject({ failed: true });
    }),
  );

  it.effect(
    "waits for the database to return within its round, and does not count the outage as a failure",
    () =>
      Effect.gen(function* () {
        const runs = new RunRecord();
        let tries = 0;
        const round = Effect.suspend(() => {
          tries += 1;
          return tries < 5
            ? Effect.fail(new StoreError({ operation: "load", cause: new Error("connection refused") }))
            : Effect.void;
        });
        yield* Effect.provideService(runDuty("nodes", { round, periodMs: HOUR_MS }), DutyRuns, runs);
        yield* TestClock.adjust("1 minute");
        expect(tries).toBe(5);
        expect(runs.lastRun("nodes")).toMatchObject({ failed: false });
        expect(runs.failures("nodes")).toBe(0);
      }),
  );

  it.effect("is late while its round takes too long, or after one that crashed as a whole", () =>
    Effect.gen(function* () {
      const runs = new RunRecord();
      const rounds = [Effect.sleep("50 minutes"), Effect.die(new Error("refused for good")), Effect.void];
      const round = Effect.suspend(() => rounds.shift() ?? Effect.void);
      const periods = new Map([["orphans", MINUTE_MS]] as const);
      yield* Effect.provideService(runDuty("orphans", { round, periodMs: MINUTE_MS }), DutyRuns, runs);
      const late = Effect.map(Clock.currentTimeMillis, (now) => runs.late(now, periods));
      yield* TestClock.adjust(10 * MINUTE_MS);
      expect(yield* late).toEqual([]);
      yield* TestClock.adjust(1);
      expect(yield* late).toEqual(["orphans"]);
      yield* TestClock.adjust(40 * MINUTE_MS);
      expect(yield* late).toEqual([]);
      yield* TestClock.adjust(MINUTE_MS);
      expect(yield* late).toEqual(["orphans"]);
      yield* TestClock.adjust(MINUTE_MS);
      expect(yield* late).toEqual([]);
    }),
  );

  it.effect.each(DUTY_NAMES)(
    "does rounds of %s during a restored copy's pause if it acts inside only",
    (name) =>
      Effect.gen(function* () {
        const pause = new PauseSwitch();
        pause.since = 0;
        let rounds = 0;
        const round = Effect.sync(() => void (rounds += 1));
        yield* Effect.provideService(runDuty(name, { round, periodMs: HOUR_MS }), Pause, pause);
        yield* TestClock.adjust(0);
        const during = rounds;
        pause.since = null;
        yield* TestClock.adjust(HOUR_MS);
        expect([during, rounds]).toEqual(OUTSIDE.has(name) ? [0, 1] : [1, 2]);
      }),
  );

  it.effect("is not late because a part of its round crashed", () =>
    Effect.gen(function* () {
      const runs = new RunRecord();
      const round = dutyPart("orphans", Effect.die(new Error("one of them")));
      yield* Effect.provideService(runDuty("orphans", { round, periodMs: HOUR_MS }), DutyRuns, runs);
      yield* TestClock.adjust(0);
      expect(runs.late(0, new Map())).toEqual([]);
      expect(runs.failed()).toEqual(["orphans"]);
    }),
  );

  it.effect("is followed at once by another round if a signal came during the round", () =>
    Effect.gen(function* () {
      const signals = yield* PubSub.unbounded<void>();
      const [begun, mayEnd] = [yield* Queue.unbounded<void>(), yield* Queue.unbounded<void>()];
      const round = Effect.andThen(Queue.offer(begun, undefined), Queue.take(mayEnd));
      // Like a commit's signal: only a subscriber of that moment hears it.
      const signal = Effect.scoped(Effect.flatMap(PubSub.subscribe(signals), PubSub.take));
      yield* runDuty("secrets", { round, periodMs: HOUR_MS, signal });

      yield* Queue.take(begun);
      yield* PubSub.publish(signals, undefined);
      yield* Queue.offer(mayEnd, undefined);
      yield* Queue.take(begun);
      yield* Queue.offer(mayEnd, undefined);
      yield* TestClock.adjust("59 minutes");
      expect(yield* Queue.size(begun)).toBe(0);
      yield* TestClock.adjust("1 minute");
      expect(yield* Queue.size(begun)).toBe(1);
    }),
  );

  it.effect("begins after a period, or when its first round is no longer awaited", () =>
    Effect.gen(function* () {
      const begun: string[] = [];
      const round = (name: string) => Effect.sync(() => void begun.push(name));
      const ready = yield* Deferred.make<void>();
      yield* runDuty("retention", { round: round("late"), first: "a period", periodMs: HOUR_MS });
      yield* runDuty("recovery", { round: round("ready"), first: Deferred.await(ready), periodMs: HOUR_MS });
      yield* TestClock.adjust("59 minutes");
      expect(begun).toEqual([]);
      yield* Deferred.succeed(ready, undefined);
      yield* TestClock.adjust("1 minute");
      expect(begun).toEqual(["ready", "late"]);
    }),
  );
});

describe("the table of duties", () => {
  const sources = readdirSync("src", { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => ({ file, text: readFileSync(path.join("src", file), "utf8") }));

  it("has a row for each running duty, and each row runs in one place", () => {
    const run = sources.flatMap(({ text }) =>
      [...text.matchAll(/\brunDuty\(\s*"([a-z_]+)"/g)].map(([, name]) => name ?? ""),
    );
    expect(run.toSorted()).toEqual(Object.keys(DUTIES).toSorted());
  });

  it("leaves no other fiber with the service's lifetime except those that are named here", () => {
    const forking = sources.filter(({ text }) => /forkScoped[(,]/.test(text)).map(({ file }) => file);
    expect(forking.toSorted()).toEqual(Object.keys(FIBERS).toSorted());
  });
});

const FIBERS: Readonly<Record<string, string>> = {
  "services/duty.ts": "the runner itself",
  "actors/conversations/long-outputs.ts":
    "the outputs that a watched sandbox still has to give; ends with the watch",
  "actors/timers.ts": "the timers of cron triggers; in the supervision tree",
  "sandbox/machine/provider.ts": "the watch of sandboxes; in the supervision tree",
  "sandbox/packages/cache.ts": "the size of the package cache, for /metrics",
  "store/postgres/connection/signals.ts": "the database listener; in the supervision tree",
  "store/postgres/embedded/embedded.ts": "the embedded database; in the supervision tree",
  "telemetry/otlp.ts": "the sender of spans, if a collector is set",
  "features/change-requests/duty.ts": "the duty's signal, by project",
  "features/notifications/duty.ts": "the writer of deliveries' results; as long as the duty",
  "duties/scheduler.ts": "the duty's signals, by project",
  "services/directory.ts": "looks that callers ask for and share",
  "git/repository/sweep.ts": "leftovers that are too young at the start; it ends",
  "git/server/receive.ts": "one push; it ends",
  "http/live/tail.ts": "looks for the readers of one project or conversation; it ends with the last of them",
  "git/server/smart-http.ts": "one request; it ends",
  "http/raw/executor.ts": "one answer; it ends with its request",
  "features/change-requests/merging.ts": "one call; it ends",
  "features/model-providers/calls.ts":
    "renews the reservations of calls under way, and ends some that were refused",
  "store/postgres/conversations/conversations.ts":
    "adds the words of earlier messages after the start; it ends",
  "services/pausing.ts": "waits for the end of a restored copy's pause",
  "services/environments/building.ts": "one build and the writer of its log; they end",
  "services/environments/environments.ts": "one look for all who wait for a build; it ends",
};
