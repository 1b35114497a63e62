/**
 * The signed user context that every request to a daemon carries (spec.md 5.1, api.md 7):
 * `base64url(JSON) "." base64url(HMAC-SHA256(PLATFORM_TOKEN, first part))`, unpadded.
 *
 * Rules, each with its case in the list of threats:
 *  U1 the signature is checked, in constant time, before a byte of the payload is looked at (A04, A05).
 *  U2 there is one spelling of a context: no padding, no standard base64, no spare bits, no third part (A05).
 *  U3 the algorithm is fixed; a payload with any other field than the five, `alg` too, is refused (A03).
 *  U4 a key that occurs twice is refused, since two readers could take different ones (A08).
 *  U5 a context lives at most 60 seconds, which bounds a revoked user's last requests (A07).
 */
import { createHmac, createSecretKey, timingSafeEqual, type KeyObject } from "node:crypto";
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";

/** Lower case, as Node hands out header names. */
export const USER_CONTEXT_HEADER = "x-platform-user-context";
/** How long a signed context is good for, in seconds. */
export const USER_CONTEXT_LIFE_S = 60;
/** How far a daemon's clock may be behind the signer's, in seconds. */
const USER_CONTEXT_SKEW_S = 30;
/** Longest header that is read at all; a real one has about 300 characters. */
const MAX_HEADER_LENGTH = 2048;

const instant = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }));

/** Who is acting, in which session, until when. `iat` and `exp` are whole unix seconds. */
export const UserContext = Schema.Struct({
  user_id: Schema.String.check(Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9_.:@-]{0,127}$/)),
  session_id: Schema.String.check(Schema.isPattern(/^[0-9a-f-]{36}$/)),
  role: Schema.String.check(Schema.isPattern(/^[a-z][a-z_]{0,31}$/)),
  iat: instant,
  exp: instant,
});
export type UserContext = typeof UserContext.Type;

/** `details.reason` of the 401 `invalid_user_context`. `expired` also stands for a context from too far ahead. */
export type UserContextRefusal = "missing" | "malformed" | "bad_signature" | "expired" | "wrong_session";

/** What a daemon knows and holds a context against. */
export interface UserContextExpectation {
  /** PLATFORM_TOKEN of this sandbox. */
  readonly token: string;
  readonly sessionId: string;
  /** The clock, in milliseconds since 1970. */
  readonly nowMs: number;
}

const decode = Schema.decodeUnknownResult(UserContext, { onExcessProperty: "error" });

/** The newest token's key: a daemon has one token, and making a key of it costs as much as a signature. */
let newest: { readonly token: string; readonly key: KeyObject } | null = null;

const keyOf = (token: string): KeyObject => {
  if (newest?.token !== token) newest = { token, key: createSecretKey(token, "utf8") };
  return newest.key;
};

const signatureOf = (payload: string, token: string): string =>
  createHmac("sha256", keyOf(token)).update(payload, "ascii").digest("base64url");

/**
 * The header's value for one request.
 *
 * @param acting who acts and in which session; `nowMs` is the clock in milliseconds.
 * @param token PLATFORM_TOKEN of the session's sandbox.
 * @throws RangeError for an empty token, which would sign for everybody: a defect of the caller.
 */
export const signUserContext = (
  acting: {
    readonly userId: string;
    readonly sessionId: string;
    readonly role: string;
    readonly nowMs: number;
  },
  token: string,
): string => {
  if (token === "") throw new RangeError("a user context cannot be signed with an empty token");
  const iat = Math.floor(acting.nowMs / 1000);
  const context: UserContext = {
    user_id: acting.userId,
    session_id: acting.sessionId,
    role: acting.role,
    iat,
    exp: iat + USER_CONTEXT_LIFE_S,
  };
  const payload = Buffer.from(JSON.stringify(context)).toString("base64url");
  return `${payload}.${signatureOf(payload, token)}`;
};

/**
 * Checks the header of a request to the daemon.
 *
 * @param headers every value of the header, one element for each time it was sent (`headersDistinct` of Node).
 */
export const verifyUserContext = (
  headers: readonly string[],
  expected: UserContextExpectation,
): Result.Result<UserContext, UserContextRefusal> => {
  const [header] = headers;
  if (header === undefined) return Result.fail("missing");
  if (headers.length > 1 || header.length > MAX_HEADER_LENGTH) return Result.fail("malformed");
  const [, payload, signature] = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{43})$/.exec(header) ?? [];
  if (payload === undefined || signature === undefined) return Result.fail("malformed");
  if (!isSignedBy(payload, signature, expected.token)) return Result.fail("bad_signature");
  const context = readPayload(payload);
  if (context === null) return Result.fail("malformed");
  return checkClaims(context, expected);
};

const isSignedBy = (payload: string, signature: string, token: string): boolean => {
  if (token === "") return false;
  // Text is compared with text: another spelling of the same 32 bytes does not pass (U2).
  return timingSafeEqual(Buffer.from(signatureOf(payload, token), "ascii"), Buffer.from(signature, "ascii"));
};

/**
 * The text that `signUserContext` writes, to the letter: read without a parser and a schema, which cost more than the
 * signature. What it takes the schema would take too, with the same values; every other text goes the long way.
 */
const OWN_FORM =
  /^\{"user_id":"([A-Za-z0-9][A-Za-z0-9_.:@-]{0,127})","session_id":"([0-9a-f-]{36})","role":"([a-z][a-z_]{0,31})","iat":([1-9][0-9]{0,14}),"exp":([1-9][0-9]{0,14})\}$/;

const readPayload = (payload: string): UserContext | null => {
  const bytes = Buffer.from(payload, "base64url");
  if (bytes.toString("base64url") !== payload) return null;
  const text = bytes.toString("utf8");
  const own = OWN_FORM.exec(text);
  if (own !== null) {
    const [, user_id = "", session_id = "", role = "", iat, exp] = own;
    return { user_id, session_id, role, iat: Number(iat), exp: Number(exp) };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (hasRepeatedKey(text)) return null;
  const context = decode(value);
  return Result.isSuccess(context) ? context.success : null;
};

/**
 * Whether a key occurs twice, at whatever depth, in a text that is known to be JSON: there a string before a colon is
 * a key. Depth does not matter, since nothing nested passes the schema.
 */
const hasRepeatedKey = (json: string): boolean => {
  const keys = [...json.matchAll(/("(?:[^"\\]|\\.)*")(\s*:)?/g)]
    .filter(([, , colon]) => colon !== undefined)
    .map(([, key]): unknown => JSON.parse(key ?? '""'));
  return new Set(keys).size < keys.length;
};

const checkClaims = (
  context: UserContext,
  expected: UserContextExpectation,
): Result.Result<UserContext, UserContextRefusal> => {
  const life = context.exp - context.iat;
  if (life <= 0 || life > USER_CONTEXT_LIFE_S) return Result.fail("malformed");
  const nowS = expected.nowMs / 1000;
  if (context.exp <= nowS || context.iat > nowS + USER_CONTEXT_SKEW_S) return Result.fail("expired");
  if (context.session_id !== expected.sessionId) return Result.fail("wrong_session");
  return Result.succeed(context);
};
