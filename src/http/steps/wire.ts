/** Records in wire format: snake_case, instants as ISO 8601 UTC with milliseconds */
import type * as Schema from "effect/Schema";
import * as AST from "effect/SchemaAST";
import type { Comparison } from "../../git/port.ts";
import type { StoredEvent } from "../../store/ports/events.ts";
import type { Account } from "../../store/ports/people/accounts.ts";
import type { ShownFire } from "../../store/ports/triggers/fires.ts";
import type { PageRequest } from "../../store/ports/page.ts";
import type { Session } from "../../store/ports/sessions/sessions.ts";
import { TokenWire } from "../api/identity.ts";
import { ProjectWire } from "../api/projects.ts";
import { PAGE_DEFAULT } from "../api/schemas.ts";

const DAY_MS = 86_400_000;
/** The day of the last instant, as its number and its text: the instants of a list are mostly of one day. */
let lastDay = { day: Number.NaN, text: "" };
const two = (value: number): string => (value < 10 ? `0${value}` : String(value));

/** Does what Date.toISOString does in a fraction of its time: a list has hundreds of instants. */
export const instant = (at: number): string => {
  const day = Math.floor(at / DAY_MS);
  if (day !== lastDay.day)
    lastDay = { day, text: new Date(at).toISOString().slice(0, -"00:00:00.000Z".length) };
  const ms = Math.trunc(at - day * DAY_MS);
  const [hour, minute] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60];
  const [second, rest] = [Math.floor(ms / 1000) % 60, String(ms % 1000).padStart(3, "0")];
  return `${lastDay.text}${two(hour)}:${two(minute)}:${two(second)}.${rest}Z`;
};
export const instantOrNull = (at: number | null): string | null => (at === null ? null : instant(at));

type Camel<Name> = Name extends `${infer Word}_${infer Rest}` ? `${Word}${Capitalize<Camel<Rest>>}` : Name;

/** The record of a schema's wire form: its keys in camelCase, its instants as numbers. A record within it may be in wire form already. */
type Source<S extends Schema.Constraint> = "~instant" extends keyof S
  ? number
  : S extends Schema.NullOr<infer Inner>
    ? Source<Inner> | null
    : S extends Schema.$Array<infer Item>
      ? readonly Source<Item>[]
      : S extends Schema.Struct<infer Fields>
        ? RecordSource<Fields> | S["Encoded"]
        : S["Encoded"];
type RecordSource<Fields extends Schema.Struct.Fields> = {
  readonly [Name in keyof Fields as Camel<Name>]: Source<Fields[Name]>;
};

type Shape = (value: unknown) => unknown;

/** How a value gets its wire form. Null if it already has it. */
const shapeFor = (ast: AST.AST): Shape | null => {
  if (AST.isString(ast)) {
    if (ast.annotations?.["format"] !== "date-time") return null;
    return (value) => (typeof value === "number" ? instant(value) : value);
  }
  if (AST.isUnion(ast)) {
    const [member, ...others] = ast.types.filter((type) => !AST.isNull(type));
    const shape = member === undefined || others.length > 0 ? null : shapeFor(member);
    return shape && ((value) => (value === null ? null : shape(value)));
  }
  if (AST.isArrays(ast)) {
    const shape = ast.rest[0] === undefined ? null : shapeFor(ast.rest[0]);
    return shape && ((value) => (value as readonly unknown[]).map(shape));
  }
  return AST.isObjects(ast) && ast.indexSignatures.length === 0 ? recordShape(ast) : null;
};

const recordShape = (ast: AST.Objects): Shape => {
  const fields = ast.propertySignatures.map(({ name, type }) => {
    const wireName = String(name);
    const key = wireName.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
    return { wireName, key, shape: shapeFor(type) };
  });
  return (record) => {
    const source = record as Readonly<Record<string, unknown>>;
    const form: Record<string, unknown> = {};
    for (const { wireName, key, shape } of fields) {
      const value = source[key] === undefined ? source[wireName] : source[key];
      if (value !== undefined) form[wireName] = shape === null ? value : shape(value);
    }
    return form;
  };
};

/**
 * The function that gives records the wire form of their schema. Fields that the schema lacks are left out. It takes three times as
 * long as a form by hand, so sessions, fires and items of a conversation have those: their lists are read most.
 */
export const wireForm = <Fields extends Schema.Struct.Fields>(
  schema: Schema.Struct<Fields>,
): ((record: RecordSource<Fields>) => Schema.Struct<Fields>["Encoded"]) =>
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the shape is the schema's
  recordShape(schema.ast) as (record: RecordSource<Fields>) => Schema.Struct<Fields>["Encoded"];

/** The page that a list request asks for. */
export const pageRequest = (query: { readonly limit?: number; readonly cursor?: string }): PageRequest => ({
  limit: query.limit ?? PAGE_DEFAULT,
  cursor: query.cursor ?? null,
});

export const accountWire = (account: Account) => ({
  id: account.id,
  name: account.name,
  tier: account.tier,
  session_cap: account.sessionCap,
  active_sessions: account.activeSessions,
  queued_fires: account.queuedFires,
});

export const tokenWire = wireForm(TokenWire);
export const projectWire = wireForm(ProjectWire);

export const sessionWire = (session: Session) => ({
  id: session.id,
  project_id: session.projectId,
  account_id: session.accountId,
  status: session.status,
  base_ref: session.baseRef,
  base_commit: session.baseCommit,
  branch_name: session.id,
  name: session.name,
  agent_name: session.agentName,
  agent_model: session.agentModel,
  initial_prompt: session.initialPrompt,
  metadata: session.metadata,
  trigger_slug: session.triggerSlug,
  fire_id: session.fireId,
  parent_session_id: session.parentSessionId,
  created_by: session.createdBy,
  failure: session.failure === null ? null : { ...session.failure, at: instant(session.failure.at) },
  stop_reason: session.stopReason,
  saved: session.saved,
  unsaved: session.unsaved && {
    since: instant(session.unsaved.since),
    tries: session.unsaved.tries,
    next_try_at: instant(session.unsaved.nextAt),
  },
  restored: session.restored,
  last_turn: session.lastTurn && {
    state: session.lastTurn.state,
    error: session.lastTurn.error,
    at: session.lastTurn.at,
  },
  created_at: instant(session.createdAt),
  updated_at: instant(session.updatedAt),
  running_at: instantOrNull(session.runningAt),
  stopped_at: instantOrNull(session.stoppedAt),
});

export const fireWire = (fire: ShownFire) => ({
  id: fire.id,
  trigger_slug: fire.triggerSlug,
  kind: fire.kind,
  status: fire.status,
  reason: fire.reason,
  scheduled_for: instantOrNull(fire.scheduledFor),
  received_at: instant(fire.receivedAt),
  delivery_id: fire.deliveryId,
  session_id: fire.sessionId,
  outcome: fire.outcome,
  session_name: fire.sessionName,
  started_by: fire.startedBy,
  attempts: fire.attempts,
  replay_of: fire.replayOf,
  duplicate_of: fire.duplicateOf,
  verified_with: fire.verifiedWith,
});

/** A diff is for reading. A longer one is cut, with a line that says so. */
export const DIFF_LIMIT_BYTES = 1024 * 1024;

export const comparisonWire = (
  comparison: Pick<Comparison, "commits" | "commitsTotal" | "filesChanged" | "filesTotal">,
) => ({
  commits: comparison.commits.map(({ sha, subject, authorName, committedAt }) => ({
    sha,
    subject,
    author_name: authorName,
    committed_at: committedAt,
  })),
  commits_total: comparison.commitsTotal,
  files_changed: comparison.filesChanged.map(({ renamedFrom, ...file }) => ({
    ...file,
    ...(renamedFrom !== undefined && { renamed_from: renamedFrom }),
  })),
  files_changed_total: comparison.filesTotal,
});

/** The data of one server-sent event. */
export const eventWire = (event: StoredEvent) => ({
  type: event.type,
  at: instant(event.at),
  project_id: event.projectId,
  ...(event.sessionId === null ? {} : { session_id: event.sessionId }),
  data: event.data,
});
