/**
 * A service under load that faults are tried on: a round has its fault, a restart where one is due, and a wait until what the
 * fault left behind is gone. From time to time the load pauses, everything comes to rest, and the checkers look.
 */
import { setTimeout as delay } from "node:timers/promises";
import { Random } from "../simulation/random.ts";
import { violations } from "./checkers/checkers.ts";
import { Load } from "./load.ts";
import { AIMS, percentile, ROUNDS_A_CHECK } from "./rounds.ts";
import { unrest } from "./checkers/row-checkers.ts";
import { isLiveSandbox, lookAt, type Seen } from "./seen.ts";
import type { FaultyService } from "./installation.ts";

/** threats.md I9, after a crash restart; I19. Beyond, what is left is told as a violation. */
const LONGEST_MS = 60_000;
const LOOK_MS = 100;

const rounded = (values: readonly number[], share: number): number => Math.round(percentile(values, share));

export interface Times {
  readonly readyMs: number[];
  readonly lastOrphanMs: number[];
}

export interface TrialOptions {
  readonly service: FaultyService;
  readonly seed: number;
  /** Other nodes that take webhooks. */
  readonly others?: readonly FaultyService[];
}

/** One fault, and what makes it good again. @returns how long the service took to be ready again, ms. */
export type Fault = (random: Random, load: Load) => Promise<number>;

export class Trial {
  readonly service: FaultyService;
  readonly load: Load;
  readonly random: Random;
  readonly times: Times = { readyMs: [], lastOrphanMs: [] };
  readonly violations: string[] = [];

  constructor({ service, seed, others = [] }: TrialOptions) {
    this.service = service;
    this.random = new Random(seed, "faults");
    this.load = new Load(service, seed, [service, ...others]);
  }

  /** Notes where the default branch stands, and begins the load. */
  async begin(): Promise<void> {
    const { tips } = await this.service.refs();
    this.load.books.began.set(this.service.projectId, tips.get("refs/heads/main") ?? "");
    this.load.go();
  }

  /** So many rounds; stops at the first that leaves a violation. */
  async rounds(count: number, fault: Fault): Promise<void> {
    for (let round = 1; round <= count && this.violations.length === 0; round += 1) {
      this.load.go();
      await this.answered(this.random.between(5, 40));
      this.times.readyMs.push(await fault(this.random, this.load));
      await this.#orphansGone();
      if (round % ROUNDS_A_CHECK === 0 || round === count) await this.check();
    }
  }

  /** Completes when users and senders have had so many more answers. */
  async answered(count: number): Promise<void> {
    const until = this.load.answered + count;
    while (this.load.answered < until) await delay(LOOK_MS);
  }

  /** Waits until no sandbox without a live record is left. */
  async #orphansGone(): Promise<void> {
    const begun = performance.now();
    let left = await this.#orphans();
    while (left.length > 0 && performance.now() - begun < LONGEST_MS) {
      await delay(LOOK_MS);
      const now = new Set(await this.#orphans());
      left = left.filter((id) => now.has(id));
    }
    this.times.lastOrphanMs.push(performance.now() - begun);
    this.violations.push(...left.map((id) => `I9 the sandbox ${id} outlives its record by a minute`));
  }

  async #orphans(): Promise<readonly string[]> {
    const { sandboxes } = this.service.machine();
    const tables = await this.service.tables();
    const live = new Set(tables.sandboxes.filter(isLiveSandbox).map(({ id }) => id));
    return sandboxes.map(({ id }) => id).filter((id) => !live.has(id));
  }

  /** Has everything come to rest and looks at it. */
  async check(): Promise<Seen> {
    await this.load.pause();
    const begun = performance.now();
    const isLate = () => performance.now() - begun > LONGEST_MS;
    for (;;) {
      while (unrest(await this.service.tables()).length > 0 && !isLate()) await delay(LOOK_MS);
      await this.#orphansGone();
      const { seen, isSteady } = await this.#look();
      if (!isSteady && !isLate()) continue;
      this.violations.push(...(await violations(seen)));
      return seen;
    }
  }

  /** Looks at everything as it is. */
  async look(): Promise<Seen> {
    return (await this.#look()).seen;
  }

  #look() {
    return lookAt({ service: this.service, books: this.load.books, random: this.random });
  }

  /** The measurements, beside the expectations. */
  get summary(): string {
    const { readyMs, lastOrphanMs } = this.times;
    return [
      `${readyMs.length} rounds, ${this.load.answered} answers (${this.load.unavailable} of them 5xx), ${this.load.books.deliveries.size} deliveries, ${this.violations.length} violations`,
      `ready again after p50 ${rounded(readyMs, 0.5)} ms, p95 ${rounded(readyMs, 0.95)} ms (aim ${AIMS.readyP95Ms})`,
      `last orphan gone after p50 ${rounded(lastOrphanMs, 0.5)} ms, at most ${rounded(lastOrphanMs, 1)} ms (aim ${AIMS.lastOrphanMs})`,
    ].join("; ");
  }
}
