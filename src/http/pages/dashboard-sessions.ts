/**
 * The dashboard's cookie (api.md 3). It represents a token that its person entered once, by its hash, and is valid for
 * eight hours or until the token ends. It is signed with a key of this installation, so it needs no row, and several
 * nodes accept it. Host-only, HttpOnly, SameSite=Strict. Unsafe requests must also carry a CSRF token that only the
 * page knows.
 */
import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type { HttpServerRequest } from "effect/http";
import { newPassword } from "../../services/entropy.ts";
import { Keyring } from "../../services/keyring.ts";
import { Forbidden } from "../api/errors.ts";

export const DASHBOARD_COOKIE = "platform_dashboard";
const CSRF_HEADER = "x-csrf-token";
const LIFE_MS = 8 * 60 * 60 * 1000;
const CODE_LIFE_MS = 5 * 60 * 1000;
/** How many one-time links may be open at once. Beyond that, the oldest are dropped. */
const CODES_MAX = 1000;

export interface DashboardSession {
  readonly cookie: string;
  readonly csrf: string;
  readonly maxAgeSeconds: number;
}

/** A token as presented in a request. */
export interface ShownToken {
  readonly hash: string;
  /** When its cookie ends. Infinity: with the token. */
  readonly expiresAt: number;
}

export class DashboardSessions extends Context.Service<
  DashboardSessions,
  {
    /** A dashboard session for the token with this hash. */
    readonly open: (tokenHash: string) => Effect.Effect<DashboardSession>;
    /** A one-time code, valid for five minutes, that a link carries instead of a token. */
    readonly issueCode: (tokenHash: string) => Effect.Effect<string>;
    /** The token hash behind a code. Works once. */
    readonly redeem: (code: string) => Effect.Effect<string | null>;
    /**
     * The token behind a request's cookie. Null without a valid cookie. An unsafe request must carry its CSRF token.
     */
    readonly tokenOf: (
      request: Pick<HttpServerRequest.HttpServerRequest, "cookies" | "headers" | "method">,
    ) => Effect.Effect<ShownToken | null, Forbidden>;
    readonly csrfOf: (cookie: string) => string;
  }
>()("platform/http/DashboardSessions") {}

/** The link that redeems a one-time code. */
export const openingLink = (publicUrl: string, code: string): string =>
  `${publicUrl}/dashboard/open?code=${code}`;

const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

const equal = (a: string, b: string): boolean => {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
};

export const dashboardSessionsLayer = Layer.effect(
  DashboardSessions,
  Effect.gen(function* () {
    const keyring = yield* Keyring;
    const key = new Uint8Array(
      hkdfSync("sha256", keyring.secrets.current.bytes, "", "platform/dashboard", 32),
    );
    const mac = (text: string) => createHmac("sha256", key).update(text).digest("base64url");
    const csrfOf = (cookie: string) => mac(`csrf ${cookie}`);
    const codes = new Map<string, { readonly tokenHash: string; readonly expiresAt: number }>();

    const read = (cookie: string, now: number): ShownToken | null => {
      const [hash = "", expiresAt = "", signature = "", ...rest] = cookie.split(".");
      if (rest.length > 0 || !equal(signature, mac(`${hash}.${expiresAt}`))) return null;
      return Number(expiresAt) > now ? { hash, expiresAt: Number(expiresAt) } : null;
    };

    return DashboardSessions.of({
      csrfOf,
      open: (tokenHash) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          const body = `${tokenHash}.${now + LIFE_MS}`;
          const cookie = `${body}.${mac(body)}`;
          return { cookie, csrf: csrfOf(cookie), maxAgeSeconds: LIFE_MS / 1000 };
        }),
      issueCode: Effect.fnUntraced(function* (tokenHash) {
        const code = yield* newPassword;
        codes.set(code, { tokenHash, expiresAt: (yield* Clock.currentTimeMillis) + CODE_LIFE_MS });
        for (const oldest of [...codes.keys()].slice(0, Math.max(0, codes.size - CODES_MAX)))
          codes.delete(oldest);
        return code;
      }),
      redeem: (code) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          const entry = codes.get(code);
          codes.delete(code);
          return entry !== undefined && entry.expiresAt > now ? entry.tokenHash : null;
        }),
      tokenOf: Effect.fnUntraced(function* (request) {
        const cookie = request.cookies[DASHBOARD_COOKIE];
        const token = cookie === undefined ? null : read(cookie, yield* Clock.currentTimeMillis);
        if (cookie === undefined || token === null || SAFE_METHODS.has(request.method)) return token;
        if (equal(request.headers[CSRF_HEADER] ?? "", csrfOf(cookie))) return token;
        return yield* new Forbidden({
          error: `Requests with the dashboard cookie must send the ${CSRF_HEADER} header.`,
          code: "csrf_token_missing",
        });
      }),
    });
  }),
);
