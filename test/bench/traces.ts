/**
 * `npm run bench:traces [-- --rounds 5 --seconds 4]`: what metrics and traces cost a webhook. Two services, each on a Postgres of its
 * own, take the webhooks of `bench:webhook` in turns: one measures nothing, the other one has the metrics on and sends spans to a
 * collector in this process. Prints the CPU time of each service for an accepted webhook, and the ratio within each round. The
 * last line is one JSON object.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { parseArgs } from "node:util";
import { Collector } from "../support/servers/collector.ts";
import { SECRET, startPostgres, startService, type Receiver } from "./webhook/contenders.ts";
import type { Order, Outcome } from "./webhook/load.ts";
import { cpuMsOf } from "./webhook/processes.ts";

const CONNECTIONS = 16;
const REST_MS = 1500;

const { values } = parseArgs({
  options: { rounds: { type: "string", default: "5" }, seconds: { type: "string", default: "4" } },
});
const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];

const generator = fork(path.join(import.meta.dirname, "webhook/load.ts"), { execArgv: [] });

/** @returns the service's CPU time for an accepted webhook, µs */
const turn = async ({ pid, port, path: target }: Receiver): Promise<number> => {
  const order: Order = { port, path: target, secret: SECRET, connections: CONNECTIONS, seconds };
  const before = cpuMsOf(pid);
  generator.send(order);
  const [outcome] = (await once(generator, "message")) as [Outcome];
  // Spans are sent, and records are written, after the answers.
  await new Promise((resolve) => {
    setTimeout(resolve, REST_MS);
  });
  return ((cpuMsOf(pid) - before) * 1000) / (outcome.answers["202"] ?? 0);
};

const median = (numbers: readonly number[]): number =>
  numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)] ?? Number.NaN;

const collector = await Collector.open();
const servers = [await startPostgres(), await startPostgres()] as const;
const plain = await startService(servers[0]);
const traced = await startService(servers[1], {
  OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  PLATFORM_METRICS_PORT: "0",
});
try {
  const costs: { readonly plain: number; readonly traced: number }[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    const isFirst = round % 2 === 0;
    const early = isFirst ? await turn(plain) : await turn(traced);
    const late = isFirst ? await turn(traced) : await turn(plain);
    const cost = isFirst ? { plain: early, traced: late } : { plain: late, traced: early };
    process.stdout.write(
      `${round === 0 ? "warm-up" : `round ${round}`}: ${Math.round(cost.plain)} µs without, ${Math.round(cost.traced)} µs with\n`,
    );
    if (round > 0) costs.push(cost);
  }
  const ratios = costs.map((cost) => cost.traced / cost.plain).toSorted((one, other) => one - other);
  process.stdout.write(
    `${JSON.stringify({
      rounds,
      seconds,
      spans: collector.spans.length,
      plain_us: Math.round(median(costs.map((cost) => cost.plain))),
      traced_us: Math.round(median(costs.map((cost) => cost.traced))),
      ratio: { median: median(ratios), least: ratios[0], most: ratios.at(-1) },
    })}\n`,
  );
} finally {
  generator.disconnect();
  await Promise.all([plain.close(), traced.close()]);
  for (const server of servers) await server.close();
  await collector.close();
}
