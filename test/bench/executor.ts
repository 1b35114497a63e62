/**
 * `npm run bench:executor [-- --rounds 3]`: the gateway of connectors, over the service in its own process and servers in another one.
 *
 * Three measurements, each after a warm-up that is not counted:
 * - `tools/list` of a project with 20 connectors of 100 tools, of which 40 are shown by name; one request after the other.
 * - a call, one after the other: through the gateway, and of the same server without it. For an MCP server, the bare exchange is one request in an
 *   open session, as are a session's calls after the first one.
 * - calls at once over 20 connectors, 10 of each kind: 150 over the 15 that answer, then 200 of which 50 go to five that never answer,
 *   and `tools/list` while those 50 still wait.
 *
 * Each of the first two also says the CPU time of the service, which depends less on what else the machine does.
 *
 * Aims, which are no pass marks: a p99 of 20 ms, 15 ms more at p50, a p99 within twice, and 200 ms for a list beside calls that hang. This process makes the requests, and shares the
 * cores with what it measures. The last line is one JSON object.
 */
import { parseArgs } from "node:util";
import { Pool } from "undici";
import { DaemonFarm } from "../support/servers/daemon-farm.ts";
import { agentToken } from "../support/service/agent-token.ts";
import { Installation, type Life } from "../support/service/process-service.ts";
import { cpuOf, settingsFor } from "./conversation/idle.ts";
import type { Ports } from "./executor/upstreams.ts";
import { quantile, wholeFrom1 } from "./figures.ts";
import { startServer } from "./programs.ts";
import { begin } from "./sessions/begin.ts";
import { startPostgres } from "./webhook/contenders.ts";

const { values } = parseArgs({ options: { rounds: { type: "string", default: "3" } } });
const rounds = wholeFrom1("rounds", values.rounds);

/** A session makes eight calls at once. */
const SESSIONS = 26;
const CONNECTORS = 20;
const HANGING = 5;
const LISTS = 400;
/** A connector has 60 calls a minute. */
const CALLS = 30;
const AT_ONCE = 10;
/** So few that they end before the calls that hang, which last a minute. */
const LISTS_BESIDE = 50;
const HEADERS = { accept: "application/json, text/event-stream", "content-type": "application/json" };

const slugOf = (index: number): string => `c${index}`;
const isMcp = (index: number): boolean => index % 2 === 0;

const entry = (index: number, { mcp, http }: Ports): string => {
  const place = index >= CONNECTORS - HANGING ? "hang" : "well";
  const rule = `[[connectors.tools]]\nmatch = "*"\npolicy = "allow"\n`;
  if (isMcp(index))
    return `[[connectors]]\nslug = "${slugOf(index)}"\nkind = "mcp"\nurl = "http://127.0.0.1:${mcp}/mcp?at=${place}${index}"\ndirect = ["tool_0", "tool_1"]\n${rule}`;
  const operations = Array.from({ length: 100 }, (_, tool) => {
    const parameters = `[{ name = "id", in = "path", type = "integer" }, { name = "state", in = "query", enum = ["open", "closed"] }]`;
    return `[[connectors.operations]]\nname = "tool_${tool}"\ndescription = "Shows an issue with its comments, its labels and its people."\npath = "/${place}/${tool}/{id}"\nparameters = ${parameters}\n`;
  });
  return `[[connectors]]\nslug = "${slugOf(index)}"\nkind = "http"\nurl = "http://127.0.0.1:${http}/"\ndirect = ["tool_0", "tool_1"]\n${operations.join("")}${rule}`;
};

/** A project whose tools are accepted. */
const connect = async (life: Life, sample: string): Promise<string> => {
  const pid = await life.project(sample);
  for (let index = 0; index < CONNECTORS; index += 1) {
    const target = `/v1/projects/${pid}/connectors/${slugOf(index)}/catalogue`;
    // eslint-disable-next-line no-await-in-loop -- one catalogue after the other
    const { pin } = await life.call("POST", target, { action: "refresh" });
    // eslint-disable-next-line no-await-in-loop
    await life.call("POST", target, { action: "accept", pin });
  }
  return pid;
};

const tokensFor = (databaseUrl: string, sessions: readonly string[]): Promise<readonly string[]> =>
  Promise.all(sessions.map((session) => agentToken(databaseUrl, session)));

interface Asked {
  readonly pool: Pool;
  readonly target: string;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly method?: "POST" | "DELETE";
}

const post = async ({ pool, target, token, headers, method = "POST" }: Asked, message: object | null) => {
  const answer = await pool.request({
    path: target,
    method,
    headers: { ...HEADERS, ...headers, ...(token !== undefined && { authorization: `Bearer ${token}` }) },
    ...(message !== null && { body: JSON.stringify({ jsonrpc: "2.0", ...message }) }),
  });
  const text = await answer.body.text();
  if (answer.statusCode >= 300)
    throw new Error(`${target} answered ${answer.statusCode}: ${text.slice(0, 200)}`);
  return { text, session: String(answer.headers["mcp-session-id"] ?? "") };
};

const toolCall = (name: string, given: object) => ({
  id: 1,
  method: "tools/call",
  params: { name, arguments: given },
});

/** ms of each, one after the other. The first ones warm up. */
const timed = async (count: number, work: () => Promise<unknown>): Promise<readonly number[]> => {
  const taken: number[] = [];
  const warm = Math.ceil(count / 10);
  for (let index = 0; index < count + warm; index += 1) {
    const from = performance.now();
    // eslint-disable-next-line no-await-in-loop -- one after the other is what is measured
    await work();
    if (index >= warm) taken.push(performance.now() - from);
  }
  return taken;
};

interface Stage {
  /** Of the service. */
  readonly pid: number;
  readonly gateway: Pool;
  readonly target: string;
  readonly tokens: readonly string[];
  readonly ports: Ports;
}

const given = (index: number): object => (isMcp(index) ? { team: "core" } : { id: 7, state: "open" });

const called = async ({ gateway, target, tokens }: Stage, index: number, session: number): Promise<void> => {
  const name = `${slugOf(index)}_tool_0`;
  const { text } = await post(
    { pool: gateway, target, token: tokens[session] ?? "" },
    toolCall(name, given(index)),
  );
  if (!text.includes("Say hello") && !text.includes("done"))
    throw new Error(`${name}: ${text.slice(0, 300)}`);
};

/** Begins a session at an MCP server. @returns what a call in it needs */
const bareSession = async (pool: Pool) => {
  const target = "/mcp?at=bare";
  const params = {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "bench", version: "1" },
  };
  const { session } = await post({ pool, target }, { id: 0, method: "initialize", params });
  const headers = { "mcp-session-id": session };
  await post({ pool, target, headers }, { method: "notifications/initialized" });
  return { pool, target, headers };
};

const bareHttp = async (pool: Pool): Promise<void> => {
  const { body } = await pool.request({ path: "/well/0/7?state=open", method: "GET" });
  await body.text();
};

/** As `timed`, with the service's CPU time of one, ms. */
const timedOn = async (pid: number, count: number, work: () => Promise<unknown>) => {
  const before = cpuOf(pid).service;
  let done = 0;
  const taken = await timed(count, () => {
    done += 1;
    return work();
  });
  return { taken, cpu: (cpuOf(pid).service - before) / done };
};

const p50 = (ms: readonly number[]): number => quantile(ms, 0.5);

const oneByOne = async (stage: Stage) => {
  const bare = {
    mcp: new Pool(`http://127.0.0.1:${stage.ports.mcp}`),
    http: new Pool(`http://127.0.0.1:${stage.ports.http}`),
  };
  const token = stage.tokens[0] ?? "";
  const list = { pool: stage.gateway, target: stage.target, token };
  try {
    const lists = await timedOn(stage.pid, LISTS, () => post(list, { id: 1, method: "tools/list" }));
    const mcp = await timedOn(stage.pid, CALLS, () => called(stage, 0, 0));
    const http = await timedOn(stage.pid, CALLS, () => called(stage, 1, 0));
    const inSession = await bareSession(bare.mcp);
    const mcpBare = await timed(CALLS, () => post(inSession, toolCall("tool_0", {})));
    await post({ ...inSession, method: "DELETE" }, null);
    const httpBare = await timed(CALLS, () => bareHttp(bare.http));
    return {
      list_p50_ms: p50(lists.taken),
      list_p99_ms: quantile(lists.taken, 0.99),
      list_cpu_ms: lists.cpu,
      mcp_p50_ms: p50(mcp.taken),
      mcp_added_ms: p50(mcp.taken) - p50(mcpBare),
      mcp_cpu_ms: mcp.cpu,
      http_p50_ms: p50(http.taken),
      http_added_ms: p50(http.taken) - p50(httpBare),
      http_cpu_ms: http.cpu,
    };
  } finally {
    await Promise.all([bare.mcp.close(), bare.http.close()]);
  }
};

/** Calls at once over these connectors, spread over the sessions. @returns the ms of those that were answered */
const atOnce = async (
  stage: Stage,
  connectors: readonly number[],
  answers: number,
): Promise<readonly number[]> => {
  const calls = connectors.flatMap((index) => Array.from({ length: AT_ONCE }, () => index));
  const taken: number[] = [];
  const { promise: enough, resolve, reject } = Promise.withResolvers<void>();
  for (const [number, index] of calls.entries()) {
    const from = performance.now();
    void called(stage, index, number % SESSIONS).then(() => {
      taken.push(performance.now() - from);
      if (taken.length === answers) resolve();
    }, reject);
  }
  await enough;
  return taken;
};

const WELL = Array.from({ length: CONNECTORS - HANGING }, (_, index) => index);
const ALL = Array.from({ length: CONNECTORS }, (_, index) => index);

/** The hanging calls come first, so that they are under way before the others. */
const crowd = async (stage: Stage) => {
  const answers = WELL.length * AT_ONCE;
  const alone = await atOnce(stage, WELL, answers);
  const beside = await atOnce(stage, ALL.toReversed(), answers);
  const list = { pool: stage.gateway, target: stage.target, token: stage.tokens[0] ?? "" };
  const lists = await timed(LISTS_BESIDE, () => post(list, { id: 1, method: "tools/list" }));
  return {
    alone_p99_ms: quantile(alone, 0.99),
    beside_p99_ms: quantile(beside, 0.99),
    list_beside_p99_ms: quantile(lists, 0.99),
  };
};

type Figures = Readonly<Record<string, number>>;

const medianOf = (all: readonly Figures[]): Figures => {
  const names = Object.keys(all[0] ?? {});
  return Object.fromEntries(
    names.map((name) => [
      name,
      Math.round(
        quantile(
          all.map((one) => one[name] ?? Number.NaN),
          0.5,
        ) * 10,
      ) / 10,
    ]),
  );
};

/** One round on a service of its own: a connector counts the calls of the last minute. */
const round = async (): Promise<Figures> => {
  const server = await startPostgres();
  const installation = await Installation.open();
  const farm = await DaemonFarm.start(installation.directory);
  const upstreams = await startServer<Ports>("executor/upstreams.ts");
  try {
    const life = await installation.start({
      ...settingsFor(SESSIONS),
      ...farm.settings,
      DATABASE_URL: server.url,
      PLATFORM_CONNECTOR_ALLOW_HOSTS: "127.0.0.1",
    });
    const ports = upstreams;
    const manifest = ALL.map((index) => entry(index, ports)).join("\n");
    const pid = await connect(life, await installation.repository(manifest));
    const tokens = await tokensFor(server.url, await begin(life, pid, SESSIONS));
    const gateway = new Pool(life.url, { connections: 250 });
    const stage = { pid: life.pid, gateway, target: `/v1/projects/${pid}/executor/mcp`, tokens, ports };
    const figures = { ...(await oneByOne(stage)), ...(await crowd(stage)) };
    await gateway.destroy();
    await life.end("SIGTERM");
    return figures;
  } finally {
    upstreams.close();
    await farm.end();
    await installation.close();
    await server.close();
  }
};

const all: Figures[] = [];
for (let number = 1; number <= rounds; number += 1) {
  // eslint-disable-next-line no-await-in-loop -- one round after the other
  const figures = await round();
  all.push(figures);
  process.stdout.write(`round ${number}: ${JSON.stringify(medianOf([figures]))}\n`);
}
process.stdout.write(`${JSON.stringify({ rounds, connectors: CONNECTORS, ...medianOf(all) })}\n`);
