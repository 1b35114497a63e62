/** Sessions: the records of project_sessions, and the memory of their actors. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import type { Fragment } from "effect/sql/Statement";
import { searchWords } from "../../../domain/conversation/search.ts";
import { isLive } from "../../../domain/session/session.ts";
import type { SessionCommand, SessionEvent, SessionSnapshot } from "../../../machines/session.ts";
import { writeCursor, cutPage, readCursor } from "../../cursor.ts";
import {
  sessionDeletedEvent,
  sessionStatusEvent,
  sessionUpdatedEvent,
  workUnsavedEvent,
} from "../../event-rows.ts";
import type { Change } from "../../ports/journal.ts";
import {
  PROMPT_AS_NAME_MAX,
  Sessions,
  LIST_SCAN_MAX,
  type OwnerlessSession,
  type RunningSession,
  type Session,
  type SessionFilter,
  type ShownSession,
  type SessionRequest,
} from "../../ports/sessions/sessions.ts";
import {
  dismissedRow,
  sessionColumns,
  slotMove,
  unsavedNews,
  type SessionColumns,
} from "../../session-columns.ts";
import { filterReach } from "../../session-filters.ts";
import { hitIn, type FoundItem } from "../../session-hits.ts";
import { insertAudit } from "../audit.ts";
import { makeActorMemory } from "../actor-memory.ts";
import { Endings } from "../connection/endings.ts";
import { FOUND_ITEM, wordsQuery } from "../conversations/search.ts";
import { EventLog } from "../events/event-log.ts";
import { noteFailure } from "../triggers/fires.ts";
import {
  archivedRow,
  asksInSleep,
  firstSession,
  readSession,
  hasActivity,
  pendingCalls,
  SESSION_COLUMNS,
  shownColumns,
  readShownSession,
  withConversations,
  type SessionRow,
  type ShownRow,
} from "./session-rows.ts";
import { releaseSlot, reserveSlot } from "../triggers/slots.ts";
import { makeNoteSaves } from "./session-saves.ts";
import { makeNoteTurn } from "./turn-endings.ts";
import { plannedAnew, onSharedConnection } from "../connection/prepared.ts";
import { afterPosition, at, jsonb, pageLimit, toStored } from "../connection/statement.ts";
import { readableProjects } from "../people/roles.ts";

/** The columns that a step sets, as the update names them. */
const assignments = (columns: SessionColumns, now: number) => ({
  updated_at: at(now),
  ...(columns.baseCommit !== undefined && { base_commit: columns.baseCommit }),
  ...(columns.failure !== undefined && {
    failure: columns.failure && jsonb({ code: columns.failure.code, message: columns.failure.message }),
    failed_at: at(columns.failure?.at ?? null),
  }),
  ...(columns.stopReason !== undefined && { stop_reason: columns.stopReason }),
  ...(columns.saved !== undefined && { saved: jsonb(columns.saved) }),
  ...(columns.unsaved !== undefined && { unsaved: columns.unsaved && jsonb(columns.unsaved) }),
  ...(columns.restoreSaved !== undefined && { restore_saved: columns.restoreSaved }),
  ...(columns.restored !== undefined && { restored: columns.restored }),
  ...(columns.runningAt !== undefined && { running_at: at(columns.runningAt) }),
  ...(columns.stoppedAt !== undefined && { stopped_at: at(columns.stoppedAt) }),
  ...(columns.deletedAt !== undefined && { deleted_at: at(columns.deletedAt) }),
});

type SessionChange = Change<SessionSnapshot, SessionEvent, SessionCommand>;
type Service = (typeof Sessions)["Service"];

interface SavedRow {
  readonly sessionId: string;
  readonly accountId: string;
  readonly projectId: string;
  readonly isFired: boolean;
}

/** Whether a session that failed has a new failure, or no longer has an old one. */
const isFailureNew = ({ before, after: { state } }: SessionChange): boolean =>
  before.state !== state && [before.state, state].includes("failed");

/** Whether a step changes more than the session's row and what the same statement adds. */
const changesMore = (change: SessionChange): boolean =>
  sessionColumns(change).deletedAt !== undefined || slotMove(change) !== "keep" || isFailureNew(change);

/** The event that the step's statement writes. */
const toEvent = (change: SessionChange, columns: SessionColumns) => {
  const {
    before,
    after: { state },
    now,
  } = change;
  if (before.state !== state) return sessionStatusEvent({ at: now }, { ...columns, previous: before.state });
  const news = unsavedNews(change);
  return news === null ? null : workUnsavedEvent({ at: now }, news);
};

const makeMemory = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const events = yield* EventLog;
  const endings = yield* Endings;

  const writes = (change: SessionChange) => {
    const { id, before, after: snapshot, now } = change;
    const columns = sessionColumns(change);
    const slot = slotMove(change);
    const event = toEvent(change, columns);
    const unsavedWork = before.state === snapshot.state ? null : unsavedNews(change);
    const finish = Effect.fnUntraced(function* ({ accountId, projectId, isFired }: SavedRow) {
      if (columns.deletedAt !== undefined) {
        yield* sql`DELETE FROM session_logs WHERE session_id = ${id}`;
        yield* sql`DELETE FROM conversations WHERE session_id = ${id}`;
        yield* sql`DELETE FROM outbox WHERE actor_kind = 'conversation' AND actor_id = ${id}`;
      }
      if (columns.deletedAt !== undefined || !isLive(snapshot.state)) yield* endings.say([id]);
      const place = { projectId, sessionId: id, at: now };
      if (unsavedWork !== null) yield* events.append([workUnsavedEvent(place, unsavedWork)]);
      if (columns.deletedAt !== undefined) yield* events.append([sessionDeletedEvent(place)]);
      const row = dismissedRow(change, { id, accountId, projectId });
      if (row !== null) yield* insertAudit(sql, row);
      if (event !== null) yield* events.wake(projectId);
      // The account's row is locked last and for the shortest time, since every session of the account needs it.
      if (slot === "release") yield* releaseSlot(sql, accountId);
      if (slot === "reserve") yield* reserveSlot(sql, accountId);
      if (isFailureNew(change) && isFired) yield* noteFailure(sql, id);
    });
    return Effect.succeed({
      columns: assignments(columns, now),
      // In an UPDATE, right-hand sides see the former row: see `restartDeadline`.
      ...(slot === "reserve" && {
        assignments: sql`, boot_deadline_at = ${at(now)}::timestamptz + (boot_deadline_at - provisioned_at), provisioned_at = ${at(now)}`,
      }),
      event,
      finish,
    });
  };

  return yield* makeActorMemory<SessionSnapshot, SessionEvent, SessionCommand, SavedRow>({
    kind: "session",
    name: "sessions",
    table: "project_sessions",
    key: "id",
    state: "status",
    returning: `id AS "sessionId", account_id AS "accountId", project_id AS "projectId", fire_id IS NOT NULL AS "isFired"`,
    isOneStatement: (change) => !changesMore(change),
    writes,
  });
});

/** The conditions of a filter on the rows that a list looks at. */
const filterConditions = (
  sql: SqlClient.SqlClient,
  filter: SessionFilter,
  approver: Fragment,
): readonly Fragment[] => {
  const { status, turn, activities, archived, triggerSlug, startedBy, createdBy, parentSessionId, search } =
    filter;
  const turns = (states: Fragment) =>
    sql`EXISTS (SELECT FROM conversations WHERE session_id = looked.id AND turn_state IN (${states}))`;
  const approvable = sql`EXISTS (SELECT FROM ${sql.literal(pendingCalls("looked.id"))} AND ${approver})`;
  return [
    status !== null && sql`status::text = ${status}`,
    turn === "idle" && sql`NOT ${turns(sql`'running', 'requires_action'`)}`,
    turn === "running" && turns(sql`${turn}`),
    turn === "requires_action" &&
      sql`(${turns(sql`${turn}`)} AND status IN ('provisioning', 'running') OR unsaved IS NOT NULL OR ${approvable})`,
    activities !== undefined && sql.literal(hasActivity("looked", activities)),
    archived !== undefined && sql`${sql.literal(archivedRow("looked"))} = ${archived}`,
    triggerSlug !== undefined && sql`trigger_slug = ${triggerSlug}`,
    startedBy === "person" && sql`trigger_slug IS NULL`,
    startedBy === "trigger" && sql`trigger_slug IS NOT NULL`,
    createdBy !== undefined && sql`created_by = ${createdBy}`,
    parentSessionId !== undefined && sql`parent_session_id = ${parentSessionId}`,
    search !== undefined &&
      sql`(strpos(lower(coalesce(name, trigger_slug, left(initial_prompt, ${PROMPT_AS_NAME_MAX}))), lower(${search})) > 0
        OR id IN (SELECT session_id FROM found))`,
  ].filter((condition) => condition !== false);
};

const positionIn = ({ createdAt, id }: Pick<Session, "createdAt" | "id">) => ({ at: createdAt, id });

/** The newest message or answer of each session in which all words of a search are: see hasWords of the domain. */
const foundIn = (sql: SqlClient.SqlClient, words: readonly string[]): Fragment => {
  const wordMatch =
    words.length === 0 ? sql`false` : sql`words @@ to_tsquery('simple', ${wordsQuery(words)})`;
  return sql`found AS MATERIALIZED (
    SELECT DISTINCT ON (session_id) session_id, id AS item_id FROM conversation_items
    WHERE words IS NOT NULL AND ${wordMatch}
    ORDER BY session_id, place DESC
  )`;
};

/** What of a row of `page` a search found. */
const HIT = `(SELECT ${FOUND_ITEM}
  FROM found JOIN conversation_items AS item ON item.session_id = found.session_id AND item.id = found.item_id
  WHERE found.session_id = page.id) AS found`;

/** What a search shows of what it found. */
const withHit = (
  { found, ...row }: ShownRow & { readonly found: FoundItem | null },
  words: readonly string[],
): ShownSession => ({ ...readShownSession(row), hit: found && hitIn(found, words) });

/** The sessions of a list. `approver`: whether its reader may approve calls of a session that is looked at. */
interface Scope {
  readonly scope: Fragment;
  readonly approver: Fragment;
}

/** Until when a person has seen a row of `page`. Events from before she came are no news to her. */
const seenBy = (sql: SqlClient.SqlClient, reader: string | undefined): Fragment =>
  reader === undefined
    ? sql`NULL::timestamptz`
    : sql`(SELECT greatest(max(seen_at), page.seen_before, (SELECT created_at FROM users WHERE id = ${reader}))
        FROM session_reads WHERE session_id = page.id AND user_id = ${reader})`;

/** A page of the sessions in a project or an account, out of the newest ones that the filter may look at. */
const listIn = (sql: SqlClient.SqlClient) =>
  Effect.fnUntraced(function* ({ scope, approver }: Scope, request: SessionRequest) {
    const { cursor, limit, reader, lookedAt = LIST_SCAN_MAX } = request;
    const position = yield* readCursor(cursor);
    const conditions = filterConditions(sql, request, request.mayApprove === true ? approver : sql`false`);
    // Few sessions are live, and an index has them: an old one among them is found too.
    const reach = filterReach(request);
    const live = sql`status IN ('provisioning', 'running')`;
    // A session may have ended while a call of it waits, an answer, or its restart. Each part of the union has an index with few rows.
    const open = sql`id IN (
      SELECT id FROM project_sessions WHERE ${scope} AND ${live}
      UNION SELECT id FROM project_sessions WHERE ${scope} AND ${sql.literal(asksInSleep("project_sessions"))}
      UNION SELECT session_id FROM executor_calls WHERE outcome = 'pending'
      UNION SELECT actor_id FROM outbox WHERE actor_kind = 'session' AND command ->> 'type' = 'restartAfterStop'
    )`;
    const candidates = sql`
      SELECT * FROM project_sessions
      WHERE ${scope} AND deleted_at IS NULL
        ${reach === "all" ? sql.literal("") : sql`AND ${reach === "open" ? open : live}`}
        ${afterPosition(sql, { at: "created_at", id: "id" }, position)}
      ORDER BY created_at DESC, id DESC`;
    const withPlan = conditions.length === 0 ? onSharedConnection : plannedAnew;
    // Without a filter, the page is all that is looked at, and the plan knows how small it is. The page is cut before the
    // conversations are joined: else the planner may join all sessions that are looked at.
    const most = conditions.length === 0 ? Math.min(limit + 1, lookedAt) : lookedAt;
    const words = request.search === undefined ? null : searchWords(request.search);
    const rows = yield* sql<ShownRow & { readonly found: FoundItem | null }>`
      ${words === null ? sql.literal("") : sql`WITH ${foundIn(sql, words)}`}
      SELECT ${sql.literal(shownColumns("page"))}, ${seenBy(sql, reader)} AS "seenAt",
        ${sql.literal(words === null ? "NULL AS found" : HIT)} FROM (
        SELECT * FROM (${candidates} LIMIT ${sql.literal(String(most))}) AS looked
        ${conditions.length === 0 ? sql.literal("") : sql`WHERE ${sql.and(conditions)}`}
        ORDER BY created_at DESC, id DESC ${pageLimit(sql, limit)}
      ) AS page ${sql.literal(withConversations("page"))}
      ORDER BY created_at DESC, id DESC`.pipe(withPlan);
    const sessions = rows.map((row) => withHit(row, words ?? []));
    if (rows.length > limit || conditions.length === 0) return cutPage(sessions, limit, positionIn);
    const [last] = yield* sql<Pick<Session, "createdAt" | "id">>`
      SELECT created_at AS "createdAt", id FROM (${candidates} OFFSET ${lookedAt - 1} LIMIT 1) AS looked`.pipe(
      withPlan,
    );
    return {
      items: sessions,
      nextCursor: last === undefined ? null : writeCursor(positionIn(last)),
    };
  });

/** `list` and `listForReader` of the port. */
const makeLists = (sql: SqlClient.SqlClient): Pick<Service, "list" | "listForReader"> => {
  const list = listIn(sql);
  return {
    list: (projectId, request) =>
      list({ scope: sql`project_id = ${projectId}`, approver: sql`true` }, request).pipe(
        toStored("sessions.list"),
      ),
    listForReader: ({ accountId, userId }, request) => {
      const reader = { accountId, userId };
      const isSeen = userId === null ? sql`true` : sql`project_id IN (${readableProjects(sql, reader)})`;
      const approver =
        userId === null ? sql`true` : sql`looked.project_id IN (${readableProjects(sql, reader, "member")})`;
      return list({ scope: sql`account_id = ${accountId} AND ${isSeen}`, approver }, request).pipe(
        toStored("sessions.listForReader"),
      );
    },
  };
};

/** What the sweeper asks. A session that restarts after its stop makes no room. */
const ofSweeper = (sql: SqlClient.SqlClient): Pick<Sessions["Service"], "runningOn" | "roomWanted"> => ({
  runningOn: (nodeId) =>
    sql<RunningSession>`
      SELECT session.id, session.account_id AS "accountId", sandbox.id AS "sandboxId",
        session.running_at AS "runningAt", session.unsaved, coalesce(session.saved ->> 'state' = 'complete', false) AS "isSaved",
        (SELECT turn_request FROM conversations WHERE session_id = session.id AND turn_state = 'requires_action') AS asks,
        session.unsaved IS NOT NULL AND (
          SELECT count(*) FROM project_sessions AS other
          WHERE other.account_id = session.account_id AND other.status = 'running'
            AND (other.unsaved -> 'since', other.id) > (session.unsaved -> 'since', session.id)
        ) >= (SELECT session_cap / 2 FROM accounts WHERE id = session.account_id) AS "isSurplus"
      FROM project_sessions AS session
      JOIN session_sandboxes AS sandbox ON sandbox.session_id = session.id AND sandbox.status = 'active'
      WHERE session.status = 'running' AND sandbox.node_id = ${nodeId}`.pipe(toStored("sessions.runningOn")),
  roomWanted: sql<{ readonly id: string; readonly count: number }>`
    SELECT * FROM (
      SELECT account.id, (waiting.count - greatest(account.session_cap - account.active_sessions, 0) - (
        SELECT count(*) FROM project_sessions AS session
        WHERE session.account_id = account.id AND session.status = 'running'
          AND session.state_context ->> 'ending' IS NOT NULL AND session.state_context ->> 'next' IS NULL
      ))::integer AS count
      FROM (SELECT account_id, count(*) FROM fire_queue WHERE kind = 'session' GROUP BY account_id) AS waiting
      JOIN accounts AS account ON account.id = waiting.account_id
    ) AS wanted WHERE count > 0`.pipe(
    Effect.map((rows) => new Map(rows.map(({ id, count }) => [id, count]))),
    toStored("sessions.roomWanted"),
  ),
});

/** Live sessions without any work left, and live sandboxes that their session without any work left does not hold. */
const ownerlessIn = (sql: SqlClient.SqlClient) =>
  sql<OwnerlessSession>`
    SELECT session.id, session.state_context ->> 'sandboxId' AS "sandboxId", sandbox.status AS sandbox,
      true AS "isHeld"
    FROM project_sessions AS session
    LEFT JOIN session_sandboxes AS sandbox ON sandbox.id = (session.state_context ->> 'sandboxId')::uuid
    WHERE session.status IN ('provisioning', 'running')
      AND NOT EXISTS (SELECT FROM outbox WHERE actor_kind = 'session' AND actor_id = session.id)
      AND NOT EXISTS (SELECT FROM outbox WHERE actor_kind = 'sandbox' AND actor_id = sandbox.id)
    UNION ALL
    SELECT session.id, sandbox.id::text, sandbox.status, false
    FROM session_sandboxes AS sandbox
    JOIN project_sessions AS session ON session.id = sandbox.session_id
    WHERE sandbox.status IN ('provisioning', 'active') AND sandbox.state_context ->> 'ending' IS NULL
      AND (
        session.status NOT IN ('provisioning', 'running')
        OR session.state_context ->> 'sandboxId' IS DISTINCT FROM sandbox.id::text
      )
      AND NOT EXISTS (SELECT FROM outbox WHERE actor_kind = 'session' AND actor_id = session.id)`;

/** Writes of what lists show of a session, each with the event `session.updated`. */
const makeShownWrites = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const events = yield* EventLog;
  const update = Effect.fnUntraced(function* (
    id: string,
    change: Fragment,
    { now, condition = sql`true` }: { readonly now: number; readonly condition?: Fragment },
  ) {
    const [row] = yield* sql<SessionRow>`
      WITH updated AS (
        UPDATE project_sessions SET ${change} WHERE id = ${id} AND deleted_at IS NULL AND ${condition} RETURNING *
      ), news AS (${events.insertionIn(sessionUpdatedEvent({ at: now }), sql`(SELECT project_id, id AS session_id FROM updated)`)})
      SELECT ${sql.literal(SESSION_COLUMNS)} FROM updated`;
    if (row === undefined) return null;
    const session = readSession(row);
    yield* events.wake(session.projectId);
    return session;
  });
  const rename: Service["rename"] = (id, { name, metadata, archivedAt, now }) => {
    const change = sql`updated_at = ${at(now)},
      name = CASE WHEN ${name !== undefined} THEN ${name ?? null} ELSE name END,
      metadata = coalesce(${metadata === undefined ? null : jsonb(metadata)}::jsonb, metadata),
      archived_at = CASE WHEN ${archivedAt === undefined} THEN archived_at
        ELSE ${archivedAt === undefined || archivedAt === null ? null : at(archivedAt)}::timestamptz END`;
    return update(id, change, { now }).pipe(toStored("sessions.rename"));
  };
  const noteChanges: Service["noteChanges"] = (id, changes, now) =>
    update(id, sql`changes = ${jsonb(changes)}`, { now }).pipe(
      Effect.asVoid,
      toStored("sessions.noteChanges"),
    );
  const entitle: Service["entitle"] = (id, { title, former, now }) =>
    update(id, sql`name = ${title}`, { now, condition: sql`(name IS NULL OR name = ${former})` }).pipe(
      Effect.asVoid,
      toStored("sessions.entitle"),
    );
  return { rename, noteChanges, entitle };
});

const seeIn = (sql: SqlClient.SqlClient): Pick<Service, "see"> => ({
  see: (id, { userId, at: seenAt }) =>
    sql`
      INSERT INTO session_reads (session_id, user_id, seen_at) VALUES (${id}, ${userId}, ${at(seenAt)})
      ON CONFLICT ON CONSTRAINT session_reads_pkey
        DO UPDATE SET seen_at = greatest(session_reads.seen_at, excluded.seen_at)`.pipe(
      Effect.asVoid,
      toStored("sessions.see"),
    ),
});

export const layer = Layer.effect(
  Sessions,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const columns = sql.literal(SESSION_COLUMNS);
    const memory = yield* makeMemory;
    const noteTurn = yield* makeNoteTurn;
    const shownWrites = yield* makeShownWrites;
    return {
      ...makeLists(sql),
      ...memory,
      get: (id) =>
        sql<SessionRow>`SELECT ${columns} FROM project_sessions WHERE id = ${id}`.pipe(
          Effect.map(firstSession),
          onSharedConnection,
          toStored("sessions.get"),
        ),
      shown: (id) =>
        sql<ShownRow>`
          SELECT ${sql.literal(shownColumns("session"))} FROM project_sessions AS session
          ${sql.literal(withConversations("session"))} WHERE id = ${id}`.pipe(
          Effect.map(([row]) => (row === undefined ? null : readShownSession(row))),
          onSharedConnection,
          toStored("sessions.shown"),
        ),
      liveChildren: (id) =>
        sql<{ readonly count: number }>`
          SELECT count(*)::integer AS count FROM project_sessions
          WHERE parent_session_id = ${id} AND status IN ('provisioning', 'running')`.pipe(
          Effect.map(([row]) => row?.count ?? 0),
          toStored("sessions.liveChildren"),
        ),
      anyIn: (projectId) =>
        sql<{ readonly any: boolean }>`
          SELECT EXISTS (SELECT 1 FROM project_sessions WHERE project_id = ${projectId}) AS any`.pipe(
          Effect.map(([row]) => row?.any === true),
          toStored("sessions.anyIn"),
        ),
      ...seeIn(sql),
      ...shownWrites,
      acceptBootstrap: (id, now) =>
        sql`UPDATE project_sessions SET bootstrap_accepted_at = ${at(now)}
          WHERE id = ${id} AND bootstrap_accepted_at IS NULL`.pipe(
          Effect.asVoid,
          toStored("sessions.acceptBootstrap"),
        ),
      ...(yield* makeNoteSaves),
      noteTurn: (id, { now, ...turn }) =>
        sql.withTransaction(noteTurn(id, turn, now)).pipe(toStored("sessions.noteTurn")),
      ...ofSweeper(sql),
      ownerless: ownerlessIn(sql).pipe(toStored("sessions.ownerless")),
    };
  }),
);
