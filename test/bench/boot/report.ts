/** How the figures are printed. */
import type { coldFigures } from "./cold.ts";
import type { CrowdFigures } from "./crowd.ts";
import { P95_LEAST, told } from "./figures.ts";
import type { PoolFigures } from "./pool.ts";
import type { ProviderName } from "./providers.ts";
import type { idleMemory, warmFigures } from "./warm.ts";

export interface ProviderFigures {
  readonly boots: number;
  readonly cold: ReturnType<typeof coldFigures>;
  readonly warm_ms: ReturnType<typeof warmFigures>;
  readonly idle_warm: Awaited<ReturnType<typeof idleMemory>>;
}

/** The aims. PID 1 and `runtime started` in ms since the session was accepted. */
export const AIMS = {
  pid1: { local: 60, gvisor: 350, docker: null },
  runtime_started: 110,
  over_the_longer_one: 100,
} as const;

export const tellProvider = (
  name: ProviderName,
  { boots, cold, warm_ms: warm, idle_warm: idle }: ProviderFigures,
): string => {
  const { ms_since_accepted: ms, bare_ms: bare } = cold;
  const group = idle.group_mib === null ? "" : `, ${idle.group_mib} MiB in its control group`;
  const pid1 = AIMS.pid1[name];
  const few = boots < P95_LEAST ? ", so p95 is the longest one" : "";
  return [
    `${name} (${boots} boots${few}): accepted → PID 1 ${ms.pid1} ms${pid1 === null ? "" : ` (aim ${pid1})`} → daemon listens ${ms.listening} ms → runtime started ${ms.runtime_started} ms ` +
      `(aim ${AIMS.runtime_started}) → checked out ${ms.cloned} ms → runtime answers ${ms.runtime_ready} ms → running ${ms.running} ms (p95 ${cold.p95_ms_since_accepted.running})`,
    `  bare: git clone ${bare.clone} ms, opencode serve ${bare.runtime} ms; running after the longer one by ${cold.over_the_longer_one_ms} ms (aim ${AIMS.over_the_longer_one})`,
    `  in a sandbox that waited: running after ${warm.running_p50} ms (p95 ${warm.running_p95}), the runtime's first answer after ${warm.first_answer_p50} ms (p95 ${warm.first_answer_p95})`,
    `  one that waits holds ${idle.pss_mib} MiB (PSS of ${idle.processes} processes)${group}`,
  ].join("\n");
};

export const tellPool = ({ pool, wanted_pool: wanted, creates, claimed, started }: PoolFigures): string =>
  `${creates} creates at once on a pool of ${pool}${pool < wanted ? ` (memory allows no ${wanted})` : ""}: ` +
  `in a sandbox that waited ${told(claimed)}; in one of its own ${told(started)}`;

export const tellCrowd = (
  limit: string,
  { boots, all_running_s: seconds, service, bare }: CrowdFigures,
): string =>
  `${boots} boots with ${limit}, all running after ${seconds} s: GET of a session p50 ${service.p50_ms} ms, p99 ${service.p99_ms}, longest ${service.max_ms} ` +
  `(${service.longer_than_50_ms} of ${service.requests} longer than 50 ms); a bare server p50 ${bare.p50_ms} ms, p99 ${bare.p99_ms}, longest ${bare.max_ms}`;
