/**
 * `npm run bench:events [-- --readers 1000 --window-s 30 --rounds 3 --commits 20]`: many readers of one project's events, at the
 * service and at a bare server (`node:http`, `pg`, one LISTEN), on one embedded Postgres.
 *
 * At rest: CPU time of the server and of Postgres in a window, without readers and then with all of them, of which the
 * difference is what readers cost. Comments keep connections open every 15 s; each window has the same number of them.
 * Then commits: from the moment an event's write is sent until each reader has it, so that the write is in it. Contenders
 * take turns within each round, in another order each round; a first round is not counted. The readers are one process of
 * their own, on the same machine.
 *
 * Fails if a reader misses an event. The last line is one JSON object.
 */
import { availableParallelism, loadavg } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import * as pg from "pg";
import { TOKEN, type Life } from "../support/service/process-service.ts";
import { spread, told, type Spread } from "./conversation/figures.ts";
import { CHANNEL, TABLE } from "./events/names.ts";
import type { Heard, Order } from "./events/crowd.ts";
import { startServer, startWorker } from "./programs.ts";
import { statements, withService } from "./webhook/contenders.ts";
import { cpuMsOf } from "./webhook/processes.ts";
import { quantile, rounded, turned, wholeFrom1 } from "./figures.ts";

/** How long a reader has for an event. */
const PATIENCE_MS = 20_000;
/** Between two commits, so that each is alone. */
const BETWEEN_MS = 250;
/** After streams were opened or closed, until what that began is over. */
const SETTLE_MS = 8_000;
/** One token of the API may have 100 streams open. */
const STREAMS_PER_TOKEN = 100;

const { values } = parseArgs({
  options: {
    readers: { type: "string", default: "1000" },
    "window-s": { type: "string", default: "30" },
    rounds: { type: "string", default: "3" },
    commits: { type: "string", default: "20" },
  },
});
const positive = (name: keyof typeof values): number => wholeFrom1(name, values[name]);
const count = positive("readers");
const windowMs = positive("window-s") * 1000;
const rounds = positive("rounds");
const commits = positive("commits");

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const nowMs = (): number => Number(process.hrtime.bigint() / 1000n) / 1000;

/** A server of events, and readers in a process of their own. */
class Contender {
  readonly name: string;
  readonly #pid: number;
  readonly #crowd = startWorker<Order, { readonly heard: Heard }>("events/crowd.ts");
  readonly #commit: (number: number) => Promise<unknown>;

  constructor(name: string, pid: number, commit: (number: number) => Promise<unknown>) {
    this.name = name;
    this.#pid = pid;
    this.#commit = commit;
  }

  async open(stream: {
    readonly port: number;
    readonly path: string;
    readonly tokens: readonly string[];
  }): Promise<void> {
    await this.#crowd.ask({ kind: "open", ...stream, count });
  }

  /** Parts of a core, in percent, that the server and Postgres use in a window. */
  async rest(postgres: number): Promise<{ readonly server: number; readonly postgres: number }> {
    const before = { server: cpuMsOf(this.#pid), postgres: cpuMsOf(postgres) };
    await delay(windowMs);
    const part = (pid: number, from: number): number => ((cpuMsOf(pid) - from) / windowMs) * 100;
    return { server: part(this.#pid, before.server), postgres: part(postgres, before.postgres) };
  }

  /** Commits events one after the other. @returns for each reader of each event, the ms until it came; for each event, until the last had it; CPU ms an event. */
  async commits(first: number) {
    const each: number[] = [];
    const last: number[] = [];
    const before = cpuMsOf(this.#pid);
    for (let number = first; number < first + commits; number += 1) {
      const sent = nowMs();
      await this.#commit(number);
      const { heard } = await this.#crowd.ask({ kind: "heard", number, patienceMs: PATIENCE_MS });
      if (heard.length !== count)
        throw new Error(`${heard.length} of ${count} readers of ${this.name} got event ${number}`);
      const delays = heard.map((at) => at - sent);
      each.push(...delays);
      last.push(Math.max(...delays));
      await delay(BETWEEN_MS);
    }
    return {
      p50: quantile(each, 0.5),
      p99: quantile(each, 0.99),
      last: quantile(last, 0.5),
      cpu: (cpuMsOf(this.#pid) - before) / commits,
    };
  }

  close(): void {
    this.#crowd.close();
  }
}

type Commits = Awaited<ReturnType<Contender["commits"]>>;

const tokensOf = async (life: Life): Promise<readonly string[]> => {
  const tokens = [TOKEN];
  while (tokens.length * STREAMS_PER_TOKEN < count)
    tokens.push(String((await life.call("POST", "/v1/tokens", { name: "bench" }))["token"]));
  return tokens;
};

const SERVICE_COMMIT = `
  WITH event AS (
    INSERT INTO events (project_id, type, at, data) VALUES ($1, 'trigger.fired', now(), jsonb_build_object('number', $2::int))
    RETURNING project_id
  )
  SELECT pg_notify('platform_events', project_id::text) FROM event`;
const BARE_COMMIT = `
  WITH event AS (
    INSERT INTO ${TABLE} (project_id, data) VALUES ($1, jsonb_build_object('number', $2::int)) RETURNING project_id
  )
  SELECT pg_notify('${CHANNEL}', project_id::text) FROM event`;
const BARE_TABLE = `
  CREATE TABLE ${TABLE} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, project_id uuid NOT NULL, at timestamptz NOT NULL DEFAULT now(), data jsonb NOT NULL
  )`;

const row = (results: readonly Commits[]) => {
  const of = (wanted: (result: Commits) => number): Spread => spread(results.map(wanted));
  return {
    p50_ms: of(({ p50 }) => p50),
    p99_ms: of(({ p99 }) => p99),
    last_ms: of(({ last }) => last),
    cpu_ms: of(({ cpu }) => cpu),
  };
};

const run = async (
  contenders: readonly Contender[],
): Promise<Readonly<Record<string, ReturnType<typeof row>>>> => {
  const results = new Map<string, Commits[]>(contenders.map(({ name }) => [name, []]));
  let number = 1;
  for (let round = 0; round <= rounds; round += 1) {
    for (const contender of turned(contenders, round)) {
      const result = await contender.commits(number);
      number += commits;
      if (round > 0) results.get(contender.name)?.push(result);
    }
  }
  return Object.fromEntries([...results].map(([name, all]) => [name, row(all)]));
};

/** What readers cost at rest: each server is looked at alone, without readers and with all of them. */
const resting = async (contender: Contender, postgres: number, open: () => Promise<void>) => {
  const without = await contender.rest(postgres);
  await open();
  await delay(SETTLE_MS);
  const full = await contender.rest(postgres);
  const figures = {
    none_percent: rounded(without.server + without.postgres),
    all_percent: rounded(full.server + full.postgres),
    readers_percent: rounded(full.server + full.postgres - without.server - without.postgres),
    readers_server_percent: rounded(full.server - without.server),
  };
  say(
    `${contender.name} at rest: ${figures.none_percent} % of a core without readers, ${figures.all_percent} % with ${count}`,
  );
  return figures;
};

const compare = async (
  life: Life,
  sample: string,
  server: { readonly pid: number; readonly url: string },
) => {
  const projectId = await life.project(sample);
  const tokens = await tokensOf(life);
  await statements(server.url, BARE_TABLE);
  const bareServer = await startServer("events/bare.ts", { DATABASE_URL: server.url });
  const writer = new pg.Client({ connectionString: server.url });
  await writer.connect();
  const commit = (name: string, text: string) => (number: number) =>
    writer.query({ name, text, values: [projectId, number] });
  const ours = new Contender("the service", life.pid, commit("ours", SERVICE_COMMIT));
  const bare = new Contender("a bare server", bareServer.pid, commit("bare", BARE_COMMIT));
  try {
    await delay(SETTLE_MS);
    const port = Number(new URL(life.url).port);
    const rest = {
      bare: await resting(bare, server.pid, () =>
        bare.open({ port: bareServer.port, path: `/${projectId}`, tokens }),
      ),
      ours: await resting(ours, server.pid, () =>
        ours.open({ port, path: `/v1/projects/${projectId}/events`, tokens }),
      ),
    };
    const turns = await run([ours, bare]);
    for (const [name, { p50_ms: p50, p99_ms: p99, last_ms: last, cpu_ms: cpu }] of Object.entries(turns))
      say(
        `${name}, a commit at ${count} readers: p50 ${told(p50)} ms, p99 ${told(p99)}, at the last ${told(last)}, CPU ${told(cpu)}`,
      );
    return { rest, ours: turns[ours.name], bare: turns[bare.name] };
  } finally {
    ours.close();
    bare.close();
    bareServer.close();
    await writer.end();
  }
};

const load = loadavg().map((value) => Math.round(value * 10) / 10);
say(`${availableParallelism()} cores, load ${load.join(" ")} at the start`);
await withService(async (life, { installation, server }) => {
  const figures = await compare(life, installation.sample, server);
  say(JSON.stringify({ load, readers: count, window_s: windowMs / 1000, rounds, commits, ...figures }));
});
