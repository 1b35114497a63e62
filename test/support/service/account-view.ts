/** The account of a running service, as its API shows it: the ledger, its sessions, its counters. */
import { instantsBetween, type CronSchedule } from "../../../src/domain/trigger/cron.ts";
import { eventually } from "./eventually.ts";
import type { Life } from "./process-service.ts";
import type { FireRow, Ledger, SessionRow } from "../webhooks/webhook-ledger.ts";

/** A row of the ledger, with the fields that distinguish due instants. */
interface DueRow extends FireRow {
  readonly kind: string;
  readonly scheduled_for: string | null;
}
interface Session extends SessionRow {
  readonly status: string;
  readonly trigger_slug: string | null;
}
interface Counters {
  readonly active_sessions: number;
  readonly queued_fires: number;
}

export { eventually };

const LIVE = new Set(["provisioning", "running"]);

/** Reads until two consecutive readings agree. The state between them is then the same. */
const steady = async <A>(read: () => Promise<A>): Promise<A> => {
  let reading = await read();
  for (;;) {
    const again = await read();
    if (JSON.stringify(again) === JSON.stringify(reading)) return reading;
    reading = again;
  }
};

export const sessionsOf = (life: Life, projectId: string): Promise<readonly Session[]> =>
  life.everyPage<Session>(`/v1/projects/${projectId}/sessions`, "sessions");

export const firesOf = (life: Life, projectId: string): Promise<readonly DueRow[]> =>
  life.everyPage<DueRow>(`/v1/projects/${projectId}/fires`, "fires");

export const stopSession = (life: Life, projectId: string, id: string) =>
  life.call("POST", `/v1/projects/${projectId}/sessions/${id}/stop`);

const countersOf = async (life: Life): Promise<Counters> =>
  ((await life.call("GET", "/v1/me")) as { account: Counters }).account;

/** The fires, and the sessions that were started for them. */
export const ledgerOf = (life: Life, projectId: string): Promise<Ledger> =>
  steady(async () => {
    const fires = await firesOf(life, projectId);
    const sessions = await sessionsOf(life, projectId);
    return { fires, sessions: sessions.filter(({ trigger_slug: slug }) => slug !== null) };
  });

/** The account's counters, and the rows in its projects that they count. */
export const countedOf = (life: Life, projectIds: readonly string[]) =>
  steady(async () => {
    const { active_sessions: active, queued_fires: queued } = await countersOf(life);
    const queue = await life.everyPage("/v1/queue", "queue");
    const sessions = (await Promise.all(projectIds.map((id) => sessionsOf(life, id)))).flat();
    const fires = (await Promise.all(projectIds.map((id) => firesOf(life, id)))).flat();
    return {
      said: { active, queued },
      counted: { active: sessions.filter(({ status }) => LIVE.has(status)).length, queued: queue.length },
      waiting: fires.filter(({ status }) => status === "queued").length,
    };
  });

/** Stops live sessions, and those started in their place, until nothing waits and nothing is live. */
export const emptied = (life: Life, projectIds: readonly string[]): Promise<void> =>
  eventually(async () => {
    for (const projectId of projectIds)
      for (const { id, status } of await sessionsOf(life, projectId))
        if (LIVE.has(status)) await stopSession(life, projectId, id);
    const counters = await countersOf(life);
    if (counters.active_sessions + counters.queued_fires > 0) throw new Error(JSON.stringify(counters));
  });

/** Fills all slots of an account with this cap. @returns the sessions' ids. */
export const filled = async (life: Life, projectId: string, cap: number): Promise<readonly string[]> => {
  const made: string[] = [];
  for (let slot = 0; slot < cap; slot += 1) {
    const { id } = await life.call("POST", `/v1/projects/${projectId}/sessions`, {});
    made.push(String(id));
  }
  return made;
};

/** The instants that have a row, in ms, earliest first. */
export const instantsOf = async (life: Life, projectId: string): Promise<readonly number[]> => {
  const rows = await firesOf(life, projectId);
  return rows
    .flatMap(({ scheduled_for: at }) => (at === null ? [] : [Date.parse(at)]))
    .toSorted((a, b) => a - b);
};

/** Completes when an instant at most this many seconds ahead has its row. @returns it, in ms. */
export const instantAhead = (life: Life, projectId: string, seconds = 0): Promise<number> => {
  const from = performance.timeOrigin + performance.now() + seconds * 1000;
  return eventually(async () => {
    const last = (await instantsOf(life, projectId)).at(-1) ?? 0;
    if (last <= from) throw new Error(`the last instant is ${new Date(last).toISOString()}`);
    return last;
  });
};

/**
 * Compares a project's rows with the expression of its cron trigger, in UTC, and its sessions with the rows: threats.md
 * I2 and I3.
 *
 * @returns a sentence for each instant that does not have exactly one row, and for each fire and session without the
 * other.
 */
export const instantsUnaccounted = async (
  life: Life,
  projectId: string,
  {
    schedule,
    ...range
  }: { readonly schedule: CronSchedule; readonly firstMs: number; readonly untilMs: number },
): Promise<readonly string[]> => {
  const { fires, sessions } = await steady(async () => ({
    fires: await firesOf(life, projectId),
    sessions: await sessionsOf(life, projectId),
  }));
  const found: string[] = [];
  const rows = Map.groupBy(fires, ({ scheduled_for: at }) => at);
  for (const instant of instantsBetween(schedule, "UTC", range)) {
    const at = new Date(instant).toISOString();
    const count = rows.get(at)?.length ?? 0;
    if (count !== 1) found.push(`${at} has ${count} rows`);
  }
  const causes = Map.groupBy(sessions, ({ fire_id: id }) => id);
  for (const { id, status, session_id: started } of fires) {
    const own = causes.get(id) ?? [];
    if (own.length !== (status === "fired" ? 1 : 0) || own.some((session) => session.id !== started))
      found.push(`fire ${id} is ${status} and has ${own.length} sessions`);
  }
  const known = new Set(fires.map(({ id }) => id));
  for (const { id, fire_id: cause } of sessions)
    if (cause === null || !known.has(cause)) found.push(`session ${id} has no fire`);
  return found;
};
