/**
 * Records the webhook receiver's answers, for people: a count of each answer, and the refused requests.
 *
 *  V1 The receiver reports after its answer and never waits for the record.
 *  V2 Memory is bounded: a limited number of refusals waits for the next write, for each project and in all. Further
 *     ones are dropped and counted. A project that is unknown here only adds to the count.
 *  V3 Writes are bounded: at most one batch a second, and no write without a refusal. While the database is away the
 *     batch waits.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { uuidV7 } from "../../domain/ids.ts";
import { statusClass } from "../../domain/service/metrics.ts";
import { WebhookRefusals, type WebhookRefusal } from "../../store/ports/triggers/webhook-refusals.ts";
import { Measures } from "../../telemetry/port.ts";
import { Directory } from "../directory.ts";
import { Entropy, UUID_BYTES } from "../entropy.ts";
import { DUTIES } from "../duties.ts";
import { dutyRound, runDuty } from "../duty.ts";

/** How many refusals one write takes. */
const WAITING_PER_PROJECT = 20;
const WAITING_MAX = 200;

export type NewRefusal = Omit<WebhookRefusal, "id" | "at">;

/** A counted answer: its status, and its error code or, for a success, its outcome. */
export interface CountedAnswer {
  readonly status: number;
  readonly answer: string;
  readonly count: number;
}

export class WebhookRecord extends Context.Service<
  WebhookRecord,
  {
    readonly answered: (status: number, answer: string) => void;
    readonly refused: (refusal: NewRefusal) => void;
    /** The counts since this process began. */
    readonly counts: () => { readonly answers: readonly CountedAnswer[]; readonly dropped: number };
    /** Writes the waiting refusals. */
    readonly flush: Effect.Effect<void>;
  }
>()("platform/services/WebhookRecord") {}

/** The waiting refusals, within their bounds (V2). */
class Waiting {
  #rows: WebhookRefusal[] = [];
  readonly #ofProject = new Map<string, number>();
  dropped = 0;

  /** Adds a refusal if there is room for it. */
  offer(projectId: string, make: () => WebhookRefusal): void {
    const own = this.#ofProject.get(projectId) ?? 0;
    if (own >= WAITING_PER_PROJECT || this.#rows.length >= WAITING_MAX) {
      this.dropped += 1;
      return;
    }
    this.#ofProject.set(projectId, own + 1);
    this.#rows.push(make());
  }

  take(): readonly WebhookRefusal[] {
    const rows = this.#rows;
    this.#rows = [];
    this.#ofProject.clear();
    return rows;
  }
}

export const webhookRecordLayer: Layer.Layer<WebhookRecord, never, WebhookRefusals | Directory> =
  Layer.effect(
    WebhookRecord,
    Effect.gen(function* () {
      const refusals = yield* WebhookRefusals;
      const directory = yield* Directory;
      const clock = yield* Clock.Clock;
      const entropy = yield* Entropy;
      const measures = yield* Measures;
      const answers = new Map<string, CountedAnswer>();
      const waiting = new Waiting();

      const write = Effect.suspend(() => {
        const rows = waiting.take();
        if (rows.length === 0) return Effect.void;
        const back = Effect.sync(() => {
          for (const row of rows) waiting.offer(row.projectId, () => row);
        });
        return Effect.tapError(refusals.add(rows), () => back);
      });
      const { periodMs } = DUTIES.webhook_record;
      yield* runDuty("webhook_record", { round: write, first: "a period", periodMs });
      // At the service's shutdown the waiting refusals are written, if the database is available.
      yield* Effect.addFinalizer(() => Effect.ignore(write));

      return WebhookRecord.of({
        answered: (status, answer) => {
          const key = `${status} ${answer}`;
          measures.count("webhooks_total", { status: statusClass(status), answer });
          answers.set(key, { status, answer, count: (answers.get(key)?.count ?? 0) + 1 });
        },
        refused: (refusal) => {
          if (directory.known(refusal.projectId) === null) return;
          waiting.offer(refusal.projectId, () => {
            const at = clock.currentTimeMillisUnsafe();
            return { ...refusal, id: uuidV7(at, entropy(UUID_BYTES)), at };
          });
        },
        counts: () => ({ answers: [...answers.values()], dropped: waiting.dropped }),
        flush: dutyRound("webhook_record", write),
      });
    }),
  );
