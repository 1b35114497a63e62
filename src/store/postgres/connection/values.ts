/**
 * How values travel between the service and Postgres. This is the only place where a type has its representation.
 *
 *  V1 A parameter is sent as text without a type, so the statement alone decides what it is. The text of a statement
 *     then names one prepared statement, whatever its values are. Bytes are the exception.
 *  V2 `timestamptz` arrives as ms since the epoch: a list has hundreds of instants. Microseconds are cut.
 *  V3 `int8` and `xid8` arrive as text, since a number would lose digits. Bytes arrive as a Buffer of their own.
 */
import { Buffer } from "node:buffer";
import * as PgTypes from "@effect/sql-pg/PgTypes";
import * as Result from "effect/Result";

/** 2000-01-01, from which Postgres counts. */
const POSTGRES_EPOCH = Date.UTC(2000, 0, 1);
/** The farthest instant from the epoch that a Date can have, ms. `infinity` is farther. */
const FARTHEST = 8.64e15;
/** pg_current_xact_id and its like; sql-pg has no name for it. */
const [XID8, XID8_ARRAY] = [5069, 271];
/** 2^32 is 4,294,967 thousands and 296. */
const [THOUSANDS, REST] = [4_294_967, 296];

const dataView = (bytes: Uint8Array, offset: number): DataView =>
  new DataView(bytes.buffer, bytes.byteOffset + offset, 8);

/** A codec of values that are only read. */
const reading = <A>(read: (bytes: Uint8Array, offset: number, size: number) => A): PgTypes.Codec<A> => ({
  encode: () => Result.fail(new PgTypes.CodecError({ message: "parameters are sent as text" })),
  decode: (bytes) => Result.succeed(read(bytes, 0, bytes.length)),
  read: (bytes, offset, size) => Result.succeed(read(bytes, offset, size)),
});

/** Microseconds as ms. The halves are divided apart, because their sum is not exact in a double. */
const instant = reading((bytes, offset) => {
  const view = dataView(bytes, offset);
  const [high, low] = [view.getInt32(0), view.getUint32(4)];
  const ms = POSTGRES_EPOCH + high * THOUSANDS + Math.floor((high * REST + low) / 1000);
  return Math.abs(ms) > FARTHEST ? Number.NaN : ms;
});

const integer = reading((bytes, offset) => {
  const view = dataView(bytes, offset);
  return view.getInt32(0) === 0 ? String(view.getUint32(4)) : String(view.getBigInt64(0));
});

const transactionId = reading((bytes, offset) => String(dataView(bytes, offset).getBigUint64(0)));

const copyCodec = reading((bytes, offset, size) => Buffer.from(bytes.subarray(offset, offset + size)));

export const types: PgTypes.Registry = PgTypes.makeRegistry();
types.register(PgTypes.OID.timestamptz, instant, { arrayOid: PgTypes.OID.timestamptzArray });
types.register(PgTypes.OID.int8, integer, { arrayOid: PgTypes.OID.int8Array });
types.register(XID8, transactionId, { arrayOid: XID8_ARRAY });
types.register(
  PgTypes.OID.bytea,
  {
    ...copyCodec,
    encode: (bytes) => Result.succeed(Uint8Array.from(bytes)),
    write: (sink, bytes) => Result.succeed(sink.raw(bytes)),
  },
  { arrayOid: PgTypes.OID.byteaArray },
);

/** An instant as Postgres reads it: a year above 9999 has no sign. */
const instantText = (at: Date): string => at.toISOString().replace(/^\+0*/, "");

const text = (value: unknown): string => {
  if (typeof value === "string") return value;
  if (value instanceof Date) return instantText(value);
  if (value instanceof Uint8Array) return `\\x${Buffer.from(value).toString("hex")}`;
  if (Array.isArray(value)) return list(value);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
};

const element = (value: unknown): string => {
  if (value === null || value === undefined) return "NULL";
  if (Array.isArray(value)) return list(value);
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return `"${text(value).replace(/["\\]/g, "\\$&")}"`;
};

const list = (values: readonly unknown[]): string => `{${values.map(element).join(",")}}`;

/** A statement's parameter as it is sent (V1). */
export const parameter = (value: unknown): unknown =>
  value === null || value === undefined || value instanceof Uint8Array ? (value ?? null) : text(value);
