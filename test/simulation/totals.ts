/** Sums over many runs. */
import type { RunResult } from "./run.ts";

export class Totals {
  runs = 0;
  steps = 0;
  virtualMs = 0;
  readonly failed: RunResult[] = [];
  readonly hits = new Map<string, number>();

  add(result: RunResult): void {
    this.runs += 1;
    this.virtualMs += result.elapsed;
    if (result.violations.length > 0) this.failed.push(result);
    for (const [point, count] of result.hits) this.hits.set(point, (this.hits.get(point) ?? 0) + count);
  }

  get virtualDays(): number {
    return Math.round(this.virtualMs / 864_000) / 100;
  }

  /** How often each kind of fault was met, most often first. */
  get faults(): readonly (readonly [string, number])[] {
    return [...this.hits].toSorted(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  }

  get summary(): object {
    return {
      runs: this.runs,
      virtual_days: this.virtualDays,
      fault_points: this.hits.size,
      least_hits: Math.min(...this.hits.values()),
      hits: Object.fromEntries(this.faults),
      violations: this.failed.length,
      failed_seeds: this.failed.map(({ seed }) => seed),
    };
  }
}
