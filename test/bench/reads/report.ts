/** Medians, ratios and how they are printed. */
import { median, rounded } from "../figures.ts";

/** What one turn of a server came to. */
export interface Measure {
  readonly perSecond: number;
  /** CPU time of the server and of Postgres, in µs a request. */
  readonly cpuUs: number;
  readonly postgresUs: number;
}

type Round = Readonly<Record<string, Measure>>;
type Rounds = readonly Round[];

const figure = (round: Round, name: string, of: (measure: Measure) => number): number => {
  const measure = round[name];
  return measure === undefined ? Number.NaN : of(measure);
};

const rate = ({ perSecond }: Measure): number => perSecond;
const cpu = ({ cpuUs, postgresUs }: Measure): number => cpuUs + postgresUs;

const medians = (rounds: Rounds, name: string) => {
  const of = (wanted: (measure: Measure) => number): number =>
    Math.round(median(rounds.map((round) => figure(round, name, wanted))));
  return {
    per_second: of(rate),
    cpu_us: of(({ cpuUs }) => cpuUs),
    postgres_us: of(({ postgresUs }) => postgresUs),
  };
};

/** The median of the ratios within each round, with the smallest and the largest. */
const ratio = (rounds: Rounds, names: readonly [string, string], of: (measure: Measure) => number) => {
  const ratios = rounds.map((round) => figure(round, names[0], of) / figure(round, names[1], of));
  return [median(ratios), Math.min(...ratios), Math.max(...ratios)].map(rounded);
};

const line = (name: string, rounds: Rounds, told: string): void => {
  const { per_second: perSecond, cpu_us: own, postgres_us: postgres } = medians(rounds, name);
  const cells = [`${perSecond}/s`, `${own} µs`, `${postgres} µs`].map((cell) => cell.padStart(10)).join("");
  process.stdout.write(`  ${name.padEnd(24)}${cells}  ${told}\n`);
};

const compared = (rounds: Rounds, name: string, with_: string) => {
  const names = [name, with_] as const;
  return { rate: ratio(rounds, names, rate), cpu: ratio(rounds, names, cpu) };
};

const told = (ratios: ReturnType<typeof compared>): string =>
  Object.entries(ratios)
    .map(([what, [middle, low, high]]) => `${what} ${middle} × (${low} to ${high})`)
    .join(", ");

/** Prints the service beside the bare server: requests a second, CPU time a request, and that of Postgres. */
export const comparison = (rounds: Rounds) => {
  const ratios = {
    session: compared(rounds, "session", "session, bare"),
    page: compared(rounds, "page", "page, bare"),
  };
  for (const name of ["session", "page"] as const) {
    line(name, rounds, told(ratios[name]));
    line(`${name}, bare`, rounds, "");
  }
  const names = ["session", "session, bare", "page", "page, bare"];
  return {
    compared: Object.fromEntries(names.map((name) => [name, medians(rounds, name)])),
    to_bare: ratios,
  };
};

/** Prints lists of many rows beside those of few. */
export const growth = (rounds: Rounds) => {
  const shown = ["sessions", "fires"].flatMap((kind) => {
    line(`${kind}, few`, rounds, "");
    return [`${kind}, many`, `${kind}, many, middle`].map((name) => {
      const ratios = compared(rounds, name, `${kind}, few`);
      line(name, rounds, told(ratios));
      return [name, { ...medians(rounds, name), to_few: ratios }] as const;
    });
  });
  return { grown: Object.fromEntries(shown) };
};
