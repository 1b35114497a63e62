/** Medians, ratios and how they are printed. */
import { median, rounded } from "../figures.ts";
import type { Name } from "./contenders.ts";

/** What one round of one proxy came to; of a direct connection there is no CPU time of a proxy. */
export interface Measure {
  readonly perSecond: number;
  readonly cpuUs: number;
  readonly failed: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly downMibPerSecond: number;
  readonly downCpuMs: number;
  readonly upMibPerSecond: number;
  readonly upCpuMs: number;
}

/** One round of idle connections. */
export interface Idle {
  readonly sseBytesEach: number;
  readonly sseAlive: number;
  readonly webSocketBytesEach: number;
  readonly webSocketAlive: number;
}

export type Contender = Name | "direct";
export type Round = Readonly<Record<Contender, Measure>>;
export type IdleRound = Readonly<Record<Name, Idle>>;

/** The aims: they are printed beside the measured values and never asserted. */
const AIMS = {
  cpu_to_nginx_max: 2.2,
  cpu_to_library_max: 1,
  rate_to_nginx_min: 0.8,
  idle_bytes_max: 30_000,
} as const;

const measureOf = (rounds: readonly Round[], name: Contender) => {
  const of = (figure: (measure: Measure) => number): number =>
    rounded(median(rounds.map((round) => figure(round[name]))));
  const added = (figure: (measure: Measure) => number): number =>
    Math.round(median(rounds.map((round) => figure(round[name]) - figure(round.direct))));
  return {
    per_second: Math.round(of(({ perSecond }) => perSecond)),
    cpu_us: of(({ cpuUs }) => cpuUs),
    failed: rounds.reduce((sum, round) => sum + round[name].failed, 0),
    added_p50_us: added(({ p50Us }) => p50Us),
    added_p99_us: added(({ p99Us }) => p99Us),
    down_mib_per_second: Math.round(of(({ downMibPerSecond }) => downMibPerSecond)),
    down_cpu_ms: Math.round(of(({ downCpuMs }) => downCpuMs)),
    up_mib_per_second: Math.round(of(({ upMibPerSecond }) => upMibPerSecond)),
    up_cpu_ms: Math.round(of(({ upCpuMs }) => upCpuMs)),
  };
};

const idleOf = (rounds: readonly IdleRound[], name: Name) => {
  const of = (figure: (idle: Idle) => number): number =>
    Math.round(median(rounds.map((round) => figure(round[name]))));
  return {
    sse_bytes_each: of(({ sseBytesEach }) => sseBytesEach),
    sse_alive: of(({ sseAlive }) => sseAlive),
    websocket_bytes_each: of(({ webSocketBytesEach }) => webSocketBytesEach),
    websocket_alive: of(({ webSocketAlive }) => webSocketAlive),
  };
};

/** Medians of the rounds; a ratio is taken within each round, and its median is what counts. */
export const summary = (rounds: readonly Round[], idle: readonly IdleRound[]) => {
  const ratio = (to: Contender, figure: (measure: Measure) => number): number =>
    rounded(median(rounds.map((round) => figure(round.ours) / figure(round[to]))));
  return {
    direct: measureOf(rounds, "direct"),
    nginx: { ...measureOf(rounds, "nginx"), ...idleOf(idle, "nginx") },
    undici: { ...measureOf(rounds, "undici"), ...idleOf(idle, "undici") },
    ours: { ...measureOf(rounds, "ours"), ...idleOf(idle, "ours") },
    ratios: {
      cpu_to_nginx: ratio("nginx", ({ cpuUs }) => cpuUs),
      cpu_to_undici: ratio("undici", ({ cpuUs }) => cpuUs),
      down_to_nginx: ratio("nginx", ({ downMibPerSecond }) => downMibPerSecond),
      up_to_nginx: ratio("nginx", ({ upMibPerSecond }) => upMibPerSecond),
      down_to_direct: ratio("direct", ({ downMibPerSecond }) => downMibPerSecond),
      up_to_direct: ratio("direct", ({ upMibPerSecond }) => upMibPerSecond),
    },
    aims: AIMS,
  };
};

type Summary = ReturnType<typeof summary>;

const HEADINGS = ["req/s", "CPU µs", "+p50 µs", "+p99 µs", "down MiB/s", "CPU ms", "up MiB/s", "CPU ms"];
const IDLE_HEADINGS = ["SSE B", "alive", "WS B", "alive"];
const WIDTHS = [9, 9, 10, 10, 12, 9, 10, 9, 9, 7, 9, 7] as const;

const line = (name: string, cells: readonly (string | number)[]): string =>
  `  ${name.padEnd(18)}${cells.map((cell, index) => String(cell).padStart(WIDTHS[index] ?? 0)).join("")}\n`;

const cells = (measure: Summary["direct"]): readonly number[] => [
  measure.per_second,
  measure.cpu_us,
  measure.added_p50_us,
  measure.added_p99_us,
  measure.down_mib_per_second,
  measure.down_cpu_ms,
  measure.up_mib_per_second,
  measure.up_cpu_ms,
];

const idleCells = (idle: Summary["ours"]): readonly number[] => [
  idle.sse_bytes_each,
  idle.sse_alive,
  idle.websocket_bytes_each,
  idle.websocket_alive,
];

/** The table, and each aim beside what came out. */
export const table = (figures: Summary, count: number): string => {
  const { direct, nginx, undici, ours, ratios } = figures;
  const streams = Math.min(ours.sse_alive, ours.websocket_alive);
  return [
    line("", [...HEADINGS, ...IDLE_HEADINGS]),
    line("direct", cells(direct)),
    line("nginx, no check", [...cells(nginx), ...idleCells(nginx)]),
    line("undici's dispatch", [...cells(undici), ...idleCells(undici)]),
    line("ours", [...cells(ours), ...idleCells(ours)]),
    `  CPU a request to nginx ${ratios.cpu_to_nginx} × (aim: at most ${AIMS.cpu_to_nginx_max}), ` +
      `to undici's dispatch ${ratios.cpu_to_undici} × (aim: not behind)\n`,
    `  100 MiB down ${ratios.down_to_nginx} × nginx's rate, up ${ratios.up_to_nginx} × (aim: ${AIMS.rate_to_nginx_min})\n`,
    `  ${streams} of ${count} idle connections alive (aim: all) at ${ours.sse_bytes_each} B a stream and ` +
      `${ours.websocket_bytes_each} B a WebSocket (aim: under ${AIMS.idle_bytes_max} B)\n`,
  ].join("");
};
