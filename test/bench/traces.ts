/**
 * `npm run bench:traces [-- --rounds 8 --seconds 3 --rate 800 --boots 20]`: what metrics and traces cost a webhook, and a session that
 * starts. Three services take turns: one measures nothing, one has the metrics on, and one also sends spans to a collector in
 * this process. Those that take the webhooks of `bench:webhook` have a Postgres each, and those that start sessions have
 * simulated sandboxes. All get the same number of webhooks a second, because a service that is given as many as it can take
 * writes them in batches, and a larger batch costs less for each webhook. Prints the CPU time of each service for an accepted
 * webhook and for a session, and the ratios within each round. The last line is one JSON object.
 */
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Collector } from "../support/servers/collector.ts";
import { Installation } from "../support/service/process-service.ts";
import { begin } from "./sessions/begin.ts";
import { median, turned } from "./figures.ts";
import { startWorker } from "./programs.ts";
import { SECRET, startPostgres, startService, type Receiver } from "./webhook/contenders.ts";
import type { Order, Outcome } from "./webhook/load.ts";
import { cpuMsOf } from "./webhook/processes.ts";

const CONNECTIONS = 16;
const REST_MS = 1500;

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "8" },
    seconds: { type: "string", default: "3" },
    rate: { type: "string", default: "800" },
    boots: { type: "string", default: "20" },
  },
});
const [rounds, seconds, rate, boots] = [values.rounds, values.seconds, values.rate, values.boots].map(
  Number,
) as [number, number, number, number];

const generator = startWorker<Order, Outcome>("webhook/load.ts");

const rest = (): Promise<void> => delay(REST_MS);

/** @returns the service's CPU time for an accepted webhook, µs */
const turn = async ({ pid, port, path: target }: Receiver): Promise<number> => {
  const order: Order = { port, path: target, secret: SECRET, connections: CONNECTIONS, seconds, rate };
  const before = cpuMsOf(pid);
  const outcome = await generator.ask(order);
  // Spans are sent, and records are written, after the answers.
  await rest();
  return ((cpuMsOf(pid) - before) * 1000) / (outcome.answers["202"] ?? 0);
};

const collector = await Collector.open();
const SETTINGS = {
  plain: {},
  measured: { PLATFORM_METRICS_PORT: "0" },
  traced: { PLATFORM_METRICS_PORT: "0", OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
} as const;
type Name = keyof typeof SETTINGS;
type Costs = Readonly<Record<Name, number>>;
const NAMES = ["plain", "measured", "traced"] as const satisfies readonly Name[];

interface Contender {
  /** Makes the service do its work once. @returns its CPU time for each piece of it, µs */
  readonly turn: () => Promise<number>;
  readonly close: () => Promise<void>;
}

const forWebhooks = async (name: Name): Promise<Contender> => {
  const server = await startPostgres();
  const service = await startService(server, SETTINGS[name]);
  return {
    turn: () => turn(service),
    close: async () => {
      await service.close();
      await server.close();
    },
  };
};

const forBoots = async (name: Name): Promise<Contender> => {
  const installation = await Installation.open();
  const life = await installation.start({
    PLATFORM_SANDBOX_PROVIDER: "simulated",
    PLATFORM_TIER_CAPS: '{"free": 100000}',
    ...SETTINGS[name],
  });
  const project = await life.project(installation.sample);
  return {
    turn: async () => {
      const before = cpuMsOf(life.pid);
      await begin(life, project, boots);
      await rest();
      return ((cpuMsOf(life.pid) - before) * 1000) / boots;
    },
    close: async () => {
      await life.end("SIGTERM");
      await installation.close();
    },
  };
};

/** Each service once, in an order that changes from round to round. */
const roundOf = async (contenders: Readonly<Record<Name, Contender>>, round: number): Promise<Costs> => {
  const costs = { plain: 0, measured: 0, traced: 0 };
  for (const name of turned(NAMES, round)) costs[name] = await contenders[name].turn();
  return costs;
};

const compared = async (what: string, make: (name: Name) => Promise<Contender>) => {
  const contenders = {
    plain: await make("plain"),
    measured: await make("measured"),
    traced: await make("traced"),
  };
  const costs: Costs[] = [];
  try {
    for (let round = 0; round <= rounds; round += 1) {
      const cost = await roundOf(contenders, round);
      const shown = NAMES.map((name) => `${Math.round(cost[name])} µs ${name}`).join(", ");
      process.stdout.write(`${what}, ${round === 0 ? "warm-up" : `round ${round}`}: ${shown}\n`);
      if (round > 0) costs.push(cost);
    }
  } finally {
    for (const name of NAMES) await contenders[name].close();
  }
  const ratioOf = (name: Name, to: Name) => {
    const ratios = costs.map((cost) => cost[name] / cost[to]).toSorted((one, other) => one - other);
    return { median: median(ratios), least: ratios[0], most: ratios.at(-1) };
  };
  return {
    us: Object.fromEntries(NAMES.map((name) => [name, Math.round(median(costs.map((cost) => cost[name])))])),
    metrics: ratioOf("measured", "plain"),
    traces: ratioOf("traced", "measured"),
    both: ratioOf("traced", "plain"),
  };
};

try {
  const webhook = await compared("webhook", forWebhooks);
  const session = await compared("session", forBoots);
  process.stdout.write(
    `${JSON.stringify({ rounds, seconds, rate, boots, spans: collector.spans.length, webhook, session })}\n`,
  );
} finally {
  generator.close();
  await collector.close();
}
