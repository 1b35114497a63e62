/** Sums over many runs. */
import type { RunResult } from "./run.ts";

/** The last line that `npm run sim` prints. */
export interface Summary {
  readonly runs: number;
  readonly virtual_days: number;
  readonly virtual_years: number;
  readonly fault_points: number;
  readonly least_hits: number;
  /** How often each kind of fault was met. */
  readonly hits: Readonly<Record<string, number>>;
  readonly violations: number;
  readonly failed_seeds: readonly number[];
}

const yearsOf = (days: number): number => Math.round((days / 365.25) * 100) / 100;

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

/** What several processes summed up, as one. */
export const summed = (parts: readonly Summary[]): Summary => {
  const hits = new Map<string, number>();
  for (const part of parts)
    for (const [point, count] of Object.entries(part.hits)) hits.set(point, (hits.get(point) ?? 0) + count);
  const days = Math.round(sum(parts.map(({ virtual_days }) => virtual_days)) * 100) / 100;
  return {
    runs: sum(parts.map(({ runs }) => runs)),
    virtual_days: days,
    virtual_years: yearsOf(days),
    fault_points: hits.size,
    least_hits: Math.min(...hits.values()),
    hits: Object.fromEntries(hits),
    violations: sum(parts.map(({ violations }) => violations)),
    failed_seeds: parts.flatMap(({ failed_seeds }) => failed_seeds),
  };
};

export class Totals {
  runs = 0;
  steps = 0;
  virtualMs = 0;
  readonly failed: RunResult[] = [];
  readonly hits = new Map<string, number>();
  /** Calls of ports that took effect, by name. */
  readonly calls = new Set<string>();

  add(result: RunResult): void {
    this.runs += 1;
    this.virtualMs += result.elapsed;
    if (result.violations.length > 0) this.failed.push(result);
    for (const [point, count] of result.hits) this.hits.set(point, (this.hits.get(point) ?? 0) + count);
    for (const name of result.calls.keys()) this.calls.add(name);
  }

  get virtualDays(): number {
    return Math.round(this.virtualMs / 864_000) / 100;
  }

  /** How often each kind of fault was met, most often first. */
  get faults(): readonly (readonly [string, number])[] {
    return [...this.hits].toSorted(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  }

  get summary(): Summary {
    return {
      runs: this.runs,
      virtual_days: this.virtualDays,
      virtual_years: yearsOf(this.virtualDays),
      fault_points: this.hits.size,
      least_hits: Math.min(...this.hits.values()),
      hits: Object.fromEntries(this.faults),
      violations: this.failed.length,
      failed_seeds: this.failed.map(({ seed }) => seed),
    };
  }
}
