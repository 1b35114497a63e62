/**
 * Cron triggers on two real nodes: while nothing goes wrong, every due instant has its row in time, on either node. The
 * contract is 1.5 s, which cron-nodes.deep.test.ts holds for ten minutes; here other tests share the machine.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CronNodes, lateOnes, wallClock } from "../support/service/cron-nodes.ts";
import { TEST_MS } from "../support/patience.ts";

const BOUND_MS = 5_000;
/** A node learns of another node's projects within a second. */
const KNOWN_MS = 5_000;
/** Two polls of each node lie within the time that is watched. */
const POLL_MS = 15_000;
const WATCHED_MS = 40_000;
const PROJECTS_A_NODE = 6;

let nodes: CronNodes;

beforeAll(async () => {
  nodes = await CronNodes.start(2, { PLATFORM_TRIGGER_SCHEDULER_INTERVAL_MS: String(POLL_MS) });
  for (const node of [0, 1])
    for (let project = 0; project < PROJECTS_A_NODE; project += 1)
      await nodes.project(node, ["*/5 * * * * *", "*/7 * * * * *"]);
}, TEST_MS);
afterAll(() => nodes?.close(), TEST_MS);

describe("cron triggers on two nodes", () => {
  it(
    `have a row for each due instant within ${BOUND_MS} ms of it [C13, R10]`,
    async () => {
      const from = wallClock() + KNOWN_MS;
      const instants = await nodes.accounted({ from, until: from + WATCHED_MS });
      expect(instants.length).toBeGreaterThan(2 * 2 * PROJECTS_A_NODE);
      expect(lateOnes(instants, BOUND_MS)).toEqual([]);
    },
    TEST_MS,
  );
});
