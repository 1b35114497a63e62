/**
 * `npm run bench:reads [-- --rounds 3 --seconds 1 --connections 16 --sessions 100000 --fires 1000000]`: reads of the API
 * beside a bare `node:http` server with `pg` and the same selects prepared, on one embedded Postgres.
 *
 * Two reads are compared: one session, and a list of 50. Then the service's lists alone: of a small project (100 sessions
 * and 100 fires), and of a large one, its first page and one in its middle. They should take the same time.
 *
 * Contenders take turns within each round, in another order each round; a first round warms everything up and is not
 * counted. Requests come from autocannon in a process of its own. CPU time is that of the server's process and of
 * Postgres. Prints medians; ratios are taken within a round. They are no pass mark: on a small machine the generator
 * shares the cores with what it measures. The last line is one JSON object.
 */
import { parseArgs } from "node:util";
import { writeCursor } from "../../src/store/cursor.ts";
import { TOKEN, type Life } from "../support/service/process-service.ts";
import { startServer, startWorker } from "./programs.ts";
import type { Order, Requests } from "./reads/load.ts";
import { comparison, growth, type Measure } from "./reads/report.ts";
import { fill, middleOf, settle } from "./reads/rows.ts";
import { type Server, withService } from "./webhook/contenders.ts";
import { cpuMsOf } from "./webhook/processes.ts";
import { turned, wholeFrom1 } from "./figures.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "3" },
    seconds: { type: "string", default: "1" },
    connections: { type: "string", default: "16" },
    sessions: { type: "string", default: "100000" },
    fires: { type: "string", default: "1000000" },
  },
});
const positive = (name: keyof typeof values): number => wholeFrom1(name, values[name]);
const rounds = positive("rounds");
const seconds = positive("seconds");
const connections = positive("connections");
const large = { sessions: positive("sessions"), fires: positive("fires") };
/** Rows of each kind in the small project. */
const SMALL = 100;
const LIMIT = "limit=50";

/** A server that answers reads. */
interface Reader {
  readonly pid: number;
  readonly port: number;
}

interface Stage {
  readonly server: Server;
  readonly generator: ReturnType<typeof startWorker<Order, Requests>>;
}

const measure = async ({ pid, port }: Reader, target: string, stage: Stage): Promise<Measure> => {
  const before = { own: cpuMsOf(pid), postgres: cpuMsOf(stage.server.pid) };
  const { answered, perSecond, failed } = await stage.generator.ask({
    port,
    path: target,
    headers: { authorization: `Bearer ${TOKEN}` },
    connections,
    seconds,
  });
  if (failed > 0) throw new Error(`${failed} requests for ${target} had no answer, or another one than 200`);
  return {
    perSecond,
    cpuUs: ((cpuMsOf(pid) - before.own) * 1000) / answered,
    postgresUs: ((cpuMsOf(stage.server.pid) - before.postgres) * 1000) / answered,
  };
};

type Turns = Readonly<Record<string, () => Promise<Measure>>>;

/** Rounds of turns, beginning with another one each round. */
const run = async (turns: Turns): Promise<readonly Readonly<Record<string, Measure>>[]> => {
  const results: Record<string, Measure>[] = [];
  for (let number = 0; number <= rounds; number += 1) {
    const result: Record<string, Measure> = {};
    for (const [name, take] of turned(Object.entries(turns), number)) result[name] = await take();
    if (number > 0) results.push(result);
    const rates = Object.entries(result).map(([name, { perSecond }]) => `${name} ${Math.round(perSecond)}`);
    process.stdout.write(`${number === 0 ? "warm-up" : `round ${number}`}: ${rates.join(", ")}\n`);
  }
  return results;
};

const targetsOf = async (url: string, projectId: string) => {
  const own = `/v1/projects/${projectId}`;
  const [session, fire] = [
    await middleOf(url, { table: "project_sessions", at: "created_at", projectId }),
    await middleOf(url, { table: "fires", at: "received_at", projectId }),
  ];
  return {
    session: `${own}/sessions/${session.id}`,
    page: `${own}/sessions?${LIMIT}`,
    laterPage: `${own}/sessions?${LIMIT}&cursor=${writeCursor(session)}`,
    ledger: `${own}/fires?${LIMIT}`,
    laterLedger: `${own}/fires?${LIMIT}&cursor=${writeCursor(fire)}`,
  };
};

const compare = async (life: Life, sample: string, server: Server): Promise<void> => {
  const projects = { small: await life.project(sample), large: await life.project(sample) };
  await fill(server.url, projects.small, { sessions: SMALL, fires: SMALL });
  await fill(server.url, projects.large, large);
  await settle(server.url);
  const [small, big] = [
    await targetsOf(server.url, projects.small),
    await targetsOf(server.url, projects.large),
  ];
  const ours: Reader = { pid: life.pid, port: Number(new URL(life.url).port) };
  const bare = await startServer("reads/bare.ts", { DATABASE_URL: server.url });
  const generator = startWorker<Order, Requests>("reads/load.ts");
  const stage = { server, generator };
  try {
    const compared = await run({
      session: () => measure(ours, small.session, stage),
      "session, bare": () => measure(bare, small.session, stage),
      page: () => measure(ours, small.page, stage),
      "page, bare": () => measure(bare, small.page, stage),
    });
    const grown = await run({
      "sessions, few": () => measure(ours, small.page, stage),
      "sessions, many": () => measure(ours, big.page, stage),
      "sessions, many, middle": () => measure(ours, big.laterPage, stage),
      "fires, few": () => measure(ours, small.ledger, stage),
      "fires, many": () => measure(ours, big.ledger, stage),
      "fires, many, middle": () => measure(ours, big.laterLedger, stage),
    });
    const figures = { ...comparison(compared), ...growth(grown) };
    process.stdout.write(`${JSON.stringify({ rounds, seconds, connections, ...large, ...figures })}\n`);
  } finally {
    generator.close();
    bare.close();
  }
};

await withService((life, { installation, server }) => compare(life, installation.sample, server));
