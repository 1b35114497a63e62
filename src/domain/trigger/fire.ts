/**
 * The life of a fire: its seven statuses and every move between them (api.md 4 "Ledger"). The planner of admissions, the SQL
 * adapter and the memory twin use this table. Its diagram is generated into src/machines/README.md.
 *
 *  F1 A row begins with one of the moves of `new`.
 *  F2 Only a `queued` fire waits. Each end of a wait is one of its moves.
 *  F3 A repeated delivery tries a failed, expired or cancelled fire again, under the same row.
 *  F4 `fired`, `skipped` and `duplicate` are final.
 */
export const FIRE_STATUSES = [
  "queued",
  "fired",
  "failed",
  "skipped",
  "expired",
  "cancelled",
  "duplicate",
] as const;

export type FireStatus = (typeof FIRE_STATUSES)[number];

/** Where a row comes from: another status, or nothing. */
export type FormerFireStatus = FireStatus | "new";

/** The statuses that a fire may get, each with the reason. */
type Moves = Partial<Record<FireStatus, string>>;

/** F2. */
const WAITS = {
  fired: "slot.freed",
  failed: "slot.freed, no prompt",
  skipped: "a later instant replaces it",
  expired: "the wait is over",
  cancelled: "cancelled, its project is archived, or its person may not ask any more",
} as const satisfies Moves;

/** A status in which a wait may end. */
export type WaitEnd = keyof typeof WAITS;

/** F3. */
const RETRIED: Moves = {
  fired: "delivery.repeated, a slot is free",
  queued: "delivery.repeated, no slot is free",
  failed: "delivery.repeated, no prompt",
  skipped: "delivery.repeated, it starts nothing",
};

export const FIRE_MOVES: Readonly<Record<FormerFireStatus, Moves>> = {
  new: {
    fired: "a slot is free",
    queued: "no slot is free",
    failed: "no prompt, or the queue is full",
    skipped: "it starts nothing, missed or paused",
    duplicate: "the delivery has its row",
  },
  queued: WAITS,
  failed: RETRIED,
  expired: RETRIED,
  cancelled: RETRIED,
  fired: {},
  skipped: {},
  duplicate: {},
};

/** Whether a repeated delivery tries the fire again (F3). */
export const isRetried = (status: FireStatus): boolean => FIRE_MOVES[status] === RETRIED;

/** A defect of the program. The store writes nothing. */
export class ForbiddenMove extends Error {
  readonly _tag = "ForbiddenMove";
  constructor(former: FormerFireStatus | "its status", next: FireStatus) {
    super(`a fire cannot go from ${former} to ${next}`);
  }
}

/** @throws ForbiddenMove */
export const requireMove = (former: FormerFireStatus, next: FireStatus): void => {
  if (FIRE_MOVES[former][next] === undefined) throw new ForbiddenMove(former, next);
};

/** Stricter than `requireMove`: the fire must wait. @throws ForbiddenMove */
export const requireWaits = (former: FormerFireStatus, next: WaitEnd): void => {
  if (former !== "queued") throw new ForbiddenMove(former, next);
};
