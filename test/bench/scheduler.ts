/**
 * `npm run bench:scheduler [-- --counts 10000,100000 --ticks 100 --due 1000 --projects 4 --others 0,10000 --rounds 3]`: what
 * cron triggers cost. As it is, it ends within two minutes. The long form is `--counts 10000,100000,1000000 --ticks 200
 * --others 0,10000,100000 --rounds 5`.
 *
 * Held: for each count, memory a trigger and of the whole process, the time to take all of them up at a start, the poll's tick with nothing due,
 * and to hand all of them out at once. Late: `due` triggers that fall due in one second, from the instant to each row's
 * commit, with `others` held besides, and beside it the same rows inserted bare into the same Postgres: one insert each
 * over ten connections, and all in one statement.
 *
 * Each count and each number of others has a process of its own; see `scheduler/holding.ts` and `scheduler/lateness.ts`
 * for what in them is real. A service and the inserts beside it take turns; a first round warms everything up and is
 * not counted. Prints medians; ratios are taken within a round. It measures and judges nothing. The last line is one
 * JSON object.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { parseArgs } from "node:util";
import { databaseAt } from "../support/postgres/databases.ts";
import { median, rounded } from "./scheduler/figures.ts";
import type { Holding, HoldingOrder } from "./scheduler/holding.ts";
import type { LatenessOrder, LatenessRound, Spent } from "./scheduler/lateness.ts";
import { startPostgres, statements } from "./webhook/contenders.ts";

const { values } = parseArgs({
  options: {
    counts: { type: "string", default: "10000,100000" },
    ticks: { type: "string", default: "100" },
    due: { type: "string", default: "1000" },
    projects: { type: "string", default: "4" },
    others: { type: "string", default: "0,10000" },
    rounds: { type: "string", default: "3" },
  },
});

const whole = (name: string, text: string, least: number): number => {
  const value = Number(text);
  if (!Number.isInteger(value) || value < least)
    throw new Error(`--${name} takes whole numbers from ${least}, not ${text}`);
  return value;
};
const list = (name: string, text: string, least: number): readonly number[] =>
  text
    .split(",")
    .filter((item) => item !== "")
    .map((item) => whole(name, item, least));

const counts = list("counts", values.counts, 1);
const ticks = whole("ticks", values.ticks, 1);
const due = whole("due", values.due, 1);
const projects = whole("projects", values.projects, Math.ceil(due / 1000));
const others = list("others", values.others, 0);
const rounds = whole("rounds", values.rounds, 1);

/** A million triggers with their definitions and texts take more than the heap that Node has by itself. */
const HEAP = ["--expose-gc", "--max-old-space-size=8192"];

/** Has a program of this bench answer one order. */
const ask = async <Answer>(program: string, order: object): Promise<Answer> => {
  const child = fork(path.join(import.meta.dirname, "scheduler", program), { execArgv: HEAP });
  const ended = once(child, "exit");
  child.send(order);
  const [answer] = (await Promise.race([once(child, "message"), ended])) as [Answer | number | null];
  if (answer === null || typeof answer === "number") throw new Error(`${program} ended with ${answer}`);
  child.disconnect();
  await ended;
  return answer;
};

const line = (cells: readonly (string | number)[]): void => {
  const widths = [12, 10, 12, 12, 12, 12, 14, 14, 10];
  process.stdout.write(
    `${cells.map((cell, index) => String(cell).padStart(widths[index] ?? 12)).join("")}\n`,
  );
};

const held = async (): Promise<readonly Holding[]> => {
  line([
    "triggers",
    "load s",
    "take up s",
    "stall ms",
    "tick µs",
    "all due s",
    "schedules B",
    "all held B",
    "RSS MB",
  ]);
  const results: Holding[] = [];
  for (const triggers of counts) {
    const one = await ask<Holding>("holding.ts", { triggers, ticks } satisfies HoldingOrder);
    results.push(one);
    line([
      triggers,
      one.load_s,
      one.take_up_s,
      one.take_up_stall_ms,
      one.tick_us,
      one.hand_out_s,
      one.schedules_bytes,
      one.held_bytes,
      one.rss_mb,
    ]);
  }
  return results;
};

const spentOf = (results: readonly Spent[]): Spent => ({
  p50: median(results.map(({ p50 }) => p50)),
  p99: median(results.map(({ p99 }) => p99)),
  max: median(results.map(({ max }) => max)),
});

const summary = (besides: number, results: readonly LatenessRound[]) => {
  const ratio = (of: (result: LatenessRound) => number): number => rounded(median(results.map(of)));
  return {
    others: besides,
    service_ms: spentOf(results.map(({ service }) => service)),
    worst_ms: Math.max(...results.map(({ service }) => service.max)),
    insert_each_ms: spentOf(results.map(({ each }) => each)),
    insert_together_ms: median(results.map(({ together }) => together)),
    ratios: {
      p50_to_each: ratio(({ service, each }) => service.p50 / each.p50),
      p99_to_each: ratio(({ service, each }) => service.p99 / each.p99),
      max_to_each: ratio(({ service, each }) => service.max / each.max),
      max_to_together: ratio(({ service, together }) => service.max / together),
    },
  };
};

const late = async (): Promise<readonly ReturnType<typeof summary>[]> => {
  if (others.length === 0) return [];
  const server = await startPostgres();
  try {
    line(["others", "p50 ms", "p99 ms", "max ms", "each p50", "each max", "together ms", "max to each"]);
    const results = [];
    for (const besides of others) {
      const database = `others_${besides}`;
      await statements(server.url, `CREATE DATABASE ${database}`);
      const order = { url: databaseAt(server.url, database), due, projects, others: besides, rounds };
      const result = summary(
        besides,
        await ask<readonly LatenessRound[]>("lateness.ts", order satisfies LatenessOrder),
      );
      results.push(result);
      const { service_ms: ours, insert_each_ms: each, insert_together_ms: together, ratios } = result;
      line([besides, ours.p50, ours.p99, ours.max, each.p50, each.max, together, `${ratios.max_to_each} ×`]);
    }
    return results;
  } finally {
    await server.close();
  }
};

const holding = await held();
process.stdout.write(`\n${due} triggers of ${projects} projects due in one second\n`);
const lateness = await late();
const [least] = holding;
const most = holding.at(-1);
const growth =
  least === undefined || most === undefined
    ? null
    : {
        triggers: rounded(most.triggers / least.triggers),
        tick: rounded(most.tick_us / least.tick_us),
        schedules_bytes: rounded(most.schedules_bytes / least.schedules_bytes),
      };
process.stdout.write(
  `${JSON.stringify({ ticks, due, projects, rounds, held: holding, growth, late: lateness })}\n`,
);
