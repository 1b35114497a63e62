/** The tables against what users and senders were told: pure comparisons, each an invariant of the list of threats (I1 to I22). */
import { isPause } from "../../../src/domain/session/session.ts";
import type { TableSet } from "../../twins/store/tables.ts";
import type { Delivery, Ledger } from "../ledger.ts";
import { isLive } from "./watch.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

const countBy = <A>(of: Iterable<A>, key: (one: A) => string | null): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>();
  for (const one of of) {
    const name = key(one);
    if (name !== null) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
};

const doubled = (counts: ReadonlyMap<string, number>, what: string): readonly string[] =>
  [...counts].flatMap(([name, count]) => (count > 1 ? [`${what} ${name} exists ${count} times`] : []));

/** I2: one row an instant, one session a fire; a row and its session name each other. */
export const fireFaults = (tables: TableSet): readonly string[] => {
  const fires = [...tables.fires.values()];
  const sessions = [...tables.sessions.values()].map(({ record }) => record);
  return [
    ...doubled(
      countBy(fires, ({ kind, status, replayOf, projectId, triggerSlug, scheduledFor }) =>
        kind === "cron" && replayOf === null && status !== "duplicate"
          ? `${projectId}/${triggerSlug} ${scheduledFor}`
          : null,
      ),
      "I2 the instant",
    ),
    ...doubled(
      countBy(sessions, ({ fireId }) => fireId),
      "I2 a session of fire",
    ),
    ...fires.flatMap(({ id, status, sessionId }) => {
      if (status === "fired" && tables.sessions.get(sessionId ?? "")?.record.fireId !== id)
        return [`I4 fire ${id} fired and has no session`];
      return status !== "fired" && sessionId !== null ? [`I4 fire ${id} is ${status} and has a session`] : [];
    }),
    ...fires.flatMap(({ id, status }) =>
      status === "queued" && !tables.queue.some(({ fireId }) => fireId === id)
        ? [`I4 fire ${id} is queued and waits nowhere`]
        : [],
    ),
    ...[...tables.accounts].flatMap(([id, { queuedFires }]) => {
      const waiting = tables.queue.filter(({ accountId }) => accountId === id).length;
      return waiting === queuedFires
        ? []
        : [`I1 account ${id} counts ${queuedFires} waiting fires of ${waiting}`];
    }),
  ];
};

/** I14: last_fired_at is that of the newest row that fired. */
export const lastFiredFaults = (tables: TableSet): readonly string[] => {
  const newest = new Map<string, number>();
  for (const { firedAt, projectId, triggerSlug } of tables.fires.values()) {
    const trigger = `${projectId}/${triggerSlug}`;
    if (firedAt !== null) newest.set(trigger, Math.max(newest.get(trigger) ?? 0, firedAt));
  }
  return [...newest].flatMap(([trigger, at]) => {
    const [project = "", slug = ""] = trigger.split("/");
    const said = tables.lastFired.get(project)?.get(slug) ?? 0;
    return said === at ? [] : [`I14 last_fired_at of ${trigger} is ${said}, its newest fire's ${at}`];
  });
};

/** I4: no session without an accepted cause, and none that was promised is missing. */
export const causeFaults = (tables: TableSet, { asked }: Ledger): readonly string[] => {
  const sessions = [...tables.sessions.values()].map(({ record }) => record);
  const creates = asked.filter(({ kind }) => kind === "create");
  const done = creates.filter(({ answer }) => answer?.is === "done").length;
  const unsure = creates.filter(({ answer }) => answer === null || answer.is === "unknown").length;
  const made = sessions.filter(({ fireId }) => fireId === null).length;
  const promised = asked.flatMap(({ kind, answer }) =>
    (kind === "create" || kind === "fire" || kind === "replay") && answer?.is === "done"
      ? [answer.sessionId]
      : [],
  );
  return [
    ...(made > done + unsure ? [`I4 ${made} sessions for ${done} creates, ${unsure} without an answer`] : []),
    ...promised.flatMap((id) =>
      tables.sessions.has(id ?? "") ? [] : [`I4 the session ${id ?? "?"} was promised and is missing`],
    ),
    ...sessions.flatMap(({ id, fireId }) =>
      fireId !== null && tables.fires.get(fireId)?.sessionId !== id
        ? [`I4 session ${id} has no fire that it came from`]
        : [],
    ),
  ];
};

const spanOf = ({ attempts }: Delivery): number => {
  const times = attempts.map(({ wall }) => wall);
  return times.length === 0 ? 0 : Math.max(...times) - Math.min(...times);
};

/** An answer that starts nothing has started nothing: a ping, and an event that its trigger's filter rejected. */
const idleFaults = (
  { id, isPing, attempts }: Delivery,
  own: readonly { readonly status: string; readonly sessionId: string | null }[],
): readonly string[] => {
  const wasFiltered = attempts.some(({ answer }) => answer === "filtered");
  const wasStarted = own.some(({ status }) => status !== "skipped");
  const wasAccepted = attempts.some(({ answer }) => answer === "fired" || answer === "queued");
  return [
    ...(isPing && (own.length > 0 || wasAccepted) ? [`I4 the ping ${id} was taken for an event`] : []),
    ...(wasFiltered && (wasStarted || wasAccepted)
      ? [`I5 ${id} was filtered and has started a session`]
      : []),
  ];
};

/**
 * I4, I5: an accepted delivery has its row, and one delivery has one session, and one more for each session that was lost
 * before its first turn.
 */
export const deliveryFaults = (tables: TableSet, { deliveries }: Ledger): readonly string[] => {
  const webhooks = [...tables.fires.values()].filter(({ kind }) => kind === "webhook");
  const rows = webhooks.filter(({ replayOf }) => replayOf === null);
  const sent = new Set(deliveries.map(({ id }) => id));
  return [
    ...rows.flatMap(({ id, deliveryId }) =>
      deliveryId !== null && sent.has(deliveryId) ? [] : [`I4 fire ${id} has no sender`],
    ),
    ...deliveries.flatMap((delivery) => {
      const own = rows.filter(
        ({ deliveryId, status, projectId }) =>
          deliveryId === delivery.id && projectId === delivery.projectId && status !== "duplicate",
      );
      const accepted = delivery.attempts.filter(
        ({ answer }) => answer === "fired" || answer === "queued" || answer === "filtered",
      );
      const faults =
        accepted.length > 0 && own.length === 0 ? [`I4 ${delivery.id} was accepted and has no row`] : [];
      if (spanOf(delivery) >= DAY_MS) return faults;
      const answers = new Set(accepted.flatMap(({ sessionId }) => sessionId ?? []));
      const again = webhooks.filter(
        ({ deliveryId, replayOf, projectId }) =>
          deliveryId === delivery.id && projectId === delivery.projectId && replayOf !== null,
      );
      return [
        ...faults,
        ...idleFaults(delivery, own),
        ...(own.length > 1 ? [`I5 ${delivery.id} has ${own.length} rows`] : []),
        ...(answers.size > 1 + again.length
          ? [`I5 ${delivery.id} was answered with ${answers.size} sessions`]
          : []),
        ...[...answers].flatMap((id) =>
          [...own, ...again].some(({ sessionId }) => sessionId === id)
            ? []
            : [`I4 ${delivery.id} has no row of session ${id}`],
        ),
      ];
    }),
  ];
};

/** R02: an action that was reported to a user as done stays done, until another request changes it. */
export const answerFaults = (tables: TableSet, { asked }: Ledger): readonly string[] =>
  asked.flatMap(({ kind, about, at, answer }) => {
    const record = tables.sessions.get(about ?? "")?.record;
    if (record === undefined || answer?.is !== "done") return [];
    if (kind === "remove")
      return record.deletedAt === null || isLive(record.status)
        ? [`I6 session ${record.id} was deleted and is ${record.status}`]
        : [];
    // One that was under way at the same time may have come after it.
    const wasRestarted = asked.some(
      (other) =>
        other.kind === "restart" && other.about === about && (other.answer === null || other.answer.at > at),
    );
    // The service had stopped it by itself. A paused session starts again for the result of a call that waited for a person.
    const isAwakened =
      isPause(answer.stopReason) &&
      [...tables.approvals.keys()].some((id) => tables.executorCalls.get(id)?.sessionId === about);
    return kind === "stop" && isLive(record.status) && !wasRestarted && !isAwakened
      ? [`R02 session ${record.id} was stopped and is ${record.status}`]
      : [];
  });

/** I22: each failure has a reason. */
export const outcomeFaults = (tables: TableSet): readonly string[] => [
  ...[...tables.sessions.values()].flatMap(({ record: { id, status, failure, stopReason } }) => {
    if (status === "failed" && failure === null) return [`I22 session ${id} failed without a reason`];
    // A branch that a former try has cut is the session's own.
    if (failure?.message.includes("already there with another commit") === true)
      return [`G12 session ${id} stumbled over its own branch`];
    return status === "stopped" && stopReason === null
      ? [`I22 session ${id} was stopped without a reason`]
      : [];
  }),
  ...[...tables.fires.values()].flatMap(({ id, status, reason }) =>
    status !== "fired" && reason === null ? [`I22 fire ${id} is ${status} without a reason`] : [],
  ),
];
