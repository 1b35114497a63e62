/**
 * `npm run bench:sessions [-- --stopped 98000 --live 2000 --starts 5]`: the cost of a service whose table is full of
 * sessions, beside the same service with an empty one, in the same run by turns.
 *
 * Each is the real program on its embedded database, with simulated sandboxes. A start is measured from spawning the
 * process to its `ready` line, with the CPU time that the process took for it. Memory is the process's RSS at rest,
 * before and after a garbage collection, and the heap in use at that time. Both get `live` sessions through the API.
 * The figure per session is the growth during the second half of them, after their idle actors have left memory.
 * Last, the service is killed with all of them live and started again: their simulated sandboxes died with it, so
 * each session is found lost. The benchmark measures and judges nothing; its last line is one JSON object.
 */
import { existsSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Installation, type Life } from "../support/service/process-service.ts";
import { median } from "./figures.ts";
import { begin, has } from "./sessions/begin.ts";
import { addStopped } from "./sessions/rows.ts";

const { values } = parseArgs({
  options: {
    stopped: { type: "string", default: "98000" },
    live: { type: "string", default: "2000" },
    starts: { type: "string", default: "5" },
  },
});
const [stopped, live, starts] = [Number(values.stopped), Number(values.live), Number(values.starts)];

const SETTINGS = {
  PLATFORM_SANDBOX_PROVIDER: "simulated",
  PLATFORM_DEFAULT_TIER: "enterprise",
  PLATFORM_TIER_CAPS: JSON.stringify({ enterprise: live + 1 }),
  // Soon enough to be seen; longer than a session takes to start.
  PLATFORM_ACTOR_IDLE_MS: "5000",
} as const;
const TICKS_PER_SECOND = 100;
/** At rest: so many looks in a row without the process taking CPU time worth mentioning. */
const QUIET_LOOKS = 5;
const QUIET_TICKS = 20;

const fieldsOf = (pid: number): readonly string[] => {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  return text.slice(text.lastIndexOf(")") + 2).split(" ");
};
/** CPU time that the process took so far, in ticks. */
const ticksOf = (pid: number): number => Number(fieldsOf(pid)[11]) + Number(fieldsOf(pid)[12]);
const rssOf = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;

const megabytes = (bytes: number): number => Math.round(bytes / 1e5) / 10;

const memoryFile = ({ directory }: Installation): string => path.join(directory, "memory.json");
const COLLECTED = path.join(import.meta.dirname, "sessions/collected.ts");

/* oxlint-disable no-await-in-loop -- the measured program has the machine for itself */
/** What the process holds when it has nothing left to do: as it is then, and when it has collected its garbage. */
const atRest = async (life: Life, installation: Installation): Promise<Memory> => {
  let [quiet, ticks] = [0, ticksOf(life.pid)];
  while (quiet < QUIET_LOOKS) {
    await delay(2_000);
    const now = ticksOf(life.pid);
    quiet = now - ticks <= QUIET_TICKS ? quiet + 1 : 0;
    ticks = now;
  }
  const rss = rssOf(life.pid);
  const answer = memoryFile(installation);
  rmSync(answer, { force: true });
  process.kill(life.pid, "SIGUSR2");
  while (!existsSync(answer)) await delay(50);
  // The file is whole by then, and pages that were let go are the system's again.
  await delay(3_000);
  const { heapUsed } = JSON.parse(readFileSync(answer, "utf8")) as { readonly heapUsed: number };
  return { rss, collected: rssOf(life.pid), heap: heapUsed };
};

interface Memory {
  readonly rss: number;
  readonly collected: number;
  readonly heap: number;
}

interface Start {
  readonly life: Life;
  readonly readyMs: number;
  readonly cpuMs: number;
}

const started = async (installation: Installation): Promise<Start> => {
  const begun = performance.now();
  const life = await installation.start({
    ...SETTINGS,
    NODE_OPTIONS: `--expose-gc --import=${COLLECTED}`,
    BENCH_MEMORY: memoryFile(installation),
  });
  const readyMs = performance.now() - begun;
  return { life, readyMs, cpuMs: (ticksOf(life.pid) / TICKS_PER_SECOND) * 1000 };
};

interface Contender {
  readonly name: string;
  readonly installation: Installation;
  readonly projectId: string;
  readonly starts: Start[];
}

const prepared = async (name: string, rows: number): Promise<Contender> => {
  const installation = await Installation.open();
  const { life } = await started(installation);
  const projectId = await life.project(installation.sample);
  await begin(life, projectId, 1);
  const [session] = await life.everyPage<{ readonly id: string }>(
    `/v1/projects/${projectId}/sessions`,
    "sessions",
  );
  await life.call("POST", `/v1/projects/${projectId}/sessions/${session?.id}/stop`);
  await life.end("SIGTERM");
  if (rows > 0) await addStopped(installation.dataDir, session?.id ?? "", rows);
  return { name, installation, projectId, starts: [] };
};

const measured = async ({ name, installation, projectId, starts: all }: Contender) => {
  const { life } = await started(installation);
  const empty = await atRest(life, installation);
  // The first sessions also compile and open shared things; only the later ones show the cost of one session.
  const first = Math.floor(live / 2);
  await begin(life, projectId, first);
  const half = await atRest(life, installation);
  await begin(life, projectId, live - first);
  const full = await atRest(life, installation);
  await life.end("SIGKILL");
  const begun = performance.now();
  const again = await started(installation);
  while (await has(again.life, `/v1/projects/${projectId}/sessions`, "running")) await delay(200);
  const settledMs = performance.now() - begun;
  await again.life.end("SIGTERM");
  const figures = {
    ready_ms: Math.round(median(all.map(({ readyMs }) => readyMs))),
    ready_cpu_ms: Math.round(median(all.map(({ cpuMs }) => cpuMs))),
    rest_mb: megabytes(empty.rss),
    rest_collected_mb: megabytes(empty.collected),
    rest_heap_mb: megabytes(empty.heap),
    live_mb: megabytes(full.rss),
    live_collected_mb: megabytes(full.collected),
    live_heap_mb: megabytes(full.heap),
    half_heap_mb: megabytes(half.heap),
    half_collected_mb: megabytes(half.collected),
    heap_kb_per_live_session: Math.round((full.heap - half.heap) / (live - first) / 100) / 10,
    ready_after_kill_ms: Math.round(again.readyMs),
    settled_after_kill_ms: Math.round(settledMs),
  };
  process.stdout.write(`${name}: ${JSON.stringify(figures)}\n`);
  return figures;
};

const contenders = [await prepared("empty", 0), await prepared("full", stopped)] as const;
try {
  for (let round = 0; round < starts; round += 1) {
    for (const contender of contenders) {
      const start = await started(contender.installation);
      contender.starts.push(start);
      await start.life.end("SIGTERM");
    }
  }
  const [empty, full] = [await measured(contenders[0]), await measured(contenders[1])];
  process.stdout.write(`${JSON.stringify({ stopped, live, starts, empty, full })}\n`);
} finally {
  for (const { installation } of contenders) await installation.close();
}
