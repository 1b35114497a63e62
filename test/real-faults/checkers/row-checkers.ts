/** Invariants of the list of threats over what the database holds, what users and senders were told, and what the API says. */
import * as Result from "effect/Result";
import { instantsBetween, parseCron } from "../../../src/domain/trigger/cron.ts";
import { unaccounted } from "../../support/webhooks/webhook-ledger.ts";
import { CRON } from "../installation.ts";
import { doubled, isLive, type Checker } from "../seen.ts";
import type { Tables } from "../tables.ts";

/** States that are not at rest yet (I7, I13, I19): they end within a bounded time, or never. */
export const unrest = (tables: Tables): readonly string[] => {
  const active = new Set(tables.sandboxes.filter(({ status }) => status === "active").map(({ id }) => id));
  return [
    ...tables.sessions.flatMap(({ id, status }) =>
      status === "provisioning" ? [`I7 session ${id} is still provisioning`] : [],
    ),
    ...tables.outbox.flatMap(({ actorId, kind, command }) =>
      command === "watchSandbox" && active.has(actorId)
        ? []
        : [`I19 ${kind} ${actorId} has ${command} left to do`],
    ),
    ...tables.accounts.flatMap(({ id, active: live, cap }) =>
      live < cap && tables.queue.some(({ accountId }) => accountId === id)
        ? [`I13 account ${id} has a free slot and waiting fires`]
        : [],
    ),
  ];
};

/** I1: counters are counts. */
export const counters: Checker = ({ tables: { accounts, sessions, queue }, said }) =>
  accounts.flatMap(({ id, active, queued, cap }) => {
    const live = sessions.filter((row) => row.accountId === id && isLive(row)).length;
    const waiting = queue.filter(({ accountId }) => accountId === id).length;
    return [
      ...(active === live ? [] : [`I1 account ${id} counts ${active} live sessions of ${live}`]),
      ...(live > cap ? [`I1 account ${id} has ${live} live sessions and ${cap} slots`] : []),
      ...(queued === waiting ? [] : [`I1 account ${id} counts ${queued} waiting fires of ${waiting}`]),
      ...(said.active === active && said.queued === queued
        ? []
        : [
            `I1 the API says ${said.active} and ${said.queued} where the account has ${active} and ${queued}`,
          ]),
    ];
  });

/** I1, I6, I11, I12, I13, I14: what the witness saw at some commit. */
export const witnessed: Checker = ({ tables }) => tables.sightings;

/** I2, I3: every due instant from the first to the last has exactly one row. */
export const instants: Checker = ({ tables: { fires } }) => {
  const due = fires.filter(
    ({ kind, replayOf, status }) => kind === "cron" && replayOf === null && status !== "duplicate",
  );
  const at = due.flatMap(({ scheduledFor }) => scheduledFor ?? []);
  const rows = new Set(at);
  const range = { firstMs: Math.min(...at), untilMs: Math.max(...at) };
  const schedule = Result.getOrThrow(parseCron(CRON));
  const missing =
    at.length === 0 ? [] : [...instantsBetween(schedule, "UTC", range)].filter((ms) => !rows.has(ms));
  return [
    ...doubled(due, ({ projectId, slug, scheduledFor }) => `${projectId}/${slug} ${scheduledFor}`).map(
      (name) => `I2 the instant ${name} has more than one row`,
    ),
    ...missing.map((ms) => `I3 the instant ${new Date(ms).toISOString()} has no row`),
  ];
};

/** I2, I4: fires and sessions name each other; each waiting fire has its place. */
export const causes: Checker = ({ tables: { fires, sessions, queue } }) => {
  const sessionOf = new Map(sessions.map((row) => [row.id, row]));
  const fireOf = new Map(fires.map((row) => [row.id, row]));
  const waiting = new Set(queue.map(({ fireId }) => fireId));
  return [
    ...doubled(sessions, ({ fireId }) => fireId).map((id) => `I2 fire ${id} has more than one session`),
    ...fires.flatMap(({ id, status, sessionId }) => {
      if (status === "fired" && sessionOf.get(sessionId ?? "")?.fireId !== id)
        return [`I4 fire ${id} has fired and its session is missing`];
      return (status === "queued") === waiting.has(id)
        ? []
        : [`I4 fire ${id} is ${status}, its place in the queue says otherwise`];
    }),
    ...sessions.flatMap(({ id, fireId }) =>
      fireId !== null && fireOf.get(fireId)?.sessionId !== id
        ? [`I4 session ${id} has no fire that names it`]
        : [],
    ),
  ];
};

/** I4, I5: each accepted webhook has exactly one row and at most one session. */
export const deliveries: Checker = ({ tables, books }) => {
  const fires = tables.fires
    .filter(({ kind, replayOf }) => kind === "webhook" && replayOf === null)
    .map(({ id, status, deliveryId, sessionId }) => ({
      id,
      status,
      delivery_id: deliveryId,
      session_id: sessionId,
    }));
  const own = new Set(fires.map(({ id }) => id));
  const sessions = tables.sessions
    .filter(({ fireId }) => own.has(fireId ?? ""))
    .map(({ id, fireId }) => ({ id, fire_id: fireId }));
  return unaccounted(books.deliveries, { fires, sessions }).map((fault) => `I4 ${fault}`);
};

/** I4: everything that users were promised exists, and nothing that no user requested. */
export const promises: Checker = ({ tables, books }) => {
  const present = new Set(tables.sessions.map(({ id }) => id));
  const made = books.asked.filter(({ kind }) => kind === "create" || kind === "fire");
  const promised = made.filter(({ answer }) => answer === 201 || answer === 202);
  const creates = books.asked.filter(({ kind }) => kind === "create");
  const unsure = creates.filter(({ answer }) => answer === null).length;
  const answered = new Set(promised.map(({ sessionId }) => sessionId));
  const unasked = tables.sessions.filter(({ id, fireId }) => fireId === null && !answered.has(id));
  return [
    ...promised.flatMap(({ sessionId }) =>
      present.has(sessionId ?? "") ? [] : [`I4 session ${sessionId} was promised and is missing`],
    ),
    ...(unasked.length > unsure
      ? [`I4 ${unasked.length} unreported sessions, and ${unsure} creates without an answer`]
      : []),
  ];
};

/** I6: an action that was reported to a user as done stays done, until another request changes it. */
export const answers: Checker = ({ tables, books }) => {
  const sessionOf = new Map(tables.sessions.map((row) => [row.id, row]));
  return books.asked.flatMap(({ kind, sessionId, begun, answer }) => {
    const row = sessionOf.get(sessionId ?? "");
    if (row === undefined || answer === null || answer >= 300) return [];
    if (kind === "remove" && (!row.deleted || isLive(row)))
      return [`I6 session ${row.id} was deleted and is ${row.status}`];
    const restarted = books.asked.some(
      (other) => other.kind === "restart" && other.sessionId === row.id && (other.ended ?? Infinity) > begun,
    );
    return kind === "stop" && isLive(row) && !restarted
      ? [`I6 session ${row.id} was stopped and is ${row.status}`]
      : [];
  });
};

/** The API and the tables tell the same. */
export const agreement: Checker = ({ tables, said }) => {
  const shown = tables.sessions.filter(({ deleted }) => !deleted);
  return [
    ...shown.flatMap(({ id, status }) =>
      said.sessions.get(id) === status
        ? []
        : [`I4 session ${id} is ${status}, and ${said.sessions.get(id) ?? "not there"} in the API`],
    ),
    ...(said.sessions.size > shown.length
      ? [`I4 the API lists ${said.sessions.size} sessions of ${shown.length}`]
      : []),
  ];
};

/** I14: last_fired_at is that of the newest row that fired. */
export const lastFired: Checker = ({ tables: { fires, lastFired: said } }) =>
  [
    ...Map.groupBy(
      fires.filter(({ firedAt }) => firedAt !== null),
      ({ projectId, slug }) => `${projectId}/${slug}`,
    ),
  ].flatMap(([trigger, rows]) => {
    const newest = Math.max(...rows.map(({ firedAt }) => firedAt ?? 0));
    const row = said.find(({ projectId, slug }) => `${projectId}/${slug}` === trigger);
    return row?.at === newest
      ? []
      : [`I14 last_fired_at of ${trigger} is ${row?.at ?? "not there"}, its newest fire's ${newest}`];
  });

/** I22: each failure has a reason. */
export const reasons: Checker = ({ tables: { sessions, fires } }) => [
  ...sessions.flatMap(({ id, status, failure, stopReason }) => {
    if (status === "failed" && (failure === null || failure.code === "" || failure.message === ""))
      return [`I22 session ${id} failed without a reason`];
    return status === "stopped" && stopReason === null
      ? [`I22 session ${id} was stopped without a reason`]
      : [];
  }),
  ...fires.flatMap(({ id, status, reason }) =>
    status !== "fired" && reason === null ? [`I22 fire ${id} is ${status} without a reason`] : [],
  ),
];
