/** The runtime's interpreter over real processes, with the clock in the test's hand. */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Latch from "effect/Latch";
import * as TestClock from "effect/testing/TestClock";
import { describe, expect } from "vitest";
import { plainAdapter } from "../../../daemon/adapters/plain.ts";
import { Allowance } from "../../../daemon/logs/allowance.ts";
import { ConversationFeed } from "../../../daemon/conversation/feed.ts";
import { LogRing } from "../../../daemon/logs/log-ring.ts";
import { makeLog } from "../../../daemon/logs/log.ts";
import type { Launch } from "../../../daemon/agent/process.ts";
import { Redactor } from "../../../src/domain/secret/redactor.ts";
import { Report } from "../../../daemon/report.ts";
import { superviseRuntime } from "../../../daemon/agent/runtime.ts";
import { CRASH_BUDGET } from "../../../src/machines/agent-runtime.ts";
import { freePort } from "../../support/machine/free-port.ts";
import { isThere } from "../support/running.ts";

/** Lets real processes get on, and the clock with them, until something holds; the test's own limit ends a hung one. */
const until = Effect.fnUntraced(function* (holds: () => boolean) {
  while (!holds()) {
    yield* TestClock.adjust("100 millis");
    yield* Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)));
  }
});

/** A supervised runtime that runs a shell script. */
const supervised = Effect.fnUntraced(function* (
  script: () => string,
  lost: Effect.Effect<void> = Effect.never,
  beforeFirst: Effect.Effect<void> = Effect.void,
) {
  const redactor = new Redactor(["canary-secret"]);
  const report = new Report({ version: "0", redactor, repoUrl: "http://r", branch: "b" });
  const allowance = new Allowance();
  const lines: string[] = [];
  const ring = new LogRing((line) => lines.push(line));
  const port = yield* Effect.promise(freePort);
  const launch = (): Launch => ({
    prefix: [],
    command: ["sh", "-c", script()],
    env: { PATH: process.env["PATH"] ?? "", PORT: String(port) },
    cwd: "/",
  });
  const runtime = yield* superviseRuntime({
    launch,
    ahead: null,
    adapter: { ...plainAdapter(port), lost },
    settings: { sessionId: "s" },
    steering: {
      observer: new ConversationFeed({ redactor, now: () => 0, after: () => () => undefined }),
      runtimeEnded: () => undefined,
      newestTurn: null,
      cutEnd: () => ({ state: "interrupted", error: null }),
      onUntold: () => undefined,
      fallsBack: () => false,
      turnEnded: () => undefined,
    },
    report,
    redactor,
    log: makeLog({ redactor, ring, allowance }),
    allowance,
    beforeFirst,
    whenCheckedOut: Effect.void,
    prepare: () => Effect.succeed(true),
    beforeMessages: Effect.void,
  });
  return { report, runtime, lines };
});

describe("the agent runtime", () => {
  it.effect(
    "that crashes ten times in five minutes is failed in health, and starts again on request [R12]",
    () =>
      Effect.gen(function* () {
        let starts = 0;
        let script = "echo out of canary-secret cheese >&2; exit 7";
        const { report, runtime } = yield* supervised(() => {
          starts += 1;
          return script;
        });
        yield* until(() => report.runtime.state === "failed");
        expect(starts).toBe(CRASH_BUDGET);
        const { status, runtime: told, error } = report.health();
        expect([status, told.state, told.pid]).toEqual(["error", "failed", null]);
        expect(told.last_exit).toMatchObject({ code: 7, signal: null, output: ["out of [redacted] cheese"] });
        expect(error).toContain(
          "the agent runtime ended with code 7; its last output: out of [redacted] cheese",
        );
        // It stays so, however long it gets no request.
        yield* TestClock.adjust("1 hour");
        expect([report.runtime.state, starts]).toEqual(["failed", CRASH_BUDGET]);
        script = `exec node -e 'require("node:http").createServer((_, r) => r.end()).listen(process.env.PORT, "127.0.0.1")'`;
        yield* runtime.restart;
        yield* until(() => report.runtime.state === "ready");
        expect([starts, report.health().error]).toEqual([CRASH_BUDGET + 1, null]);
      }).pipe(Effect.scoped),
  );

  it.effect("that is killed takes its whole process group with it, and is restarted", () =>
    Effect.gen(function* () {
      // The child ignores what a terminal or a polite supervisor would send.
      const script = `sh -c 'trap "" TERM HUP INT; echo $$; exec sleep 7004' & exec sleep 7005`;
      const { report, lines } = yield* supervised(() => script);
      const child = (): number => {
        const said = lines.map((line) => JSON.parse(line) as { event: string; line?: string });
        return Number(said.find(({ event }) => event === "output")?.line ?? 0);
      };
      yield* until(() => child() > 0 && report.runtime.pid !== null);
      const [own, left] = [report.runtime.pid ?? 0, child()];
      process.kill(own, "SIGKILL");
      yield* until(() => report.runtime.last_exit !== null);
      expect(report.runtime.last_exit).toMatchObject({ code: null, signal: "SIGKILL" });
      yield* until(() => !isThere(left));
      yield* until(() => report.runtime.pid !== null && report.runtime.pid !== own);
    }).pipe(Effect.scoped),
  );

  it.effect("that can no longer be spoken with is ended, and is restarted", () =>
    Effect.gen(function* () {
      const lost = Latch.makeUnsafe(false);
      const { report } = yield* supervised(() => "exec sleep 7006", lost.await);
      yield* until(() => report.runtime.pid !== null);
      const own = report.runtime.pid ?? 0;
      lost.openUnsafe();
      yield* until(() => report.runtime.last_exit !== null);
      lost.closeUnsafe();
      expect(report.runtime.last_exit).toMatchObject({ code: null, signal: "SIGTERM" });
      expect(isThere(own)).toBe(false);
      yield* until(() => report.runtime.pid !== null && report.runtime.pid !== own);
    }).pipe(Effect.scoped),
  );

  it.effect("starts first once its own files are present, and may end before", () =>
    Effect.gen(function* () {
      const there = Latch.makeUnsafe(false);
      let starts = 0;
      const script = () => {
        starts += 1;
        return "exec sleep 7007";
      };
      const first = yield* supervised(script, Effect.never, there.await);
      const second = yield* supervised(script, Effect.never, Effect.never);
      yield* second.runtime.end;
      expect([second.report.runtime.state, starts]).toEqual(["stopped", 0]);
      there.openUnsafe();
      yield* until(() => first.report.runtime.pid !== null);
      expect(starts).toBe(1);
    }).pipe(Effect.scoped),
  );

  it.effect("is asked again as soon as it prints something", () =>
    Effect.gen(function* () {
      const listen = `createServer((_, r) => r.end()).listen(process.env.PORT, "127.0.0.1", () => console.log("listening"))`;
      const { report, lines } = yield* supervised(() => `exec node -e 'require("node:http").${listen}'`);
      const task = Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)));
      // The clock stands still, so no pause between two checks ends.
      while (!lines.some((line) => line.includes("listening"))) yield* task;
      yield* TestClock.adjust("5 millis");
      while (report.runtime.state !== "ready") yield* task;
    }).pipe(Effect.scoped),
  );

  it.effect("is asked anew when it says that it listens and has not answered", () =>
    Effect.gen(function* () {
      // As opencode does, it never answers a request that comes before it is ready.
      const serve = `let asked = 0;
        require("node:http").createServer((_, r) => {
          asked += 1;
          if (asked === 1) console.log("now it is listening");
          else r.end();
        }).listen(process.env.PORT, "127.0.0.1", () => console.log("bound"));`;
      const { report, lines } = yield* supervised(() => `exec node -e '${serve}'`);
      const task = Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)));
      while (!lines.some((line) => line.includes("bound"))) yield* task;
      // One more check begins. From then on the clock stands still, so no check reaches its time limit.
      yield* TestClock.adjust("5 millis");
      while (report.runtime.state !== "ready") yield* task;
    }).pipe(Effect.scoped),
  );
});
