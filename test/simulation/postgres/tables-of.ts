/** The database's rows as the checkers know them: what the twin's tables would hold. */
import { TableSet } from "../../twins/store/tables.ts";
import type { Bridge } from "./bridge.ts";

type Row = Readonly<Record<string, unknown>>;

const TEXTS = {
  accounts: "SELECT *, session_cap AS cap FROM accounts ORDER BY id",
  projects: "SELECT * FROM projects ORDER BY id",
  sessions: "SELECT * FROM project_sessions ORDER BY created_at, id",
  sandboxes: "SELECT * FROM session_sandboxes ORDER BY created_at, id",
  tokens: "SELECT * FROM tokens ORDER BY created_at, id",
  fires: "SELECT * FROM fires ORDER BY id",
  queue: "SELECT * FROM fire_queue ORDER BY arrival",
  fired: "SELECT * FROM project_trigger_runtime",
  cursors: "SELECT * FROM trigger_cursors",
  requests: "SELECT * FROM change_requests ORDER BY created_at, id",
  outbox: "SELECT * FROM outbox ORDER BY id",
} as const;

const named = (row: Row): Row =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
      value,
    ]),
  );

const text = (row: Row, name: string): string => String(row[name]);

const nested = <A>(of: Map<string, Map<string, A>>, row: Row, value: A): void => {
  const inner = of.get(text(row, "projectId")) ?? new Map<string, A>();
  of.set(text(row, "projectId"), inner.set(text(row, "slug"), value));
};

const put = (map: ReadonlyMap<string, unknown>, id: string, value: unknown): void =>
  void (map as Map<string, unknown>).set(id, value);

const outboxes = (tables: TableSet) => ({
  session: tables.sessionOutbox,
  sandbox: tables.sandboxOutbox,
  change_request: tables.changeRequestOutbox,
  conversation: tables.conversationOutbox,
  environment_build: tables.environmentBuildOutbox,
});

/** A change request's row, in the twin's shape. */
const requestOf = (row: Row): Row => {
  const { baseCommit: base, headCommit: head, mergedCommit: commit, mergedAt, mergedBy: by } = row;
  const record = {
    ...row,
    mergeSides: base === null ? null : { base, head },
    merged: commit === null ? null : { commit, at: mergedAt, by },
  };
  return { record, snapshot: { state: row["state"], context: row["stateContext"] }, version: row["version"] };
};

/** All of one instant. */
export const readTables = (bridge: Bridge): TableSet => {
  const answers = bridge.order({
    do: "snapshot",
    texts: Object.values(TEXTS),
  }) as readonly (readonly Row[])[];
  const rows = Object.fromEntries(
    Object.keys(TEXTS).map((name, index) => [name, (answers[index] ?? []).map(named)]),
  ) as unknown as Readonly<Record<keyof typeof TEXTS, readonly Row[]>>;
  const tables = new TableSet();
  for (const row of rows.accounts) put(tables.accounts, text(row, "id"), row);
  for (const row of rows.projects) put(tables.projects, text(row, "id"), { record: row });
  for (const row of rows.tokens) put(tables.tokens, text(row, "id"), row);
  for (const row of rows.fires) put(tables.fires, text(row, "id"), row);
  for (const row of rows.sessions) {
    const context = row["stateContext"] as { readonly sandboxId: string | null };
    const record = { ...row, sandboxId: context.sandboxId };
    const snapshot = { state: row["status"], context };
    put(tables.sessions, text(row, "id"), { record, snapshot, version: row["version"] });
  }
  for (const row of rows.sandboxes) {
    const snapshot = { state: row["status"], context: row["stateContext"] };
    put(tables.sandboxes, text(row, "id"), { record: row, snapshot, version: row["version"] });
  }
  for (const row of rows.requests) put(tables.changeRequests, text(row, "id"), requestOf(row));
  tables.queue = rows.queue as unknown as TableSet["queue"];
  for (const row of rows.fired) nested(tables.lastFired, row, Number(row["lastFiredAt"]));
  for (const row of rows.cursors) nested(tables.cursors as Map<string, Map<string, unknown>>, row, row);
  for (const row of rows.outbox) {
    const kind = row["actorKind"] as keyof ReturnType<typeof outboxes>;
    outboxes(tables)[kind].append(text(row, "actorId"), [row["command"] as never], 0);
  }
  return tables;
};
