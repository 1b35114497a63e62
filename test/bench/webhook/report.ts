/** Medians, ratios and how they are printed. */
import type { Inserts } from "./pgbench.ts";
import { median } from "../reads/report.ts";

/** What one round of a receiver came to. */
export interface Measure {
  readonly perSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly maxUs: number;
  /** CPU time of the receiver and of Postgres, in µs for each 202. */
  readonly cpuUs: number;
  readonly postgresCpuUs: number;
  readonly generatorCpuUs: number;
  /** Answers that were no 202, by status. */
  readonly refused: Readonly<Record<string, number>>;
  readonly disconnected: number;
}

/** One round over one number of connections: all contenders, one after another. */
export interface Round {
  readonly ours: Measure;
  /** The service whose webhooks start sessions. */
  readonly starting: Measure;
  readonly bare: Measure;
  readonly noDatabase: Measure;
  readonly inserts: Inserts;
}

const medianOf =
  (rounds: readonly Round[]) =>
  (figure: (round: Round) => number): number =>
    median(rounds.map(figure));

const rounded = (value: number): number => Number(value.toFixed(2));

const counted = (counts: readonly Readonly<Record<string, number>>[]): Record<string, number> => {
  const sum: Record<string, number> = {};
  for (const count of counts)
    for (const [name, value] of Object.entries(count)) sum[name] = (sum[name] ?? 0) + value;
  return sum;
};

const receiver = (measures: readonly Measure[]) => {
  const of = (figure: (measure: Measure) => number): number => Math.round(median(measures.map(figure)));
  return {
    per_second: of(({ perSecond }) => perSecond),
    p50_us: of(({ p50Us }) => p50Us),
    p99_us: of(({ p99Us }) => p99Us),
    max_us: of(({ maxUs }) => maxUs),
    cpu_us: of(({ cpuUs }) => cpuUs),
    postgres_cpu_us: of(({ postgresCpuUs }) => postgresCpuUs),
    generator_cpu_us: of(({ generatorCpuUs }) => generatorCpuUs),
    refused: counted(measures.map(({ refused }) => refused)),
    disconnected: measures.reduce((sum, { disconnected }) => sum + disconnected, 0),
  };
};

/** Medians of the rounds; a ratio is taken within each round, and its median is what counts. */
export const summary = (
  rounds: readonly Round[],
  { connections, clients }: { readonly connections: number; readonly clients: number },
) => {
  const of = medianOf(rounds);
  return {
    connections,
    pgbench_clients: clients,
    ours: receiver(rounds.map(({ ours }) => ours)),
    starting: receiver(rounds.map(({ starting }) => starting)),
    bare: receiver(rounds.map(({ bare }) => bare)),
    no_database: receiver(rounds.map(({ noDatabase }) => noDatabase)),
    inserts_per_second: Math.round(of(({ inserts }) => inserts.perSecond)),
    inserts_p50_us: Math.round(of(({ inserts }) => inserts.p50Us)),
    inserts_p99_us: Math.round(of(({ inserts }) => inserts.p99Us)),
    ratios: {
      rate_to_bare: rounded(of(({ ours, bare }) => ours.perSecond / bare.perSecond)),
      rate_to_no_database: rounded(of(({ ours, noDatabase }) => ours.perSecond / noDatabase.perSecond)),
      rate_to_inserts: rounded(of(({ ours, inserts }) => ours.perSecond / inserts.perSecond)),
      p99_to_bare: rounded(of(({ ours, bare }) => ours.p99Us / bare.p99Us)),
      p99_to_inserts: rounded(of(({ ours, inserts }) => ours.p99Us / inserts.p99Us)),
      cpu_to_bare: rounded(of(({ ours, bare }) => ours.cpuUs / bare.cpuUs)),
      cpu_with_postgres_to_bare: rounded(
        of(({ ours, bare }) => (ours.cpuUs + ours.postgresCpuUs) / (bare.cpuUs + bare.postgresCpuUs)),
      ),
      starting_rate_to_bare: rounded(of(({ starting, bare }) => starting.perSecond / bare.perSecond)),
      starting_p99_to_bare: rounded(of(({ starting, bare }) => starting.p99Us / bare.p99Us)),
      starting_rate_to_inserts: rounded(
        of(({ starting, inserts }) => starting.perSecond / inserts.perSecond),
      ),
      starting_cpu_with_postgres_to_bare: rounded(
        of(
          ({ starting, bare }) =>
            (starting.cpuUs + starting.postgresCpuUs) / (bare.cpuUs + bare.postgresCpuUs),
        ),
      ),
    },
  };
};

type Summary = ReturnType<typeof summary>;
type ReceiverSummary = Summary["ours"];

const HEADINGS = ["202/s", "p50 ms", "p99 ms", "max ms", "CPU µs", "Postgres µs", "generator µs", "other"];
const WIDTHS = [9, 9, 9, 9, 9, 13, 14, 8] as const;

const line = (name: string, cells: readonly string[]): string =>
  `  ${name.padEnd(26)}${cells.map((cell, index) => cell.padStart(WIDTHS[index] ?? 0)).join("")}\n`;

const cells = (figures: ReceiverSummary): readonly string[] => [
  String(figures.per_second),
  ...[figures.p50_us, figures.p99_us, figures.max_us].map((us) => (us / 1000).toFixed(2)),
  ...[figures.cpu_us, figures.postgres_cpu_us, figures.generator_cpu_us].map(String),
  String(Object.values(figures.refused).reduce((sum, count) => sum + count, figures.disconnected)),
];

/** The table of one number of connections; `inserts` names who made the plain inserts. */
export const table = (connections: number, inserts: string, figures: Summary): string => {
  const { ratios } = figures;
  return [
    `${connections} connections\n`,
    line("", HEADINGS),
    line("the service, queued", cells(figures.ours)),
    line("the service, started", cells(figures.starting)),
    line("(a) bare, one insert each", cells(figures.bare)),
    line("(b) bare, no database", cells(figures.no_database)),
    line(`(c) ${inserts}`, [
      String(figures.inserts_per_second),
      (figures.inserts_p50_us / 1000).toFixed(2),
      (figures.inserts_p99_us / 1000).toFixed(2),
    ]),
    `  queued to (a) ${ratios.rate_to_bare} ×, to (b) ${ratios.rate_to_no_database} ×, to (c) ${ratios.rate_to_inserts} ×; ` +
      `p99 to (a) ${ratios.p99_to_bare} ×, to (c) ${ratios.p99_to_inserts} ×; CPU a request ${ratios.cpu_to_bare} ×, with Postgres' ${ratios.cpu_with_postgres_to_bare} ×\n`,
    `  started to (a) ${ratios.starting_rate_to_bare} ×, to (c) ${ratios.starting_rate_to_inserts} ×; p99 to (a) ${ratios.starting_p99_to_bare} ×; ` +
      `CPU a request with Postgres' ${ratios.starting_cpu_with_postgres_to_bare} ×\n`,
  ].join("");
};
