/**
 * The dashboard's cookie (api.md 3): the secret of a browser's session, of which the store has the hash
 * (store/ports/people/browser-sessions.ts). Host-only, HttpOnly, SameSite=Strict. Unsafe requests must also carry a CSRF token
 * that only the page knows. It follows from the cookie, so every node accepts it.
 *
 * Over https its name has the prefix `__Host-`, so no other host, not even a preview's, can plant one. Without https a sibling host can:
 * of two cookies none counts, because the planted one may come first.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { HttpServerRequest } from "effect/http";
import { tokenHash } from "../../domain/ids.ts";
import { newPassword, newUuid } from "../../services/entropy.ts";
import {
  BrowserSessions,
  LIFE_MS,
  type NewBrowserSession,
} from "../../store/ports/people/browser-sessions.ts";
import { requestSender } from "../callers/acting.ts";
import { Forbidden } from "../api/errors.ts";

const NAME = "platform_dashboard";
const CSRF_HEADER = "x-csrf-token";
/** A secret of 256 bits in base64url. No access token has this length, so neither is taken for the other. */
const COOKIE = /^[A-Za-z0-9_-]{43}$/;
const CODE_LIFE_MS = 5 * 60 * 1000;

/** A session as its browser gets it. */
export interface DashboardSession {
  readonly cookie: string;
  readonly csrf: string;
  readonly maxAgeSeconds: number;
}

/** The link that redeems a one-time code. */
export const openingLink = (publicUrl: string, code: string): string =>
  `${publicUrl}/dashboard/open?code=${code}`;

const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

const equal = (a: string, b: string): boolean => {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
};

export const csrfToken = (cookie: string): string =>
  createHmac("sha256", cookie).update("platform/csrf").digest("base64url");

/** A new session for the browser that sends the request: its row, and what the browser gets. */
export const newSession: Effect.Effect<
  { readonly row: NewBrowserSession; readonly session: DashboardSession },
  never,
  HttpServerRequest.HttpServerRequest
> = Effect.gen(function* () {
  const cookie = yield* newPassword;
  return {
    row: {
      id: yield* newUuid,
      hash: tokenHash(cookie),
      ...(yield* requestSender(yield* HttpServerRequest.HttpServerRequest)),
      now: yield* Clock.currentTimeMillis,
    },
    session: { cookie, csrf: csrfToken(cookie), maxAgeSeconds: LIFE_MS / 1000 },
  };
});

/** A one-time code of the token with this hash, valid for five minutes. A link carries it instead of the token. */
export const issueCode = Effect.fnUntraced(function* (hash: string) {
  const code = yield* newPassword;
  const now = yield* Clock.currentTimeMillis;
  const link = { hash: tokenHash(code), tokenHash: hash, expiresAt: now + CODE_LIFE_MS, now };
  yield* (yield* BrowserSessions).issueLink(link);
  return code;
});

export const isSecure = (publicUrl: string): boolean => publicUrl.startsWith("https:");

/** The name of a cookie. Over TLS, no other host can set it. */
export const hostCookie = (publicUrl: string, name: string): string =>
  isSecure(publicUrl) ? `__Host-${name}` : name;

export const dashboardCookie = (publicUrl: string): string => hostCookie(publicUrl, NAME);

/** The secret in a request's cookie. Null if it has none that could be one, or several. */
export const cookieIn = (header: string | undefined, publicUrl: string): string | null => {
  const start = `${dashboardCookie(publicUrl)}=`;
  const cookies = (header ?? "")
    .split(";")
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(start));
  const cookie = cookies[0]?.slice(start.length) ?? "";
  return cookies.length === 1 && COOKIE.test(cookie) ? cookie : null;
};

type Shown = Pick<HttpServerRequest.HttpServerRequest, "headers" | "method">;

/** The hash of a request's session. Null without a cookie. An unsafe request must carry its CSRF token. */
export const sessionHash = Effect.fnUntraced(function* (request: Shown, publicUrl: string) {
  const cookie = cookieIn(request.headers["cookie"], publicUrl);
  if (cookie === null) return null;
  if (SAFE_METHODS.has(request.method) || equal(request.headers[CSRF_HEADER] ?? "", csrfToken(cookie)))
    return tokenHash(cookie);
  return yield* new Forbidden({
    error: `Requests with the dashboard cookie must send the ${CSRF_HEADER} header.`,
    code: "csrf_token_missing",
  });
});
