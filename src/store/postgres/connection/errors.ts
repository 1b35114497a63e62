/** Translates a statement's error into effect/sql's terms (SQLSTATE classes of PostgreSQL, appendix A). */
import * as SqlError from "effect/sql/SqlError";

type Fields = { readonly cause: unknown; readonly message: string; readonly operation: string };

const textField = (cause: unknown, field: string): string => {
  if (typeof cause !== "object" || cause === null) return "";
  const value: unknown = Reflect.get(cause, field);
  return typeof value === "string" ? value : "";
};

/** SQLSTATEs with a reason of their own. All others are classified by their first two characters. */
const reasonByCode: Readonly<Record<string, (fields: Fields) => SqlError.SqlErrorReason>> = {
  // The server has ended an idle transaction's session.
  "25P03": (fields) => new SqlError.ConnectionError(fields),
  "23505": (fields) =>
    new SqlError.UniqueViolation({ ...fields, constraint: textField(fields.cause, "constraint") }),
  "40P01": (fields) => new SqlError.DeadlockError(fields),
  "40001": (fields) => new SqlError.SerializationError(fields),
  "42501": (fields) => new SqlError.AuthorizationError(fields),
  "53300": (fields) => new SqlError.ConnectionError(fields),
  "55P03": (fields) => new SqlError.LockTimeoutError(fields),
  "57014": (fields) => new SqlError.StatementTimeoutError(fields),
  "57P01": (fields) => new SqlError.ConnectionError(fields),
  "57P02": (fields) => new SqlError.ConnectionError(fields),
  "57P03": (fields) => new SqlError.ConnectionError(fields),
  "57P05": (fields) => new SqlError.ConnectionError(fields),
};
const reasonByClass: Readonly<Record<string, (fields: Fields) => SqlError.SqlErrorReason>> = {
  "08": (fields) => new SqlError.ConnectionError(fields),
  "23": (fields) => new SqlError.ConstraintError(fields),
  "28": (fields) => new SqlError.AuthenticationError(fields),
  "42": (fields) => new SqlError.SqlSyntaxError(fields),
};

/** The server refuses a prepared statement whose columns a change of the schema changed: "cached plan must not change result type". */
const isStaleCause = (cause: unknown): boolean =>
  textField(cause, "code") === "0A000" && textField(cause, "routine") === "RevalidateCachedQuery";

/** Whether the statement was prepared before a change of the schema. The same text works on another connection. */
export const isStale = ({ reason }: SqlError.SqlError): boolean => isStaleCause(reason.cause);

/** Whether the server refused the statement because its transaction has failed already. */
export const isAborted = ({ reason }: SqlError.SqlError): boolean =>
  textField(reason.cause, "code") === "25P02";

const SQLSTATE = /^[0-9A-Z]{5}$/;

/**
 * An error of `pg` as a SqlError. An error without a SQLSTATE comes from the socket or from pg itself (refused, reset,
 * timed out, closed): the connection is broken.
 */
export const sqlErrorOf = (cause: unknown, operation: string): SqlError.SqlError => {
  const code = textField(cause, "code");
  const fields = { cause, message: textField(cause, "message"), operation };
  // EPIPE looks like a SQLSTATE but comes from the operating system.
  const isServers = SQLSTATE.test(code) && textField(cause, "syscall") === "";
  if (!isServers || isStaleCause(cause))
    return new SqlError.SqlError({ reason: new SqlError.ConnectionError(fields) });
  const reason = reasonByCode[code] ?? reasonByClass[code.slice(0, 2)];
  return new SqlError.SqlError({ reason: reason?.(fields) ?? new SqlError.UnknownError(fields) });
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
  textField(reason.cause, "code") === "53100";

/** The name of the unique constraint or index that refused a row. Null for every other error. */
export const violatedConstraint = (error: SqlError.SqlError): string | null =>
  error.reason._tag === "UniqueViolation" ? error.reason.constraint : null;
