/** What a statement's error means to the service, by its SQLSTATE (PostgreSQL, appendix A). */
import * as SqlError from "effect/sql/SqlError";

const textField = (cause: unknown, field: string): string => {
  if (typeof cause !== "object" || cause === null) return "";
  const value: unknown = Reflect.get(cause, field);
  return typeof value === "string" ? value : "";
};

/** The server takes no writes: it is a standby, or was a primary until a switchover. */
const READ_ONLY = "25006";
const DISK_FULL = "53100";

/**
 * The server has ended the session, or accepts none, or it is the wrong one: read-only, idle in a transaction, too many
 * connections, a shutdown, a crash, a start, a dropped database, an idle session. @effect/sql-pg takes them for errors
 * of the statement.
 */
const ENDED = new Set([READ_ONLY, "25P03", "53300", "57P01", "57P02", "57P03", "57P04", "57P05"]);

/** The server refuses a prepared statement whose columns a change of the schema changed: "cached plan must not change result type". */
const isStale = (cause: unknown): boolean =>
  textField(cause, "code") === "0A000" && textField(cause, "routine") === "RevalidateCachedQuery";

/** Whether its connection is lost. */
export const isLost = ({ reason }: SqlError.SqlError): boolean => reason._tag === "ConnectionError";

/** The error of @effect/sql-pg with the words of its cause. It is a `ConnectionError` where another connection helps. */
export const namedSqlError = ({ reason }: SqlError.SqlError): SqlError.SqlError => {
  const { cause, operation } = reason;
  const message = textField(cause, "message") || reason.message;
  const isEnded = ENDED.has(textField(cause, "code")) || isStale(cause);
  return new SqlError.SqlError({
    reason: isEnded
      ? new SqlError.ConnectionError({ cause, message, operation })
      : Object.assign(reason, { message }),
  });
};

/**
 * Errors that the statement itself causes: its data (class 22), a constraint (23), syntax or names (42). 42501, a
 * missing privilege, is also in class 42, but an operator can grant it.
 */
const REFUSAL = /^(?:22|23|42(?!501))[0-9A-Z]{3}$/;

/** Whether the database would refuse the same statement every time. Any other error may be temporary. */
export const isRefusal = ({ reason }: SqlError.SqlError): boolean =>
  REFUSAL.test(textField(reason.cause, "code"));

/** Whether the server has no space for what the statement writes. */
export const isDiskFull = ({ reason }: SqlError.SqlError): boolean =>
  textField(reason.cause, "code") === DISK_FULL;

/** Whether the server takes no writes. */
export const isReadOnly = ({ reason }: SqlError.SqlError): boolean =>
  textField(reason.cause, "code") === READ_ONLY;

/** The name of the unique constraint or index that refused a row. Null for every other error. */
export const violatedConstraint = (error: SqlError.SqlError): string | null =>
  error.reason._tag === "UniqueViolation" ? error.reason.constraint : null;
