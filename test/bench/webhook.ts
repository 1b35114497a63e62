/**
 * `npm run bench:webhook [-- --rounds 5 --seconds 4 --connections 16,64,256 --starts 500]`: accepted signed webhooks a
 * second with everything durable, beside a bare `node:http` receiver with `pg` that checks the HMAC and does one insert a
 * request, and pgbench's one-row inserts, on an embedded Postgres server with fsync and synchronous_commit on.
 *
 * The first service's account has one slot, which is taken: every webhook is answered `queued`, after its ledger row and its
 * place in the queue are committed. The second service has a slot for each: every webhook is answered `fired`, after its ledger
 * row and its session are committed. It gets `--starts` webhooks in a turn, and the branches and sandboxes of its sessions wait
 * for a place to boot that never comes: they are `bench:boot`'s.
 *
 * Contenders take turns within each round, in another order each round; a first round warms everything up and is not
 * counted. Before each turn Postgres writes a checkpoint, and after it what the contender left to be done is waited for
 * and counted as its CPU time. Prints medians; ratios are taken within a round. They are measured beside a baseline and
 * are no pass mark: on a small machine the generator shares the cores with what it measures. The last line is one JSON
 * object.
 */
import { parseArgs } from "node:util";
import { setTimeout as pause } from "node:timers/promises";
import {
  SECRET,
  startBare,
  startPostgres,
  startService,
  startStartingService,
  statements,
  type Receiver,
  type Server,
} from "./webhook/contenders.ts";
import type { Order, Outcome } from "./webhook/load.ts";
import { clientsFor, measureInserts } from "./webhook/pgbench.ts";
import { cpuMsOf } from "./webhook/processes.ts";
import { summary, table, type Measure, type Round } from "./webhook/report.ts";
import { turned, wholeFrom1 } from "./figures.ts";
import { startWorker } from "./programs.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "4" },
    connections: { type: "string", default: "16,64,256" },
    starts: { type: "string", default: "500" },
  },
});
const rounds = wholeFrom1("rounds", values.rounds);
const seconds = wholeFrom1("seconds", values.seconds);
const starts = wholeFrom1("starts", values.starts);
const connectionCounts = values.connections.split(",").map((text) => wholeFrom1("connections", text));

/** A turn is over when its processes rest: less than a tenth of a core over this long. */
const REST_MS = 200;
const REST_CPU_MS = 20;
/** Upkeep such as autovacuum may go on for long and belongs to no measurement in particular. */
const RESTS_MAX = 15;

/** CPU time of both once what was left to be done is done. */
const cpuAtRest = async (receiver: number, postgres: number) => {
  let before = { receiver: cpuMsOf(receiver), postgres: cpuMsOf(postgres) };
  for (let rests = 0; rests < RESTS_MAX; rests += 1) {
    await pause(REST_MS);
    const now = { receiver: cpuMsOf(receiver), postgres: cpuMsOf(postgres) };
    const used = now.receiver - before.receiver + now.postgres - before.postgres;
    before = now;
    if (used <= REST_CPU_MS) break;
  }
  return before;
};

const startGenerator = () => startWorker<Order, Outcome>("webhook/load.ts");
type Generator = ReturnType<typeof startGenerator>;

interface Turn {
  readonly server: Server;
  readonly generator: Generator;
  readonly connections: number;
}

/** @param bound the most webhooks of the turn */
const measure = async (
  receiver: Receiver,
  { server, generator, connections }: Turn,
  bound: Pick<Order, "count"> = {},
): Promise<Measure> => {
  await statements(server.benchUrl, "CHECKPOINT");
  const before = await cpuAtRest(receiver.pid, server.pid);
  const { port, path: target } = receiver;
  const outcome = await generator.ask({
    port,
    path: target,
    secret: SECRET,
    connections,
    seconds,
    ...bound,
  });
  const after = await cpuAtRest(receiver.pid, server.pid);
  const { "202": accepted = 0, ...others } = outcome.answers;
  receiver.accepted += accepted;
  const usEach = (ms: number): number => (ms * 1000) / accepted;
  return {
    perSecond: outcome.acceptedPerSecond,
    p50Us: outcome.latency.p50,
    p99Us: outcome.latency.p99,
    maxUs: outcome.latency.max,
    cpuUs: usEach(after.receiver - before.receiver),
    postgresCpuUs: usEach(after.postgres - before.postgres),
    generatorCpuUs: usEach(outcome.generatorCpuMs),
    refused: Object.values(others).reduce((sum, count) => sum + count, outcome.disconnected),
  };
};

interface Contenders {
  readonly ours: Receiver;
  /** It has a Postgres server of its own: the other one has no more connections. */
  readonly starting: { readonly receiver: Receiver; readonly server: Server };
  readonly bare: Receiver;
}

/** One round: each contender's turn, beginning with the one that `shift` says. */
const round = async (contenders: Contenders, turn: Turn, shift: number): Promise<Round> => {
  const result: { -readonly [Name in keyof Round]?: Round[Name] } = {};
  const turns = [
    async () => {
      result.ours = await measure(contenders.ours, turn);
    },
    async () => {
      const { receiver, server } = contenders.starting;
      result.starting = await measure(receiver, { ...turn, server }, { count: starts });
    },
    async () => {
      result.bare = await measure(contenders.bare, turn);
    },
    async () => {
      await statements(turn.server.benchUrl, "CHECKPOINT");
      const clients = clientsFor(turn.connections);
      result.inserts = await measureInserts(turn.server.benchUrl, { clients, seconds });
    },
  ];
  for (const take of turned(turns, shift)) await take();
  return result as Round;
};

const run = async (contenders: Contenders, server: Server): Promise<void> => {
  const generator = startGenerator();
  const measured = new Map<number, Round[]>(connectionCounts.map((connections) => [connections, []]));
  try {
    for (let number = 0; number <= rounds; number += 1) {
      for (const [connections, results] of measured) {
        const result = await round(contenders, { server, generator, connections }, number);
        if (number > 0) results.push(result);
        const rates = [result.ours, result.starting, result.bare, result.inserts].map(({ perSecond }) =>
          Math.round(perSecond),
        );
        process.stdout.write(
          `${number === 0 ? "warm-up" : `round ${number}`}, ${connections} connections: ${rates.join(" / ")}\n`,
        );
      }
    }
  } finally {
    generator.close();
  }
  const figures = [...measured].map(([connections, results]) => summary(results, connections));
  const { ours, starting, bare } = contenders;
  const kept = {
    ours: { accepted: ours.accepted, kept: await ours.kept() },
    starting: { accepted: starting.receiver.accepted, kept: await starting.receiver.kept() },
    bare: { accepted: bare.accepted, kept: await bare.kept() },
  };
  for (const figure of figures) process.stdout.write(table(figure));
  process.stdout.write(`accepted in all and found again: ${JSON.stringify(kept)}\n`);
  process.stdout.write(
    `${JSON.stringify({ rounds, seconds, starts, durability: kept, measured: figures })}\n`,
  );
};

const closing: (() => unknown)[] = [];
/** Closed at the end, the newest one first. */
const opened = <A extends { readonly close: () => unknown }>(part: A): A => {
  closing.push(() => part.close());
  return part;
};
try {
  const server = opened(await startPostgres());
  const startingServer = opened(await startPostgres());
  const ours = opened(await startService(server));
  const starting = opened(await startStartingService(startingServer));
  const bare = opened(await startBare(server.benchUrl, ours));
  await run({ ours, starting: { receiver: starting, server: startingServer }, bare }, server);
} finally {
  for (const close of closing.toReversed()) await close();
}
