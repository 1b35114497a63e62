import { createHmac } from "node:crypto";
import * as Result from "effect/Result";
import { expect, test } from "vitest";
import { signUserContext, verifyUserContext } from "../../../src/domain/sandbox/user-context.ts";

const token = "platform_sbx_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG";
const sessionId = "01930f1e-2b3c-7d4e-8f5a-6b7c8d9e0f1a";
const nowMs = 1_790_000_000_500;
const nowS = 1_790_000_000;
const claims = { user_id: "u-1", session_id: sessionId, role: "owner", iat: nowS, exp: nowS + 60 };
const acting = { userId: "u-1", sessionId, role: "owner", nowMs };

/** A signer of its own, so that a mistake of ours is not checked with the same mistake. */
const sign = (payload: string | object, key = token): string => {
  const text = typeof payload === "string" ? payload : JSON.stringify(payload);
  const first = Buffer.from(text).toString("base64url");
  return `${first}.${createHmac("sha256", key).update(first).digest("base64url")}`;
};

const signFirstPart = (first: string): string =>
  `${first}.${createHmac("sha256", token).update(first).digest("base64url")}`;

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/** The same text with the lowest bit of its last character flipped: a bit that base64 does not use at the end. */
const flipSpareBit = (text: string): string =>
  text.slice(0, -1) + alphabet.charAt(alphabet.indexOf(text.slice(-1)) ^ 1);

const verify = (...headers: string[]): string => {
  const result = verifyUserContext(headers, { token, sessionId, nowMs });
  return Result.isSuccess(result) ? "accepted" : result.failure;
};

test("accepts its own signature and returns the user", () => {
  const result = verifyUserContext([signUserContext(acting, token)], { token, sessionId, nowMs });
  expect(result).toEqual(Result.succeed(claims));
});

test("writes the form of api.md 7, unpadded and 60 seconds long", () => {
  expect(signUserContext(acting, token)).toBe(sign(claims));
});

test("accepts a payload with its fields in another order and with blanks", () => {
  const { iat, ...rest } = claims;
  expect(verify(sign({ iat, ...rest }))).toBe("accepted");
  expect(verify(sign(JSON.stringify(claims, null, 1)))).toBe("accepted");
});

test("refuses a request without a context", () => {
  expect(verify()).toBe("missing");
});

const at = (iat: number, exp: number): string => verify(sign({ ...claims, iat, exp }));

test("refuses an expired context and one from too far in the future [A01]", () => {
  expect(at(nowS - 59, nowS + 1)).toBe("accepted");
  expect(at(nowS - 60, nowS)).toBe("expired");
  expect(at(nowS - 3600, nowS - 3540)).toBe("expired");
  expect(at(nowS + 30, nowS + 90)).toBe("accepted");
  expect(at(nowS + 31, nowS + 91)).toBe("expired");
});

test("a context is expired exactly from the millisecond of its exp [A01]", () => {
  const header = [sign(claims)];
  const atMs = (ms: number) => Result.isSuccess(verifyUserContext(header, { token, sessionId, nowMs: ms }));
  expect([atMs((nowS + 60) * 1000 - 1), atMs((nowS + 60) * 1000)]).toEqual([true, false]);
});

test("accepts a context again within its lifetime: idempotence makes replays harmless [A02]", () => {
  const header = signUserContext(acting, token);
  expect([verify(header), verify(header)]).toEqual(["accepted", "accepted"]);
});

test.each([
  { ...claims, alg: "none" },
  { ...claims, alg: "HS256" },
  { alg: "none", ...claims },
  { ...claims, admin: true },
])("refuses a payload with a field beyond the five: $alg [A03]", (payload) => {
  expect(verify(sign(payload))).toBe("malformed");
});

test("refuses a token form whose first part names an algorithm [A03]", () => {
  const jwt = Buffer.from('{"alg":"none"}').toString("base64url");
  expect(verify(`${jwt}.${sign(claims)}`)).toBe("malformed");
  expect(verify(sign(claims).split(".")[0] + ".")).toBe("malformed");
});

test.each([
  ["another session's token", "platform_sbx_other"],
  ["a CLI token", "platform_pat_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"],
  ["the empty key", ""],
])("refuses a context signed with %s [A04]", (_what, key) => {
  expect(verify(sign(claims, key))).toBe("bad_signature");
});

test("an empty token neither signs nor verifies [A04]", () => {
  expect(() => signUserContext(acting, "")).toThrow(RangeError);
  const result = verifyUserContext([sign(claims, "")], { token: "", sessionId, nowMs });
  expect(result).toEqual(Result.fail("bad_signature"));
});

test("refuses a flip of any bit of any byte [A05]", () => {
  const header = Buffer.from(signUserContext(acting, token), "latin1");
  const accepted: string[] = [];
  for (let byte = 0; byte < header.length; byte += 1) {
    for (let bit = 0; bit < 8; bit += 1) {
      const flipped = Buffer.from(header);
      flipped.writeUInt8(flipped.readUInt8(byte) ^ (1 << bit), byte);
      if (verify(flipped.toString("latin1")) === "accepted") accepted.push(`byte ${byte} bit ${bit}`);
    }
  }
  expect(accepted).toEqual([]);
});

test("refuses every truncation, at the front and at the end [A05]", () => {
  const header = signUserContext(acting, token);
  for (let length = 0; length < header.length; length += 1) {
    expect(verify(header.slice(0, length))).not.toBe("accepted");
    expect(verify(header.slice(header.length - length))).not.toBe("accepted");
  }
});

test("refuses every other spelling of a valid context [A05]", () => {
  const header = signUserContext(acting, token);
  const [payload = "", signature = ""] = header.split(".");
  for (const other of [
    `${header}.`,
    `${header}.${signature}`,
    `${header}=`,
    `${header}\n`,
    ` ${header}`,
    `${header} `,
    `${payload}=.${signature}`,
    `${payload}==.${signature}`,
    `.${signature}`,
    `${payload}..${signature}`,
    `${payload}.${flipSpareBit(signature)}`,
    `${flipSpareBit(payload)}.${signature}`,
  ]) {
    expect(verify(other)).not.toBe("accepted");
  }
});

test("refuses a signed payload that is not in its canonical encoding [A05]", () => {
  // A length that is no multiple of three leaves bits of the last character unused.
  const text = JSON.stringify({ ...claims, user_id: "u-1234" });
  const canonical = Buffer.from(text).toString("base64url");
  const other = flipSpareBit(canonical);
  expect(Buffer.from(other, "base64url").toString()).toBe(text);
  expect(verify(signFirstPart(canonical))).toBe("accepted");
  expect(verify(signFirstPart(other))).toBe("malformed");
  expect(verify(signFirstPart(Buffer.from(text).toString("base64")))).toBe("malformed");
});

test.each([
  ["with a newline", "a\nb"],
  ["with a NUL", "a\u0000b"],
  ["that is empty", ""],
  ["that is a blank", " "],
  ["beyond ASCII", "ü"],
  ["of 129 characters", "x".repeat(129)],
  ["of 10 kB", "x".repeat(10_240)],
])("refuses a user id %s [A06]", (_what, userId) => {
  expect(verify(sign({ ...claims, user_id: userId }))).toBe("malformed");
});

test("refuses a context with a lifetime over 60 seconds, or without one [A07]", () => {
  expect(verify(sign({ ...claims, exp: nowS + 61 }))).toBe("malformed");
  expect(verify(sign({ ...claims, iat: nowS + 1, exp: nowS + 1 }))).toBe("malformed");
});

test.each([
  `{"user_id":"u-2",${JSON.stringify(claims).slice(1)}`,
  `{"exp":1,${JSON.stringify(claims).slice(1)}`,
  `{"user\\u005fid":"u-2",${JSON.stringify(claims).slice(1)}`,
  `{"user_id" : "u-1",${JSON.stringify(claims).slice(1)}`,
])("refuses a payload with a duplicate key: %s [A08]", (payload) => {
  expect(verify(sign(payload))).toBe("malformed");
});

test("does not take a colon in a value for a key", () => {
  expect(verify(sign({ ...claims, user_id: "user_id:role" }))).toBe("accepted");
});

test.each([
  ["no JSON", "nope"],
  ["a list", "[]"],
  ["null", "null"],
  ["a missing field", JSON.stringify({ ...claims, role: undefined })],
  ["a number as text", JSON.stringify({ ...claims, exp: String(claims.exp) })],
  ["a fraction of a second", JSON.stringify({ ...claims, iat: nowS + 0.5 })],
  ["an instant beyond doubles", JSON.stringify(claims).replace(String(claims.exp), "1e400")],
  ["a role with a blank", JSON.stringify({ ...claims, role: "the owner" })],
])("refuses a signed payload that is %s", (_what, payload) => {
  expect(verify(sign(payload))).toBe("malformed");
});

test("refuses a context for another session", () => {
  const other = "01930f1e-2b3c-7d4e-8f5a-6b7c8d9e0f1b";
  expect(verify(sign({ ...claims, session_id: other }))).toBe("wrong_session");
});

test("refuses two context headers, also when Node has joined them [X12]", () => {
  const header = signUserContext(acting, token);
  expect(verify(header, header)).toBe("malformed");
  expect(verify(`${header}, ${header}`)).toBe("malformed");
});

test.each([
  ["as it is", {}],
  ["a user id of 128 characters", { user_id: "x".repeat(128) }],
  ["a user id of 129 characters", { user_id: "x".repeat(129) }],
  ["a user id that begins with a point", { user_id: ".x" }],
  ["a user id with a quote", { user_id: 'x"' }],
  ["a role of 33 letters", { role: "x".repeat(33) }],
  ["a role in capitals", { role: "OWNER" }],
  ["a session id that is none", { session_id: "0" }],
  ["instants of 1970", { iat: 0, exp: 60 }],
  ["an instant before 1970", { iat: -1 }],
  ["instants beyond doubles' whole numbers", { iat: 2 ** 53, exp: 2 ** 53 }],
])("reads its own form like any other: %s", (_what, change) => {
  const payload = { ...claims, ...change };
  expect(verify(sign(payload))).toBe(verify(sign(JSON.stringify(payload, null, 1))));
});

test.each(["01790000000", "1790000000.0", "1.79e9", "+1790000000", " 1790000000"])(
  "reads the instant %s in its own form as JSON does",
  (iat) => {
    const own = JSON.stringify(claims).replace(String(nowS), iat);
    expect(verify(sign(own))).toBe(verify(sign(own.replace("{", "{ "))));
  },
);
