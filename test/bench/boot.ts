/**
 * `npm run bench:boot [-- --boots 20 --others 10 --providers local,gvisor,docker --pool 10 --creates 20 --crowd 32
 * --limits usual,none]`: from an accepted session to a running one, step by step (boot/cold.ts), beside a bare `git clone` and a bare `opencode serve` on the same machine in the same run.
 *
 * Each provider has a service of its own, one after the other. A provider that this machine cannot start is left out and named. In each
 * round, a session boots and is taken away. When its sandbox is gone, the bare clone and the bare runtime take their turns. The
 * bare runtime is probed as the daemon probes its own. Then sessions start in sandboxes that waited for them, and one such sandbox's
 * memory is read. A first round warms everything up and is not counted. The first provider has `--boots` rounds, and each other one `--others`.
 *
 * The first provider's service also gets `--creates` sessions at once on a pool of `--pool` waiting sandboxes, or as many as the free
 * memory allows; and `--crowd` boots at once, with the usual limit of concurrent boots and without one, while a session is asked for
 * every 20 ms. 0 leaves either out, and `--limits` one kind of crowd.
 *
 * It measures and judges nothing. The last line is one JSON object.
 */
import { availableParallelism, loadavg } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { WARM_MB } from "../../src/services/sessions/warm-pool.ts";
import { freePort } from "../support/machine/free-port.ts";
import { Installation } from "../support/service/process-service.ts";
import { bareClone, bareRuntime } from "./boot/bare.ts";
import { type Boot, coldBoot, coldFigures, type Measured } from "./boot/cold.ts";
import { bootsAtOnce, type CrowdFigures } from "./boot/crowd.ts";
import { placeOf, stopWhole } from "./boot/places.ts";
import { createsAtOnce, poolFor, type PoolFigures, sandboxesInMemory } from "./boot/pool.ts";
import { type Opened, openProvider, type ProviderName, providersOf } from "./boot/providers.ts";
import { type ProviderFigures, tellCrowd, tellPool, tellProvider } from "./boot/report.ts";
import { idleMemory, WAITING, warmBoots, warmFigures } from "./boot/warm.ts";
import { wholeFrom1 } from "./figures.ts";

const { values } = parseArgs({
  options: {
    boots: { type: "string", default: "20" },
    others: { type: "string", default: "10" },
    providers: { type: "string", default: "local,gvisor,docker" },
    pool: { type: "string", default: "10" },
    creates: { type: "string", default: "20" },
    crowd: { type: "string", default: "32" },
    limits: { type: "string", default: "usual,none" },
  },
});
const boots = wholeFrom1("boots", values.boots);
const others = wholeFrom1("others", values.others);
const providers = providersOf(values.providers);
const creates = wholeFrom1("creates", values.creates);
const limits = values.limits.split(",");
const [wantedPool, wantedCrowd] = [Number(values.pool), Number(values.crowd)];

/** More than one project may use, and than the crowd needs. */
const UNLIMITED_BOOTS = 10_000;

const say = (text: string): void => void process.stdout.write(`${text}\n`);

const start = async (
  installation: Installation,
  settings: Readonly<Record<string, string>>,
): Promise<Measured> => {
  const metricsPort = await freePort();
  const life = await installation.start({
    PLATFORM_METRICS_PORT: String(metricsPort),
    PLATFORM_TIER_CAPS: '{"free": 1000}',
    ...settings,
  });
  return { life, metricsPort };
};

/** A session of the project that has stopped, and the place of its sandbox. */
const stoppedSession = async ({ life }: Measured, projectId: string) => {
  const { id } = await life.call("POST", `/v1/projects/${projectId}/sessions`, {});
  const session = await life.session(projectId, String(id), ["running", "failed"]);
  if (session["status"] !== "running")
    throw new Error(`a boot failed: ${JSON.stringify(session["failure"])}`);
  const target = `/v1/projects/${projectId}/sessions/${String(id)}`;
  const sandbox = await life.call("GET", `${target}/sandbox`);
  const place = placeOf(String(sandbox["id"]));
  await stopWhole(life, target, place);
  return { id: String(id), place };
};

/** Of the first provider's service alone. */
interface Many {
  readonly pool: PoolFigures | null;
  readonly crowd: CrowdFigures | null;
  readonly crowd_unlimited: CrowdFigures | null;
}

interface Wish {
  readonly boots: number;
  readonly hasCrowds: boolean;
  readonly pool: number;
}

/** Cold boots in turns with the bare clone and the bare runtime. */
const coldRounds = async (
  measured: Measured,
  {
    projectId,
    repository,
    count,
  }: { readonly projectId: string; readonly repository: string; readonly count: number },
) => {
  const rounds = { ours: [] as Boot[], clones: [] as number[], runtimes: [] as number[] };
  for (let round = 0; round <= count; round += 1) {
    const [boot, clone, runtime] = [
      await coldBoot(measured, projectId),
      await bareClone(repository),
      await bareRuntime(),
    ];
    if (round === 0) continue;
    rounds.ours.push(boot);
    rounds.clones.push(clone);
    rounds.runtimes.push(runtime);
  }
  return coldFigures(rounds);
};

/** The crowd of boots that memory allows. Null: none is wanted. */
const crowdOn = async (
  measured: Measured,
  projectId: string,
  asked: string,
): Promise<CrowdFigures | null> => {
  const count = Math.min(wantedCrowd, sandboxesInMemory());
  return count === 0 ? null : bootsAtOnce(measured.life, { projectId, asked, count });
};

const measure = async ({ settings }: Opened, wish: Wish): Promise<ProviderFigures & Many> => {
  const installation = await Installation.open();
  const budget = { PLATFORM_WARM_MEMORY_MB: String(Math.max(wish.pool, WAITING) * WARM_MB) };
  let measured = await start(installation, { ...settings, ...budget });
  try {
    const projectId = await measured.life.project(installation.sample);
    const repository = path.join(installation.dataDir, "repositories", `${projectId}.git`);
    const { id: asked, place } = await stoppedSession(measured, projectId);
    const cold = await coldRounds(measured, { projectId, repository, count: wish.boots });
    const idle = await idleMemory(installation, measured.life, place);
    const warm = await warmBoots(installation, measured.life, { count: wish.boots, place });
    const pooled =
      wish.pool === 0
        ? null
        : await createsAtOnce(installation, measured.life, { pool: wish.pool, wanted: wantedPool, creates });
    const crowd =
      wish.hasCrowds && limits.includes("usual") ? await crowdOn(measured, projectId, asked) : null;
    await measured.life.end("SIGTERM");
    let unlimited: CrowdFigures | null = null;
    if (wish.hasCrowds && limits.includes("none")) {
      measured = await start(installation, { ...settings, PLATFORM_BOOTS_AT_ONCE: String(UNLIMITED_BOOTS) });
      unlimited = await crowdOn(measured, projectId, asked);
    }
    return {
      boots: wish.boots,
      cold,
      warm_ms: warmFigures(warm),
      idle_warm: idle,
      pool: pooled,
      crowd,
      crowd_unlimited: unlimited,
    };
  } finally {
    await measured.life.end("SIGTERM");
    await installation.close();
  }
};

const load = loadavg().map((value) => Math.round(value * 10) / 10);
say(`${availableParallelism()} cores, load ${load.join(" ")} at the start`);
const found: Partial<Record<ProviderName, ProviderFigures | null>> = {};
const leftOut: Partial<Record<ProviderName, string>> = {};
let many: Many | null = null;
for (const name of providers) {
  const opened = await openProvider(name);
  if (typeof opened === "string") {
    leftOut[name] = opened;
    // Null says that it was wanted and is not here.
    found[name] = null;
    say(`${name}: left out ${opened}`);
    continue;
  }
  try {
    const isFirst = many === null;
    const pool = isFirst ? poolFor(wantedPool, creates) : 0;
    const wish = { boots: isFirst ? boots : others, hasCrowds: isFirst, pool };
    const { pool: pooled, crowd, crowd_unlimited, ...figures } = await measure(opened, wish);
    found[name] = figures;
    say(tellProvider(name, figures));
    if (!isFirst) continue;
    many = { pool: pooled, crowd, crowd_unlimited };
    if (wantedPool > 0 && pool === 0) say(`the free memory allows no pool beside ${creates} creates`);
    if (pooled !== null) say(tellPool(pooled));
    if (crowd !== null) say(tellCrowd("the usual limit of boots at once", crowd));
    if (crowd_unlimited !== null) say(tellCrowd("no limit of boots at once", crowd_unlimited));
  } finally {
    await opened.close();
  }
}
say(JSON.stringify({ load, providers: found, left_out: leftOut, ...many }));
