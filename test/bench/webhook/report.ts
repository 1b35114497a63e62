/** Medians, ratios and how they are printed. */
import { median, rounded } from "../figures.ts";
import type { Inserts } from "./pgbench.ts";

/** What one round of a receiver came to. */
export interface Measure extends Inserts {
  readonly maxUs: number;
  /** CPU time of the receiver and of Postgres, in µs for each 202. */
  readonly cpuUs: number;
  readonly postgresCpuUs: number;
  readonly generatorCpuUs: number;
  /** Answers that were no 202, and connections that ended with a request on its way. */
  readonly refused: number;
}

/** One round over one number of connections: all contenders, one after another. */
export interface Round {
  readonly ours: Measure;
  /** The service whose webhooks start sessions. */
  readonly starting: Measure;
  readonly bare: Measure;
  readonly inserts: Inserts;
}

const whole = (values: readonly number[]): number => Math.round(median(values));

const inserted = (measures: readonly Inserts[]) => ({
  per_second: whole(measures.map(({ perSecond }) => perSecond)),
  p50_us: whole(measures.map(({ p50Us }) => p50Us)),
  p99_us: whole(measures.map(({ p99Us }) => p99Us)),
});

const received = (measures: readonly Measure[]) => ({
  ...inserted(measures),
  max_us: whole(measures.map(({ maxUs }) => maxUs)),
  cpu_us: whole(measures.map(({ cpuUs }) => cpuUs)),
  postgres_cpu_us: whole(measures.map(({ postgresCpuUs }) => postgresCpuUs)),
  generator_cpu_us: whole(measures.map(({ generatorCpuUs }) => generatorCpuUs)),
  refused: measures.reduce((sum, { refused }) => sum + refused, 0),
});

const cpu = ({ cpuUs, postgresCpuUs }: Measure): number => cpuUs + postgresCpuUs;

/** Medians of the rounds; a ratio is taken within each round, and its median is what counts. */
export const summary = (rounds: readonly Round[], connections: number) => {
  const ratio = (of: (round: Round) => number): number => rounded(median(rounds.map(of)));
  return {
    connections,
    ours: received(rounds.map(({ ours }) => ours)),
    starting: received(rounds.map(({ starting }) => starting)),
    bare: received(rounds.map(({ bare }) => bare)),
    inserts: inserted(rounds.map(({ inserts }) => inserts)),
    ratios: {
      rate_to_bare: ratio(({ ours, bare }) => ours.perSecond / bare.perSecond),
      rate_to_inserts: ratio(({ ours, inserts }) => ours.perSecond / inserts.perSecond),
      p99_to_bare: ratio(({ ours, bare }) => ours.p99Us / bare.p99Us),
      p99_to_inserts: ratio(({ ours, inserts }) => ours.p99Us / inserts.p99Us),
      cpu_with_postgres_to_bare: ratio(({ ours, bare }) => cpu(ours) / cpu(bare)),
      starting_rate_to_bare: ratio(({ starting, bare }) => starting.perSecond / bare.perSecond),
      starting_cpu_with_postgres_to_bare: ratio(({ starting, bare }) => cpu(starting) / cpu(bare)),
    },
  };
};

/** The figures of one number of connections, a contender a line. */
export const table = (figures: ReturnType<typeof summary>): string =>
  Object.entries(figures)
    .map(([name, values]) => `  ${name.padEnd(10)}${JSON.stringify(values)}\n`)
    .join("");
