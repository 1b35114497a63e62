/** Builds in their turn, with their progress and log in the ledger (services/environments/building.ts U1 to U3). */
import { randomUUID } from "node:crypto";
import { describe, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as TestClock from "effect/testing/TestClock";
import { expect } from "vitest";
import { type BuildFailure } from "../../../src/domain/environment/build-failure.ts";
import { GitBackend } from "../../../src/git/port.ts";
import { SimulatedRepositories } from "../../twins/git/repositories.ts";
import { UNWATCHED_MS } from "../../../src/services/environments/building.ts";
import { StoreError } from "../../../src/store/ports/journal.ts";
import { answered, until } from "../../support/world/actors.ts";
import { openBuildingNode } from "../../support/world/building-node.ts";

const LONG_MS = 60_000;
/** The locks of a frozen node go after 9 s, and recovery finds its actors after 5 s more. */
const MOVE_MS = 14_000;
const syntax: BuildFailure = { code: "syntax", line: 2, problem: "unknown instruction RUM" };

const textOf = (pieces: readonly { readonly text: string }[]) => pieces.map(({ text }) => text).join("");
/** Lets the work that is ready go on, without time passing. */
const settle = TestClock.adjust(0);
/** A build that takes a minute of steps and another one of copying. */
const slow = () => ({ stepsMs: LONG_MS, exportMs: LONG_MS, failure: null });

describe("builds on a node", () => {
  it.effect("run as many at once as there are places, in the order in which they came", () =>
    Effect.gen(function* () {
      const { began, building, open, run, site } = yield* openBuildingNode({ atOnce: 2 });
      site.plan = () => ({ ...slow(), exportMs: 0 });
      const rows = yield* Effect.forEach(["a", "b", "c", "d", "e"], (text) => open(text));
      const ids = rows.map(({ id }) => id);
      const runs = [];
      for (const row of rows) runs.push(yield* run(row));
      yield* settle;
      expect([began, building.state()]).toEqual([ids.slice(0, 2), { running: 2, waiting: 3 }]);
      yield* TestClock.adjust(LONG_MS);
      expect([began, building.state()]).toEqual([ids.slice(0, 4), { running: 2, waiting: 1 }]);
      yield* TestClock.adjust(LONG_MS);
      expect([began, building.state()]).toEqual([ids, { running: 1, waiting: 0 }]);
      for (const fiber of runs)
        expect(yield* answered(Fiber.join(fiber))).toMatchObject({ type: "image.ready" });
      expect(building.state()).toEqual({ running: 0, waiting: 0 });
    }),
  );

  it.effect("leave their place to the next one when they fail or are ended, also while they wait", () =>
    Effect.gen(function* () {
      const { began, building, open, run, site } = yield* openBuildingNode();
      site.plan = ({ id }) => ({ ...slow(), failure: id === failing.id ? syntax : null });
      const [failing, waiting, second, third] = [
        yield* open("a"),
        yield* open("b"),
        yield* open("c"),
        yield* open("d"),
      ];
      const runs = [];
      for (const row of [failing, waiting, second, third]) runs.push(yield* run(row));
      const [first, left] = runs;
      if (first === undefined || left === undefined) return yield* Effect.die("nothing runs");
      yield* settle;
      yield* building.end(waiting);
      expect((yield* Fiber.await(left))._tag).toBe("Failure");
      expect(building.state()).toEqual({ running: 1, waiting: 2 });
      yield* TestClock.adjust(LONG_MS);
      expect(yield* answered(Fiber.join(first))).toEqual({ type: "build.failed", failure: syntax });
      yield* settle;
      expect(began).toEqual([failing.id, second.id]);
      yield* building.end(second);
      yield* settle;
      expect(began).toEqual([failing.id, second.id, third.id]);
      expect([...site.running]).toEqual([third.id]);
      expect(building.state()).toEqual({ running: 1, waiting: 0 });
    }),
  );

  it.effect("run once, and have one outcome for all who ask, also a little later", () =>
    Effect.gen(function* () {
      const { began, open, run, site, told } = yield* openBuildingNode();
      site.plan = slow;
      const row = yield* open("a");
      const runs = [yield* run(row), yield* run(row)];
      yield* TestClock.adjust(LONG_MS);
      runs.push(yield* run(row));
      yield* TestClock.adjust(LONG_MS);
      const outcomes = [];
      for (const fiber of runs) outcomes.push(yield* answered(Fiber.join(fiber)));
      yield* TestClock.adjust(UNWATCHED_MS / 2);
      outcomes.push(yield* answered(Fiber.join(yield* run(row))));
      const outcome = { type: "image.ready", image: site.images.get(row.id) };
      expect(outcomes).toEqual([outcome, outcome, outcome, outcome]);
      expect(began).toEqual([row.id]);
      expect(told.map(([, type]) => type)).toEqual(["build.begun", "context.read", "steps.done"]);
    }),
  );

  it.effect("go on while their actor moves to another node", () =>
    Effect.gen(function* () {
      const { began, open, run, site } = yield* openBuildingNode();
      site.plan = slow;
      const row = yield* open("a");
      yield* Fiber.interrupt(yield* run(row));
      yield* TestClock.adjust(MOVE_MS);
      const again = yield* run(row);
      yield* TestClock.adjust(LONG_MS * 2);
      expect(yield* answered(Fiber.join(again))).toMatchObject({ type: "image.ready" });
      expect(began).toEqual([row.id]);
    }),
  );

  it.effect("end without a caller that waits, and go on if one asks again in time", () =>
    Effect.gen(function* () {
      const { began, building, open, run, site } = yield* openBuildingNode();
      site.plan = () => ({ ...slow(), stepsMs: UNWATCHED_MS * 20 });
      const row = yield* open("a");
      yield* Fiber.interrupt(yield* run(row));
      yield* TestClock.adjust(UNWATCHED_MS - 1000);
      expect([...site.running]).toEqual([row.id]);
      const again = yield* run(row);
      yield* TestClock.adjust(UNWATCHED_MS * 3);
      expect([...site.running]).toEqual([row.id]);
      const other = yield* run(row);
      yield* Fiber.interrupt(again);
      yield* TestClock.adjust(UNWATCHED_MS * 3);
      expect([[...site.running], began]).toEqual([[row.id], [row.id]]);
      yield* Fiber.interrupt(other);
      yield* TestClock.adjust(UNWATCHED_MS - 1);
      expect([...site.running]).toEqual([row.id]);
      yield* TestClock.adjust(1);
      expect([...site.running]).toEqual([]);
      expect([site.images.size, building.state()]).toEqual([0, { running: 0, waiting: 0 }]);
    }),
  );

  it.effect("are ended at once for all who wait, and can be begun again", () =>
    Effect.gen(function* () {
      const { began, building, open, run, site } = yield* openBuildingNode();
      site.plan = slow;
      const row = yield* open("a");
      const runs = [yield* run(row), yield* run(row)];
      yield* settle;
      expect([...site.running]).toEqual([row.id]);
      yield* building.end(row);
      expect(site.running.size).toBe(0);
      for (const fiber of runs) expect((yield* Fiber.await(fiber))._tag).toBe("Failure");
      yield* building.end(row);
      site.plan = () => ({ stepsMs: 0, exportMs: 0, failure: null });
      expect(yield* answered(building.run(row))).toMatchObject({ type: "image.ready" });
      expect(began).toEqual([row.id, row.id]);
    }),
  );

  it.effect("of another node run and end there", () =>
    Effect.gen(function* () {
      const asked: string[] = [];
      const outcome = { type: "build.failed", failure: syntax } as const;
      const { began, building, open } = yield* openBuildingNode({
        elsewhere: {
          run: ({ id }) => Effect.sync(() => (asked.push(`run ${id}`), outcome)),
          end: ({ id }) => Effect.sync(() => void asked.push(`end ${id}`)),
        },
      });
      const row = yield* open("a", { nodeId: "node-2" });
      expect(yield* building.run(row)).toEqual(outcome);
      yield* building.end(row);
      expect([asked, began]).toEqual([[`run ${row.id}`, `end ${row.id}`], []]);
    }),
  );
});

describe("a build under way", () => {
  it.effect("shows its status, its step and its log while it runs", () =>
    Effect.gen(function* () {
      const { builds, log, open, output, run, site } = yield* openBuildingNode();
      site.plan = slow;
      output.text = "Pulling\0 debian \u{1f600}\n";
      const row = yield* open("a");
      const status = Effect.map(builds.get(row.id), (build) => build?.status);
      const fiber = yield* run(row);
      yield* until(Effect.map(log(row), (pieces) => pieces.length > 0));
      const text = "Pulling debian \u{1f600}\n[step 1, line 1] FROM scratch\n";
      expect([textOf(yield* log(row)), yield* status]).toEqual([text, "building"]);
      expect(yield* builds.get(row.id)).toMatchObject({
        tries: 1,
        step: { step: 1, line: 1, instruction: "FROM scratch" },
      });
      yield* TestClock.adjust(LONG_MS);
      expect(yield* status).toBe("exporting");
      yield* TestClock.adjust(LONG_MS);
      expect(yield* answered(Fiber.join(fiber))).toMatchObject({ type: "image.ready" });
      expect(textOf(yield* log(row))).toBe(text);
    }),
  );

  it.effect("has its whole log when its outcome comes, in bounded pieces", () =>
    Effect.gen(function* () {
      const { building, log, open, output, site } = yield* openBuildingNode();
      site.plan = () => ({ stepsMs: 0, exportMs: 0, failure: syntax });
      // An emoji has two code units: at an odd place, a piece could end between them.
      output.text = `x${"\u{1f600}".repeat(100_000)}\n`;
      const row = yield* open("a");
      expect(yield* answered(building.run(row))).toEqual({ type: "build.failed", failure: syntax });
      const pieces = yield* log(row);
      expect(textOf(pieces) === `${output.text}[step 1, line 1] FROM scratch\n`).toBe(true);
      expect(Math.max(...pieces.map(({ text }) => text.length))).toBeLessThanOrEqual(64 * 1024);
    }),
  );

  it.effect("writes its log again after an outage of the database, without a loss", () =>
    Effect.gen(function* () {
      const away = { isAway: false };
      const { building, log, open, output, run, site } = yield* openBuildingNode({
        ledger: (builds) => ({
          ...builds,
          appendLog: (id, text) =>
            away.isAway
              ? Effect.fail(
                  new StoreError({ operation: "environmentBuilds.appendLog", cause: new Error("refused") }),
                )
              : builds.appendLog(id, text),
        }),
      });
      site.plan = slow;
      output.text = "one\n";
      const row = yield* open("a");
      away.isAway = true;
      const fiber = yield* run(row);
      yield* TestClock.adjust("10 seconds");
      expect(yield* log(row)).toEqual([]);
      away.isAway = false;
      yield* until(Effect.map(log(row), (pieces) => pieces.length > 0));
      expect(textOf(yield* log(row))).toBe("one\n[step 1, line 1] FROM scratch\n");
      yield* Fiber.interrupt(fiber);
      yield* building.end(row);
    }),
  );

  it.effect("begins with an empty log, whatever a former try wrote", () =>
    Effect.gen(function* () {
      const { building, builds, log, open, output } = yield* openBuildingNode();
      const row = yield* open("a");
      yield* builds.appendLog(row.id, "a former try\n");
      output.text = "this try\n";
      yield* answered(building.run(row));
      expect(textOf(yield* log(row))).toBe("this try\n[step 1, line 1] FROM scratch\n");
    }),
  );

  it.effect("asks registries for newer base images to refresh them, and if somebody asks for the build", () =>
    Effect.gen(function* () {
      const { building, open, site } = yield* openBuildingNode();
      const pulls: string[] = [];
      site.plan = ({ pull }) => (pulls.push(pull), { stepsMs: 0, exportMs: 0, failure: null });
      for (const cause of ["manifest", "session", "asked", "refresh"] as const)
        yield* answered(building.run(yield* open(cause, { cause })));
      expect(pulls).toEqual(["missing", "missing", "newer", "newer"]);
    }),
  );

  it.effect("fails with the reason if its files are missing or cannot be read", () =>
    Effect.gen(function* () {
      const { building, inPorts, open, world } = yield* openBuildingNode();
      const { projectId } = world;
      const source = (yield* open("a")).source;
      const elsewhere = { source: { ...source, context: "no/such", key: "k" } };
      expect(yield* answered(building.run(yield* open("b", elsewhere)))).toEqual({
        type: "build.failed",
        failure: { code: "context_missing", path: "no/such" },
      });
      const unknown = { source: { ...source, commit: "0".repeat(40), key: "l" } };
      const { message } = yield* inPorts(
        Effect.flatMap(GitBackend, (git) =>
          Effect.flip(
            git.readTree({ projectId }, { commit: "0".repeat(40), path: "", after: null, maxBytes: 100 }),
          ),
        ),
      );
      expect(yield* answered(building.run(yield* open("c", unknown)))).toEqual({
        type: "build.failed",
        failure: { code: "repository_unavailable", message },
      });
    }),
  );

  it.effect("reads the files of its context alone, page by page", () =>
    Effect.gen(function* () {
      const { building, inPorts, open } = yield* openBuildingNode();
      const { commit } = yield* inPorts(SimulatedRepositories);
      const { projectId, source } = yield* open("a");
      const files = { ".platform/Dockerfile": "a", "README.md": "changed" };
      const at = { branch: "main", onto: null, subject: "s", files };
      const changed = yield* commit({ projectId }, at);
      const [one, other] = [
        yield* open("a", { source }),
        yield* open("a", { id: randomUUID(), source: { ...source, commit: changed, key: "other" } }),
      ];
      const outcomes = [yield* answered(building.run(one)), yield* answered(building.run(other))];
      expect(outcomes[0]).toMatchObject({ type: "image.ready" });
      expect(outcomes[1]).toEqual(outcomes[0]);
    }),
  );
});
