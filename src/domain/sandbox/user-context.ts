/**
 * The signed user context that every request to a daemon carries (spec.md 5.1, api.md 7): `base64url(JSON) "."
 * base64url(HMAC-SHA256(PLATFORM_TOKEN, first part))`, unpadded.
 *
 * Rules, each with its case in the list of threats:
 *  U1 The signature is checked, in constant time, before any byte of the payload is read (A04, A05).
 *  U2 A context has exactly one spelling: no padding, no standard base64, no spare bits, no third part (A05).
 *  U3 The algorithm is fixed. A payload with any field other than the five, including `alg`, is refused (A03).
 *  U4 A repeated key is refused, since two readers could take different values (A08).
 *  U5 A context lives at most 60 seconds, which bounds a revoked user's last requests (A07).
 */
import { createHmac, createSecretKey, timingSafeEqual, type KeyObject } from "node:crypto";
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { parseJson } from "../../ground/record.ts";

/** In lower case, as Node gives header names. */
export const USER_CONTEXT_HEADER = "x-platform-user-context";
/** How long a signed context is valid, in seconds. */
export const USER_CONTEXT_LIFE_S = 60;
/** How far a daemon's clock may be behind the signer's, in seconds. */
const USER_CONTEXT_SKEW_S = 30;
/** The longest header that is read at all. A real one has about 300 characters. */
const MAX_HEADER_LENGTH = 2048;

/** The role of the service itself. No person's role has this name. */
export const SERVICE_ROLE = "service";

const instant = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }));

/** The acting user, the session, and the expiry. `iat` and `exp` are whole unix seconds. */
export const UserContext = Schema.Struct({
  user_id: Schema.String.check(Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9_.:@-]{0,127}$/)),
  session_id: Schema.String.check(Schema.isPattern(/^[0-9a-f-]{36}$/)),
  role: Schema.String.check(Schema.isPattern(/^[a-z][a-z_]{0,31}$/)),
  iat: instant,
  exp: instant,
});
export type UserContext = typeof UserContext.Type;

/** `details.reason` of the 401 `invalid_user_context`. `expired` also covers a context from too far in the future. */
export type UserContextRefusal = "missing" | "malformed" | "bad_signature" | "expired" | "wrong_session";

/** The facts that a daemon checks a context against. */
export interface UserContextExpectation {
  /** PLATFORM_TOKEN of this sandbox. */
  readonly token: string;
  readonly sessionId: string;
  /** The clock, in milliseconds since 1970. */
  readonly nowMs: number;
}

const decode = Schema.decodeUnknownResult(UserContext, { onExcessProperty: "error" });

/** The newest token's key. A daemon has one token, and making a key from it costs as much as a signature. */
let newest: { readonly token: string; readonly key: KeyObject } | null = null;

const tokenKey = (token: string): KeyObject => {
  if (newest?.token !== token) newest = { token, key: createSecretKey(token, "utf8") };
  return newest.key;
};

const signPayload = (payload: string, token: string): string =>
  createHmac("sha256", tokenKey(token)).update(payload, "ascii").digest("base64url");

/**
 * The header's value for one request.
 *
 * @param acting the user and the session; `nowMs` is the clock in milliseconds.
 * @param token PLATFORM_TOKEN of the session's sandbox.
 * @throws RangeError for an empty token, with which anyone could sign: a defect of the caller.
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
  return `${payload}.${signPayload(payload, token)}`;
};

/**
 * Checks the header of a request to the daemon.
 *
 * @param headers every value of the header, one element for each occurrence (`headersDistinct` of Node).
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
  // The comparison uses the text, so another spelling of the same 32 bytes fails (U2).
  return timingSafeEqual(Buffer.from(signPayload(payload, token), "ascii"), Buffer.from(signature, "ascii"));
};

/**
 * Exactly the text that `signUserContext` writes. It is read without a parser and a schema, which cost more than the
 * signature. The schema would accept the same text with the same values. Any other text is parsed in full.
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
  const value = parseJson(text);
  if (value === undefined || hasRepeatedKey(text)) return null;
  const context = decode(value);
  return Result.isSuccess(context) ? context.success : null;
};

/**
 * Whether a key occurs twice, at any depth, in a text that is known to be JSON. There, a string before a colon is a
 * key. Depth does not matter, since the schema refuses nested values.
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
