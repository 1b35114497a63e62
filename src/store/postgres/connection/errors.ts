/** What went wrong with a statement, in effect/sql's words (SQLSTATE classes of PostgreSQL, appendix A). */
import * as SqlError from "effect/sql/SqlError";

type Fields = { readonly cause: unknown; readonly message: string; readonly operation: string };

const textField = (cause: unknown, field: string): string => {
  if (typeof cause !== "object" || cause === null) return "";
  const value: unknown = Reflect.get(cause, field);
  return typeof value === "string" ? value : "";
};

/** The SQLSTATEs that have a reason of their own; what is not here goes by its class, the first two characters. */
const reasonByCode: Readonly<Record<string, (fields: Fields) => SqlError.SqlErrorReason>> = {
  // The server has ended the session of a transaction that stood still.
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

const SQLSTATE = /^[0-9A-Z]{5}$/;

/**
 * An error of `pg` as a SqlError. One without a SQLSTATE comes from the socket or from pg itself (refused, reset, timed
 * out, closed): the connection is of no more use.
 */
export const sqlErrorOf = (cause: unknown, operation: string): SqlError.SqlError => {
  const code = textField(cause, "code");
  const fields = { cause, message: textField(cause, "message"), operation };
  // EPIPE has the form of a SQLSTATE, and is the system's.
  const isServers = SQLSTATE.test(code) && textField(cause, "syscall") === "";
  if (!isServers) return new SqlError.SqlError({ reason: new SqlError.ConnectionError(fields) });
  const reason = reasonByCode[code] ?? reasonByClass[code.slice(0, 2)];
  return new SqlError.SqlError({ reason: reason?.(fields) ?? new SqlError.UnknownError(fields) });
};

/**
 * What a statement itself asks for and cannot have: its data (class 22), a constraint (23), syntax or names (42). 42501,
 * a missing privilege, is of class 42 too, but an operator's to grant.
 */
const REFUSAL = /^(?:22|23|42(?!501))[0-9A-Z]{3}$/;

/** Whether the database would refuse the same statement again and again; what is not known to be so may pass. */
export const isRefusal = ({ reason }: SqlError.SqlError): boolean =>
  REFUSAL.test(textField(reason.cause, "code"));

/** The name of the unique constraint or index that refused a row; null for every other error. */
export const violatedConstraint = (error: SqlError.SqlError): string | null =>
  error.reason._tag === "UniqueViolation" ? error.reason.constraint : null;
