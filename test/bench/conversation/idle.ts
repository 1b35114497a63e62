/** What live sessions cost that rest: with followed conversations, beside the same sessions with silent twins. */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { DaemonFarm } from "../../support/servers/daemon-farm.ts";
import { Installation } from "../../support/service/process-service.ts";
import { begin } from "../sessions/begin.ts";
import { childrenOf, cpuMsOf } from "../webhook/processes.ts";
import { spread, type Spread } from "./figures.ts";
import { openConversations } from "./readers.ts";

/** Idle actors leave memory after this time. The pause before a measurement is longer. */
const ACTOR_IDLE_MS = 5_000;
const SETTLE_MS = 15_000;

export const settingsFor = (sessions: number) => ({
  PLATFORM_SANDBOX_PROVIDER: "simulated",
  PLATFORM_DEFAULT_TIER: "enterprise",
  PLATFORM_TIER_CAPS: JSON.stringify({ enterprise: sessions + 1 }),
  PLATFORM_ACTOR_IDLE_MS: String(ACTOR_IDLE_MS),
});

const pssOf = (pid: number): number =>
  Number(/^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1]) * 1024;

/** CPU seconds a minute: of the service alone, and of its Postgres. */
interface Cpu {
  readonly service: Spread;
  readonly postgres: Spread;
}

interface Windows {
  readonly windows: number;
  readonly windowMs: number;
}

const cpuOf = async (pid: number, { windows, windowMs }: Windows): Promise<Cpu> => {
  const [service, postgres]: [number[], number[]] = [[], []];
  const look = () => {
    const below = childrenOf(pid).reduce((sum, child) => sum + cpuMsOf(child), 0);
    return { own: cpuMsOf(pid) - below, below };
  };
  for (let number = 0; number < windows; number += 1) {
    const before = look();
    await delay(windowMs);
    const after = look();
    const aMinute = (ms: number) => (ms / 1000) * (60_000 / windowMs);
    service.push(aMinute(after.own - before.own));
    postgres.push(aMinute(after.below - before.below));
  }
  return { service: spread(service), postgres: spread(postgres) };
};

interface Rest {
  readonly cpu: Cpu;
  readonly heapMb: number;
  readonly pssMb: number;
}

export interface Idle {
  readonly empty: Rest;
  readonly half: Rest;
  readonly full: Rest;
  /** The same with readers of the first conversations' events. */
  readonly read: Rest;
  /** Growth during the second half of the sessions. */
  readonly heapKbASession: number;
  readonly pssKbASession: number;
}

const kilobytes = (megabytes: number): number => Math.round(megabytes * 10_000) / 10;

/** @param farm whether the conversations are followed, each over a unix socket of its own. */
export const idle = async (
  { sessions, readers, ...windows }: Windows & { readonly sessions: number; readonly readers: number },
  isFollowed: boolean,
): Promise<Idle> => {
  const installation = await Installation.open();
  const farm = isFollowed ? await DaemonFarm.start(installation.directory) : null;
  const life = await installation.start({ ...settingsFor(sessions), ...farm?.settings }, "measured");
  const rest = async (): Promise<Rest> => {
    await delay(SETTLE_MS);
    const cpu = await cpuOf(life.pid, windows);
    await life.memory();
    const { heapUsed } = await life.memory();
    return { cpu, heapMb: heapUsed / 1e6, pssMb: pssOf(life.pid) / 1e6 };
  };
  try {
    const projectId = await life.project(installation.sample);
    const empty = await rest();
    const first = Math.floor(sessions / 2);
    const ids = [...(await begin(life, projectId, first))];
    const half = await rest();
    ids.push(...(await begin(life, projectId, sessions - first)));
    const full = await rest();
    const open = await openConversations(life, projectId, ids.slice(0, readers));
    const read = await rest();
    for (const { close } of open) close();
    return {
      empty,
      half,
      full,
      read,
      heapKbASession: kilobytes((full.heapMb - half.heapMb) / (sessions - first)),
      pssKbASession: kilobytes((full.pssMb - half.pssMb) / (sessions - first)),
    };
  } finally {
    await life.end("SIGTERM");
    await farm?.end();
    await installation.close();
  }
};
