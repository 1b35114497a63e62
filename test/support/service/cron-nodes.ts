/**
 * Several real nodes on one database with cron triggers, and the delays of their due instants' rows. A node's clock
 * writes `received_at`, so all nodes must run on one machine.
 */
import { randomBytes } from "node:crypto";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Result from "effect/Result";
import * as Scope from "effect/Scope";
import { vi } from "vitest";
import { connectBare, type Bare } from "../postgres/bare.ts";
import { instantsBetween, parseCron } from "../../../src/domain/trigger/cron.ts";
import { freshDatabase } from "../postgres/postgres.ts";
import { Installation, type Life } from "./process-service.ts";

/** A due instant, its row's delay (null without a row), and the row's content. */
export interface Instant {
  readonly trigger: string;
  readonly due: number;
  readonly lateMs: number | null;
  readonly said: string;
}

interface Row {
  readonly trigger: string;
  readonly due: number;
  readonly received: number;
  readonly said: string;
}

/** A period, ms since the epoch: later than `from`, up to `until`. */
export interface Span {
  readonly from: number;
  readonly until: number;
}

export const wallClock = (): number => performance.timeOrigin + performance.now();

const manifestOf = (expressions: readonly string[]): string =>
  expressions
    .map(
      (cron, index) => `[[triggers]]
slug = "trigger-${index}"
type = "cron"
cron = "${cron}"
prompt = "{{ cron.fired_at }}"
`,
    )
    .join("\n");

export class CronNodes {
  readonly lives: Life[] = [];
  readonly #installations: Installation[] = [];
  readonly #scope = Effect.runSync(Scope.make());
  readonly #expressions = new Map<string, string>();
  #settings: Readonly<Record<string, string>> = {};
  #database: Bare | null = null;

  /** Starts this many nodes on a new database. Fires queue at the cap, so that a fire costs only its row. */
  static async start(count: number, settings: Readonly<Record<string, string>> = {}): Promise<CronNodes> {
    const nodes = new CronNodes();
    const url = await Effect.runPromise(Scope.provide(freshDatabase("migrated"), nodes.#scope));
    nodes.#database = await connectBare(url);
    nodes.#settings = {
      DATABASE_URL: url,
      PLATFORM_MASTER_KEY: randomBytes(32).toString("hex"),
      PLATFORM_SANDBOX_PROVIDER: "simulated",
      PLATFORM_TIER_CAPS: JSON.stringify({ free: 1 }),
      ...settings,
    };
    for (let index = 0; index < count; index += 1) {
      const installation = await Installation.open();
      nodes.#installations.push(installation);
      nodes.lives.push(await installation.start(nodes.#settings));
    }
    return nodes;
  }

  life(index: number): Life {
    const life = this.lives[index];
    if (life === undefined) throw new Error(`there is no node ${index}`);
    return life;
  }

  /** Restarts an ended node. */
  async restart(index: number): Promise<void> {
    const installation = this.#installations[index];
    if (installation !== undefined) this.lives[index] = await installation.start(this.#settings);
  }

  /** Creates a project with these cron triggers on one of the nodes. */
  async project(index: number, expressions: readonly string[]): Promise<void> {
    const installation = this.#installations[index];
    if (installation === undefined) throw new Error(`there is no node ${index}`);
    const id = await this.life(index).project(await installation.repository(manifestOf(expressions)));
    for (const [trigger, cron] of expressions.entries())
      this.#expressions.set(`${id}/trigger-${trigger}`, cron);
  }

  /** All due instants of the period, of every trigger, according to the ledger. */
  async instants({ from, until }: Span): Promise<readonly Instant[]> {
    const found = await this.#database?.query<Row>(
      `SELECT project_id || '/' || trigger_slug AS trigger, scheduled_for AS due, received_at AS received,
         concat_ws(' ', status, reason) AS said
       FROM fires WHERE kind = 'cron' AND replay_of IS NULL AND scheduled_for > $1 AND scheduled_for <= $2`,
      [new Date(from), new Date(until)],
    );
    const rows = new Map(found?.rows.map((row) => [`${row.trigger} ${row.due}`, row]));
    return [...this.#expressions].flatMap(([trigger, cron]) => {
      const range = { firstMs: Math.floor(from) + 1, untilMs: Math.floor(until) };
      return [...instantsBetween(Result.getOrThrow(parseCron(cron)), "UTC", range)].map((due) => {
        const row = rows.get(`${trigger} ${due}`);
        return {
          trigger,
          due,
          lateMs: row === undefined ? null : row.received - due,
          said: row?.said ?? "",
        };
      });
    });
  }

  /** Completes when every instant of the period has its row. The limit ends a hung test. */
  accounted(span: Span): Promise<readonly Instant[]> {
    const limit = span.until - wallClock() + 120_000;
    return vi.waitFor(
      async () => {
        if (wallClock() < span.until) throw new Error("the span is not over");
        const all = await this.instants(span);
        const missing = all.filter(({ lateMs }) => lateMs === null);
        if (missing.length > 0) throw new Error(`${missing.length} of ${all.length} instants have no row`);
        return all;
      },
      { timeout: limit, interval: 250 },
    );
  }

  async close(): Promise<void> {
    for (const life of this.lives) {
      life.signal("SIGCONT");
      await life.end("SIGTERM");
    }
    for (const installation of this.#installations) await installation.close();
    await this.#database?.end();
    await Effect.runPromise(Scope.close(this.#scope, Exit.void));
  }
}

/** A sentence for each of these instants whose row is later than the bound, or says that the instant was missed. */
export const lateOnes = (instants: readonly Instant[], boundMs: number): readonly string[] =>
  instants.flatMap(({ trigger, due, lateMs, said }) =>
    lateMs !== null && lateMs >= 0 && lateMs <= boundMs && said !== "skipped missed"
      ? []
      : [`${new Date(due).toISOString()} of ${trigger}: ${lateMs} ms late, ${said}`],
  );

export const worstOf = (instants: readonly Instant[]): number =>
  instants.reduce((worst, { lateMs }) => Math.max(worst, lateMs ?? Infinity), 0);
