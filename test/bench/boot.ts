/**
 * `npm run bench:boot [-- --boots 20 --providers local,gvisor,docker --pool 10 --creates 20 --crowd 32]`: from an accepted session to a
 * running one, step by step (boot/cold.ts), beside a bare `git clone` and a bare `opencode serve` on the same machine in the same run.
 *
 * Each provider has a service of its own, one after the other. A provider that this machine cannot start is left out and named. In each
 * round, a session boots and is taken away. When nothing of its sandbox is left, the bare clone and the bare runtime take their turns. The
 * bare runtime is probed as the daemon probes its own. Then sessions start in sandboxes that waited for them, and one such sandbox's
 * memory is read. A first round warms everything up and is not counted.
 *
 * The first provider's service also gets `--creates` sessions at once on a pool of `--pool` waiting sandboxes, or as many as the free
 * memory allows; and `--crowd` boots at once, with the usual limit of concurrent boots and without one, while a session is asked for
 * every 20 ms. 0 leaves either out.
 *
 * It measures and judges nothing. The last line is one JSON object.
 */
import { availableParallelism, loadavg } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { WARM_MB } from "../../src/services/warm-pool.ts";
import { freePort } from "../support/machine/free-port.ts";
import { Installation } from "../support/service/process-service.ts";
import { bareClone, bareRuntime } from "./boot/bare.ts";
import { type Boot, coldBoot, coldFigures, type Measured } from "./boot/cold.ts";
import { bootsAtOnce, type CrowdFigures } from "./boot/crowd.ts";
import { P95_LEAST } from "./boot/figures.ts";
import { placeOf, stopWhole } from "./boot/places.ts";
import { createsAtOnce, poolFor, type PoolFigures, sandboxesInMemory } from "./boot/pool.ts";
import { type Opened, openProvider, type ProviderName, providersOf } from "./boot/providers.ts";
import { tellCrowd, tellPool, tellProvider } from "./boot/report.ts";
import { idleMemory, WAITING, warmBoots, warmFigures } from "./boot/warm.ts";
import { wholeFrom1 } from "./options.ts";

const { values } = parseArgs({
  options: {
    boots: { type: "string", default: "20" },
    providers: { type: "string", default: "local,gvisor,docker" },
    pool: { type: "string", default: "10" },
    creates: { type: "string", default: "20" },
    crowd: { type: "string", default: "32" },
  },
});
const boots = wholeFrom1("boots", values.boots);
const providers = providersOf(values.providers);
const creates = wholeFrom1("creates", values.creates);
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

interface Found {
  readonly cold: ReturnType<typeof coldFigures>;
  readonly warm_ms: ReturnType<typeof warmFigures>;
  readonly idle_warm: Awaited<ReturnType<typeof idleMemory>>;
  readonly pool: PoolFigures | null;
  readonly crowd: CrowdFigures | null;
  readonly crowd_unlimited: CrowdFigures | null;
}

/** Cold boots in turns with the bare clone and the bare runtime. */
const coldRounds = async (measured: Measured, projectId: string, repository: string) => {
  const rounds = { ours: [] as Boot[], clones: [] as number[], runtimes: [] as number[] };
  for (let round = 0; round <= boots; round += 1) {
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

const measure = async (
  { settings }: Opened,
  { hasCrowds, pool }: { readonly hasCrowds: boolean; readonly pool: number },
): Promise<Found> => {
  const installation = await Installation.open();
  const budget = { PLATFORM_WARM_MEMORY_MB: String(Math.max(pool, WAITING) * WARM_MB) };
  let measured = await start(installation, { ...settings, ...budget });
  try {
    const projectId = await measured.life.project(installation.sample);
    const repository = path.join(installation.dataDir, "repositories", `${projectId}.git`);
    const { id: asked, place } = await stoppedSession(measured, projectId);
    const cold = await coldRounds(measured, projectId, repository);
    const idle = await idleMemory(installation, measured.life, place);
    const warm = await warmBoots(installation, measured.life, { count: boots, place });
    const pooled =
      pool === 0
        ? null
        : await createsAtOnce(installation, measured.life, { pool, wanted: wantedPool, creates });
    const crowd = hasCrowds ? await crowdOn(measured, projectId, asked) : null;
    await measured.life.end("SIGTERM");
    let unlimited: CrowdFigures | null = null;
    if (crowd !== null) {
      measured = await start(installation, { ...settings, PLATFORM_BOOTS_AT_ONCE: String(UNLIMITED_BOOTS) });
      unlimited = await crowdOn(measured, projectId, asked);
    }
    return {
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
if (boots < P95_LEAST) say(`with ${boots} boots, p95 is the longest one`);
const found: Partial<Record<ProviderName, Omit<Found, "pool" | "crowd" | "crowd_unlimited"> | null>> = {};
const leftOut: Partial<Record<ProviderName, string>> = {};
let crowds: Pick<Found, "pool" | "crowd" | "crowd_unlimited"> | null = null;
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
    const isFirst = crowds === null;
    const pool = isFirst ? poolFor(wantedPool, creates) : 0;
    const { cold, warm_ms, idle_warm, ...many } = await measure(opened, { hasCrowds: isFirst, pool });
    found[name] = { cold, warm_ms, idle_warm };
    say(tellProvider(name, { cold, warm_ms, idle_warm }));
    if (!isFirst) continue;
    crowds = many;
    if (wantedPool > 0 && pool === 0) say(`the free memory allows no pool beside ${creates} creates`);
    if (many.pool !== null) say(tellPool(many.pool));
    if (many.crowd !== null) say(tellCrowd("the usual limit of boots at once", many.crowd));
    if (many.crowd_unlimited !== null) say(tellCrowd("no limit of boots at once", many.crowd_unlimited));
  } finally {
    await opened.close();
  }
}
say(JSON.stringify({ boots, load, providers: found, left_out: leftOut, ...crowds }));
