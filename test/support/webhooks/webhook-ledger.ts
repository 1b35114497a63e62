/** Checks that every accepted webhook is accounted for, and that the service has nothing without a cause. */
import type { Answer, RequestLog } from "./webhook-sender.ts";

/** The fields of a row of `GET …/fires` that are checked. */
export interface FireRow {
  readonly id: string;
  readonly status: string;
  readonly delivery_id: string | null;
  readonly session_id: string | null;
}

/** A session of `GET …/sessions`. */
export interface SessionRow {
  readonly id: string;
  readonly fire_id: string | null;
}

export interface Ledger {
  readonly fires: readonly FireRow[];
  readonly sessions: readonly SessionRow[];
}

const ACCEPTED = 202;

const grouped = <A>(items: readonly A[], key: (item: A) => string | null): Map<string, A[]> => {
  const groups = new Map<string, A[]>();
  for (const item of items) {
    const name = key(item);
    if (name !== null) groups.set(name, [...(groups.get(name) ?? []), item]);
  }
  return groups;
};

const sessionNamed = ({ body }: Answer): string | null =>
  body["status"] === "fired" ? String(body["session_id"]) : null;

/** Contradictions among the answers that one delivery got (api.md 4 "Webhook"). */
const contradictions = (accepted: readonly Answer[]): string[] => {
  const found: string[] = [];
  const named = new Set(accepted.map(sessionNamed).filter((id) => id !== null));
  if (named.size > 1) found.push(`was answered with ${named.size} sessions`);
  if (accepted.filter(({ body }) => body["duplicate"] !== true).length > 1)
    found.push("was taken for new more than once");
  const firedAt = Math.min(
    ...accepted.filter((answer) => sessionNamed(answer) !== null).map(({ ended }) => ended),
  );
  if (accepted.some((answer) => sessionNamed(answer) === null && answer.begun > firedAt))
    found.push("was told that it waits after it was told that it had fired");
  return found;
};

/** Contradictions between a delivery's answers and its rows. */
const mismatches = (accepted: readonly Answer[], rows: readonly FireRow[]): string[] => {
  const [row] = rows;
  if (row === undefined || rows.length > 1) return [`has ${rows.length} rows in the ledger`];
  const told = accepted.map(sessionNamed).find((id) => id !== null);
  return told === undefined || (row.status === "fired" && row.session_id === told)
    ? []
    : [`was answered with session ${told}, and its row is ${row.status} with session ${row.session_id}`];
};

/** Sessions without a cause, sessions that share one, and fires without their session. */
const orphans = (log: RequestLog, { fires, sessions }: Ledger): string[] => {
  const found: string[] = [];
  const fireOf = new Map(fires.map((fire) => [fire.id, fire]));
  const present = new Set(sessions.map(({ id }) => id));
  for (const { id, fire_id } of sessions) {
    const fire = fire_id === null ? undefined : fireOf.get(fire_id);
    if (fire === undefined || fire.session_id !== id) found.push(`session ${id} has no fire that names it`);
  }
  for (const { id, delivery_id, status, session_id } of fires) {
    if (delivery_id === null || !log.has(delivery_id))
      found.push(`fire ${id} is of no delivery that was sent`);
    if (status === "fired" && (session_id === null || !present.has(session_id)))
      found.push(`fire ${id} has fired and session ${session_id} is missing`);
  }
  for (const [id, causes] of grouped(fires, ({ session_id, status }) =>
    status === "duplicate" ? null : session_id,
  ))
    if (causes.length > 1) found.push(`session ${id} is named by ${causes.length} fires`);
  return found;
};

/**
 * Compares the answers to the sender with the service's state: threats.md I4 and I5.
 *
 * @returns a sentence for everything that is lost, doubled or without a cause. Empty if all is accounted for.
 */
export const unaccounted = (log: RequestLog, ledger: Ledger): readonly string[] => {
  const rows = grouped(
    ledger.fires.filter(({ status }) => status !== "duplicate"),
    ({ delivery_id }) => delivery_id,
  );
  const sessions = grouped(ledger.sessions, ({ fire_id }) => fire_id);
  const found: string[] = [];
  for (const [id, answers] of log) {
    const accepted = answers.filter(({ status }) => status === ACCEPTED);
    const refused = answers.filter(({ status }) => status !== ACCEPTED && status < 500);
    const own = rows.get(id) ?? [];
    const started = own.flatMap((row) => sessions.get(row.id) ?? []);
    const faults = [
      ...refused.map(({ status }) => `was refused with ${status}`),
      ...contradictions(accepted),
      ...(accepted.length === 0 ? [] : mismatches(accepted, own)),
      ...(started.length > 1 ? [`has ${started.length} sessions`] : []),
    ];
    found.push(...faults.map((fault) => `${id} ${fault}`));
  }
  return [...found, ...orphans(log, ledger)];
};
