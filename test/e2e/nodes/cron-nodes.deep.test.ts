/**
 * Cron triggers on several real nodes for ten minutes. One node is killed and started again, later another one stands still
 * and goes on. Every due instant has its row; while nothing goes wrong it has it within 1.5 s.
 */
import { afterEach, describe, expect, it } from "vitest";
import {
  CronNodes,
  lateOnes,
  wallClock,
  worstOf,
  type Instant,
  type Span,
} from "../../support/service/cron-nodes.ts";

const MINUTE_MS = 60_000;
const WATCHED_MS = 10 * MINUTE_MS;
const BOUND_MS = 1_500;
/** A node learns of another node's projects within a second. */
const KNOWN_MS = 5_000;
/**
 * After so long what a node had belongs to others: 3 s until it counts as gone, up to 6 s for one that stands still, then the
 * locks, and the triggers are taken up.
 */
const TAKEN_OVER_MS = 15_000;
const FROZEN_MS = 30_000;
const PROJECTS_A_NODE = 4;
const EXPRESSIONS = ["0 * * * * *", "*/5 * * * * *", "*/7 * * * * *"];
const TIMEOUT_MS = 3 * WATCHED_MS;

let nodes: CronNodes | null = null;
afterEach(() => nodes?.close(), TIMEOUT_MS);

/** Completes at an instant of the clock: what happens then is part of the plan. */
const at = (instant: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, Math.max(0, instant - wallClock()));
  });

const isIn = ({ due }: Instant, { from, until }: Span): boolean => due > from && due <= until;

const told = (what: string, instants: readonly Instant[]): void =>
  void process.stdout.write(`${what}: ${instants.length} instants, the latest ${worstOf(instants)} ms\n`);

describe("cron triggers of several nodes", () => {
  it.each([2, 3])(
    `have a row for each due instant within ${BOUND_MS} ms while it is calm, on %d nodes [C13, R10]`,
    async (count) => {
      const cluster = await CronNodes.start(count);
      nodes = cluster;
      for (let node = 0; node < count; node += 1)
        for (let project = 0; project < PROJECTS_A_NODE; project += 1)
          await cluster.project(node, EXPRESSIONS);
      const from = wallClock() + KNOWN_MS;
      const watched = { from, until: from + WATCHED_MS };
      const disturbed: Span[] = [];
      const disturb = async (act: () => unknown): Promise<void> => {
        const begun = wallClock();
        await act();
        disturbed.push({ from: begun - BOUND_MS, until: wallClock() + TAKEN_OVER_MS });
      };

      await at(from + 2 * MINUTE_MS);
      await disturb(() => cluster.life(1).end("SIGKILL"));
      await at(from + 4 * MINUTE_MS);
      await disturb(() => cluster.restart(1));
      await at(from + 6 * MINUTE_MS);
      await disturb(() => cluster.life(0).signal("SIGSTOP"));
      await at(wallClock() + FROZEN_MS);
      await disturb(() => cluster.life(0).signal("SIGCONT"));

      const all = await cluster.accounted(watched);
      const [calm, others] = [
        all.filter((instant) => !disturbed.some((span) => isIn(instant, span))),
        all.filter((instant) => disturbed.some((span) => isIn(instant, span))),
      ];
      told(`${count} nodes, calm`, calm);
      told(`${count} nodes, around a kill, a start, a stop and its end`, others);
      expect(calm.length).toBeGreaterThan(others.length);
      expect(lateOnes(calm, BOUND_MS)).toEqual([]);
    },
    TIMEOUT_MS,
  );
});
