/**
 * Tells receivers outside of a project's events (api.md 12), and people about their own sessions (api.md 12 "Notices"). A round turns new events into deliveries, and begins to send those
 * that are due. It waits for no receiver.
 *
 *  W1 A receiver's place in the events moves with its deliveries (outbound-webhooks.ts O2), on whichever node is first.
 *  W2 A delivery is claimed before it is sent, for longer than a request can take. So a node that dies leaves it to
 *     another one after the lease, with the same `webhook-id`, and no two nodes send it at the same time.
 *  W3 A request holds a place until its result is written. There is a number of places in all, half of which stay for
 *     receivers that do not fail, and few for one receiver. So a receiver that hangs delays no other.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Queue from "effect/Queue";
import * as Random from "effect/Random";
import { outboundMessage, type OutboundMessage } from "./rules/outbound-event.ts";
import { tryVerdict } from "./rules/outbound-tries.ts";
import { newUuid } from "../../services/entropy.ts";
import { Outbound } from "./outbound.ts";
import { isWanted, ownMessage } from "./rules/own-notice.ts";
import { OwnReceivers } from "./ports/own-receivers.ts";
import type { StoreError } from "../../store/ports/journal.ts";
import { Events } from "../../store/ports/events.ts";
import { Faults } from "../../store/ports/faults.ts";
import {
  DELIVERIES_KEPT_MS,
  OutboundDeliveries,
  type ClaimedDelivery,
  type DeliveryResult,
} from "./ports/outbound-deliveries.ts";
import { OutboundWebhooks, type ReceiverBehind } from "./ports/outbound-webhooks.ts";
import { DUTIES } from "../../services/duties.ts";
import { dutyPart, runDuty } from "../../services/duty.ts";

const NAME = "outbound_webhooks";

/** How many requests this node sends at a time, and how many of them to receivers that fail. */
const REQUESTS = 256;
const FAILING_REQUESTS = 128;
/** How many requests one receiver gets at a time, from all nodes together. */
const REQUESTS_EACH = 4;
/** Longer than a request with its time limit, the write of its result, and the difference of two nodes' clocks. */
const LEASE_MS = 30_000;
/** How many receivers a round reads events for, and how many events for each. */
const RECEIVERS_AT_ONCE = 200;
const EVENTS_AT_ONCE = 500;
/** Events that come together are read together: a stream of them would make a round for each commit. */
const GATHER = "100 millis";
/** Places that become free together are filled together. It is short: a receiver has few places. */
const GATHER_PLACES = "20 millis";
const PRUNE_PERIOD_MS = 60_000;
/** Pause between two steps of pruning, so that a large backlog leaves the database to others. */
const BREATH = "50 millis";

export interface OutboundOptions {
  /** The service's address for people, to which messages link. */
  readonly publicUrl: string;
}

const newDelivery = (message: OutboundMessage) =>
  Effect.map(newUuid, (id) => ({
    id,
    messageId: message.id,
    type: message.type,
    message: JSON.stringify(message),
  }));

/** Turns a receiver's next events into deliveries (W1). @returns whether there may be more */
const collect = Effect.fnUntraced(function* (receiver: ReceiverBehind, { publicUrl }: OutboundOptions) {
  const { id, projectId, projectName, cursor, events: wanted } = receiver;
  const read = yield* (yield* Events).after({ projectId, sessionId: null, cursor, limit: EVENTS_AT_ONCE });
  if (read.reset)
    yield* Effect.annotateLogs(
      Effect.logWarning("an outbound webhook missed events that are not kept any more"),
      { webhook_id: id, project_id: projectId },
    );
  const messages = read.events.flatMap((event) => {
    const message = outboundMessage(event, { projectName, publicUrl });
    return message !== null && wanted.some((type) => type === message.type) ? [message] : [];
  });
  const deliveries = yield* Effect.forEach(messages, newDelivery);
  const now = yield* Clock.currentTimeMillis;
  const isFirst = yield* (yield* OutboundWebhooks).collect({
    projectId,
    id,
    from: cursor,
    to: read.cursor,
    deliveries,
    now,
  });
  if (isFirst && deliveries.length > 0) (yield* Faults)("outbound.collected");
  return read.events.length >= EVENTS_AT_ONCE;
});

/** Turns the next events into deliveries for the people that they concern (own-receivers.ts R2). @returns whether there may be more */
const collectOwn = Effect.fnUntraced(function* ({ publicUrl }: OutboundOptions) {
  const receivers = yield* OwnReceivers;
  const batch = yield* receivers.news(EVENTS_AT_ONCE);
  if (batch === null) return false;
  const messages = batch.news.flatMap((news) => {
    const message = ownMessage(news, publicUrl);
    if (message === null) return [];
    return news.receivers.flatMap((receiver) =>
      isWanted(news, receiver) ? [{ receiverId: receiver.id, message }] : [],
    );
  });
  const deliveries = yield* Effect.forEach(messages, ({ receiverId, message }) =>
    Effect.map(newDelivery(message), (delivery) => ({ receiverId, ...delivery })),
  );
  yield* receivers.collect({ to: batch.to, deliveries, now: yield* Clock.currentTimeMillis });
  return batch.news.length >= EVENTS_AT_ONCE;
});

/** Sends a claimed delivery, and says what follows from its answer. */
const deliver = Effect.fnUntraced(function* (
  delivery: ClaimedDelivery,
): Effect.fn.Return<DeliveryResult, StoreError, Outbound> {
  const { id, webhookId, claim, tries } = delivery;
  const message = JSON.parse(delivery.message) as OutboundMessage;
  const outcome = yield* (yield* Outbound).send({ ...delivery, id: webhookId }, message);
  const [now, jitter] = [yield* Clock.currentTimeMillis, yield* Random.next];
  return { id, webhookId, claim, outcome, verdict: tryVerdict(outcome, { tries, now, jitter }) };
});

/** The places for requests of this node (W3), and the results that are not written yet. */
const makeSending = Effect.gen(function* () {
  const deliveries = yield* OutboundDeliveries;
  const faults = yield* Faults;
  const scope = yield* Effect.scope;
  const outcomes = yield* Queue.unbounded<{ readonly result: DeliveryResult; readonly isFailing: boolean }>();
  /** A round should come early: a place is free, and more may be due. */
  const early = yield* Queue.sliding<void>(1);
  let [busy, failing, mayBeMore] = [0, 0, false];

  const free = (results: readonly { readonly isFailing: boolean }[]) => {
    busy -= results.length;
    failing -= results.filter(({ isFailing }) => isFailing).length;
  };
  const send = (delivery: ClaimedDelivery) =>
    Effect.flatMap(deliver(delivery), (result) =>
      Queue.offer(outcomes, { result, isFailing: delivery.isFailing }),
    ).pipe(
      // A crash is one delivery's. It is sent again after its lease.
      Effect.tapDefect(() =>
        Effect.sync(() => {
          free([delivery]);
        }),
      ),
      Effect.asVoid,
    );

  const begin = Effect.gen(function* () {
    const room = { all: REQUESTS - busy, failing: FAILING_REQUESTS - failing, each: REQUESTS_EACH };
    if (room.all === 0) return;
    const now = yield* Clock.currentTimeMillis;
    const claims = yield* deliveries.claim({ now, leaseUntil: now + LEASE_MS, room });
    mayBeMore = claims.length > 0;
    if (mayBeMore) faults("outbound.claimed");
    for (const each of claims) {
      busy += 1;
      if (each.isFailing) failing += 1;
      yield* Effect.forkIn(dutyPart(NAME, send(each)), scope);
    }
  });

  const record = Effect.gen(function* () {
    const results = yield* Queue.takeAll(outcomes);
    faults("outbound.answered");
    const now = yield* Clock.currentTimeMillis;
    yield* dutyPart(
      NAME,
      deliveries.record(
        results.map(({ result }) => result),
        now,
      ),
    );
    free(results);
    if (mayBeMore) yield* Queue.offer(early, undefined);
  });
  yield* Effect.forkScoped(Effect.forever(record));
  return { begin, early };
});

/** Removes deliveries that ended long ago. */
const prune = Effect.fnUntraced(function* (now: number) {
  const deliveries = yield* OutboundDeliveries;
  while ((yield* deliveries.prune(now - DELIVERIES_KEPT_MS)) > 0) yield* Effect.sleep(BREATH);
});

export const outboundWebhooksLayer = (options: OutboundOptions) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const events = yield* Events;
      const { begin, early } = yield* makeSending;
      let prunedAt = 0;
      const round = Effect.gen(function* () {
        const behind = yield* (yield* OutboundWebhooks).behind(RECEIVERS_AT_ONCE);
        for (const receiver of behind) {
          const more = yield* collect(receiver, options);
          if (more || behind.length === RECEIVERS_AT_ONCE) yield* Queue.offer(early, undefined);
        }
        if (yield* collectOwn(options)) yield* Queue.offer(early, undefined);
        yield* begin;
        const now = yield* Clock.currentTimeMillis;
        if (now - prunedAt < PRUNE_PERIOD_MS) return;
        prunedAt = now;
        yield* dutyPart(NAME, prune(now));
      });
      yield* runDuty("outbound_webhooks", {
        round,
        periodMs: DUTIES.outbound_webhooks.periodMs,
        signal: Effect.raceFirst(
          Effect.andThen(events.changed(null), Effect.sleep(GATHER)),
          Effect.andThen(Queue.take(early), Effect.sleep(GATHER_PLACES)),
        ),
      });
    }),
  );
