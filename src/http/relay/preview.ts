/**
 * Previews (api.md 3): a browser's access to a port inside a running sandbox. A one-time link leads to an origin of the
 * port's own. The service's listener recognises it by its Host. There, a cookie opens that port and nothing else.
 *
 * Threats and defences:
 *
 *  V1 A preview's host serves only its port: no path there belongs to the API, the dashboard, a webhook or git. Below
 *     the previews' domain, only the exact form is a preview. Every other name there is refused, and never reaches the
 *     API either.
 *  V2 A link's secret (256 bits, stored as its hash) works once, within 5 minutes, for a navigation to its own host.
 *     Programs that only look at links (HEAD, prefetches, images, frames) do not use it up. The answer removes it from
 *     the address bar. No cache keeps that answer, and no referrer contains the secret.
 *  V3 The cookie replaces the link: host-only, HttpOnly, SameSite=Lax, for 8 hours at most. Each request checks again
 *     that it belongs to this session and port, that the token that created its link still has the relay's power, and
 *     that the sandbox is still the one that it was created for. So a stop ends it for good. Open connections end with
 *     the cookie, with that token, and with the sandbox.
 *  V4 The API does not accept these cookies, and a preview accepts no token: `Authorization` reaches neither daemon nor
 *     app (api.md 7).
 *  V5 The app is written by the agent, so it is not trusted. It never sees our cookie and cannot set it: its Set-Cookie
 *     of our name is dropped, a script cannot overwrite an HttpOnly cookie, and a cookie placed beside ours opens
 *     nothing, since ours is looked for among them. Any part of a link that it can read (a service worker sees its
 *     address) opens only that app.
 *  V6 Other pages can make a browser send the cookie only by a top-level GET. Between sites, SameSite=Lax ensures that.
 *     But previews below one wildcard domain are one site, perhaps together with the service's own pages. So
 *     Sec-Fetch-Site is checked, or Origin if the browser does not send it (for WebSockets, and without TLS). Neither
 *     stops a script or image of a sibling over plain http: a wildcard domain needs TLS.
 *  V7 A foreign server cannot point a preview's name at an address (DNS rebinding): the name contains a session's id,
 *     and its domain is loopback's or the operator's. Links and origins come from the settings, never from Host
 *     (threats.md X17).
 *  V8 Cookies ignore ports: below `localhost`, another program on the reader's own machine that serves the same name
 *     could receive our cookie. It would have to know the session's id, and gains that one port while the cookie lives.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { withAudit } from "../../services/audit.ts";
import { newPassword } from "../../services/entropy.ts";
import { tokenHash } from "../../domain/ids.ts";
import { FORWARDER_PORT, RUNTIME_PORT, SERVICE_PORT } from "../../domain/sandbox/launch.ts";
import {
  linkSecret,
  previewCookieName,
  previewCookies,
  previewHost,
  previewLink,
  previewNamed,
  previewOrigin,
  setsPreviewCookie,
  withoutPreviewCookie,
  type PreviewAddress,
  type PreviewPlace,
} from "../../domain/session/preview.ts";
import { openProxy, type AnswerFailure } from "../../proxy/proxy.ts";
import { responseOn } from "../../proxy/tunnel.ts";
import { Identity } from "../../store/ports/people/identity.ts";
import { Previews } from "../../store/ports/sessions/previews.ts";
import { rawClientAddress, Proxies } from "../callers/acting.ts";
import { Caller } from "../api/access.ts";
import { Forbidden, NotFound, Unauthorized } from "../api/errors.ts";
import { runDecision } from "../steps/answers.ts";
import { Addresses } from "../limits.ts";
import { answerPage, answerOpened } from "./preview-page.ts";
import { toUse, Openings } from "../callers/openings.ts";
import {
  holdRequest,
  holdUpgrade,
  noteRequest,
  relayFailure,
  runningSession,
  relayUpstream,
  type Passage,
} from "./relay.ts";
import { requestId } from "../answers/respond.ts";
import type { RawRoutes } from "../server.ts";
import { instant } from "../steps/wire.ts";

/** From a link's creation to its opening: long enough to send it to a waiting person. */
const LINK_LIFE_MS = 5 * 60 * 1000;
/** A working day, like the dashboard's cookie. */
const COOKIE_LIFE_MS = 8 * 60 * 60 * 1000;

/** The platform's own ports, which the daemon refuses too (daemon/daemon.ts). */
const BLOCKED_PORTS: ReadonlySet<number> = new Set([SERVICE_PORT, RUNTIME_PORT, FORWARDER_PORT]);

/** Handler of `POST …/preview`: a link for a browser that works once. */
export const makePreview = Effect.fnUntraced(function* (
  params: { readonly pid: string; readonly sid: string },
  port: number,
) {
  const caller = yield* Caller;
  const session = yield* runningSession(caller, params, "enter_port");
  if (BLOCKED_PORTS.has(port)) {
    return yield* new Forbidden({
      error: `Port ${port} is reserved for the platform.`,
      code: "port_blocked",
    });
  }
  const secret = yield* newPassword;
  const now = yield* Clock.currentTimeMillis;
  const expiresAt = now + LINK_LIFE_MS;
  const { sandboxId } = session;
  const link = { tokenId: caller.tokenId, sessionId: session.id, sandboxId, port, expiresAt, now };
  const row = { action: "preview.created", target: session.id, changes: { port } } as const;
  yield* (yield* Previews).issue({ hash: tokenHash(secret), ...link }).pipe(withAudit(() => row));
  const { previews } = yield* Addresses;
  return {
    url: previewLink(previews, { port, sessionId: session.id }, secret),
    expires_at: instant(expiresAt),
  };
});

const SAFE_METHODS = new Set(["GET", "HEAD"]);

const isNavigation = ({ headers }: IncomingMessage): boolean =>
  (headers["sec-fetch-mode"] ?? "navigate") === "navigate" &&
  (headers["sec-fetch-dest"] ?? "document") === "document";

/** Whether a browser makes the request for another origin's page, except by navigating here (V6). */
const isForeign = (request: IncomingMessage, origin: string): boolean => {
  const { method = "", headers } = request;
  const site = headers["sec-fetch-site"];
  if (site === undefined) return headers.origin !== undefined && headers.origin !== origin;
  if (site === "same-origin" || site === "none") return false;
  return !SAFE_METHODS.has(method) || headers.upgrade !== undefined || !isNavigation(request);
};

/** Whether a person follows a link, as opposed to a program that looks at it (V2). */
const isFollowed = (request: IncomingMessage): boolean => {
  const { method, headers } = request;
  const purpose = String(headers["sec-purpose"] ?? headers["purpose"] ?? "");
  return method === "GET" && isNavigation(request) && !purpose.includes("prefetch");
};

const noAccess = (): Unauthorized =>
  new Unauthorized({
    error:
      "Open the session on the dashboard, press “Open a port”, and follow the link. A program creates a link with " +
      "POST …/sessions/{id}/preview. A link works once, within five minutes, and gives access for eight hours.",
    code: "unauthorized",
  });

/** The preview that the request's cookie opens, if it is this one. */
const findPreview = Effect.fnUntraced(function* (
  { headers }: IncomingMessage,
  address: PreviewAddress,
  { sessionId, port }: PreviewPlace,
) {
  const previews = yield* Previews;
  const now = yield* Clock.currentTimeMillis;
  for (const value of previewCookies(address, headers.cookie ?? "")) {
    const preview = yield* previews.find(tokenHash(value), now);
    if (preview !== null && preview.sessionId === sessionId && preview.port === port) return preview;
  }
  return null;
});

/** What happens with a request: it is passed on, or redirected to the app with the cookie of its link. */
type Decision =
  | ({ readonly kind: "pass" } & Passage)
  | { readonly kind: "opened"; readonly cookie: string | null };

/** Uses up the link. A used link still redirects a browser with its cookie: people click a link twice, or reload it. */
const openLink = Effect.fnUntraced(function* (request: IncomingMessage, place: PreviewPlace, secret: string) {
  const { previews: address } = yield* Addresses;
  if (!isFollowed(request)) return yield* noAccess();
  const value = yield* newPassword;
  const now = yield* Clock.currentTimeMillis;
  const isOpened = yield* (yield* Previews).open({
    ...place,
    linkHash: tokenHash(secret),
    cookieHash: tokenHash(value),
    expiresAt: now + COOKIE_LIFE_MS,
    now,
  });
  if (!isOpened && (yield* findPreview(request, address, place)) === null) return yield* noAccess();
  const attributes = [
    "Path=/",
    "HttpOnly",
    "SameSite=Lax",
    `Max-Age=${COOKIE_LIFE_MS / 1000}`,
    ...(address.scheme === "https" ? ["Secure"] : []),
  ];
  const cookie = [`${previewCookieName(address)}=${value}`, ...attributes].join("; ");
  return { kind: "opened", cookie: isOpened ? cookie : null } satisfies Decision;
});

/** V5: filters cookies between browser and app, in both directions. */
const rewrite = (name: string, value: string): string | null => {
  if (name === "cookie") return withoutPreviewCookie(value);
  return name === "set-cookie" && setsPreviewCookie(value) ? null : value;
};

const decide = Effect.fnUntraced(function* (request: IncomingMessage, place: PreviewPlace) {
  const { previews: address } = yield* Addresses;
  const target = request.url ?? "/";
  if (isForeign(request, previewOrigin(address, place))) {
    return yield* new Forbidden({
      error: "A page of another site sent this request. Open the preview's own address instead.",
      code: "forbidden",
    });
  }
  const secret = linkSecret(target);
  if (secret !== null) return yield* openLink(request, place, secret);
  const preview = yield* findPreview(request, address, place);
  if (preview === null) return yield* noAccess();
  const path = { projectId: preview.projectId, sessionId: null };
  const now = yield* Clock.currentTimeMillis;
  const arrival = yield* (yield* Identity).arrive(preview.tokenHash, now, path);
  if (arrival === null) return yield* noAccess();
  const caller = { ...arrival.caller, reached: arrival.reached };
  const at = { pid: preview.projectId, sid: place.sessionId };
  const session = yield* runningSession(caller, at, "enter_port");
  if (session.sandboxId !== preview.sandboxId) return yield* noAccess();
  yield* noteRequest(caller, session, "enter_port", request);
  const upstream = yield* relayUpstream(caller, session, {
    method: request.method,
    path: `/proxy/${place.port}${target}`,
  });
  const forwarded = {
    for: rawClientAddress(request, yield* Proxies) ?? "unknown",
    host: previewHost(address, place),
    proto: address.scheme,
  };
  const { projectId, sandboxId } = preview;
  const grant = toUse(caller, {
    projectId,
    needs: "member",
    session: { id: place.sessionId, sandboxId },
  });
  const expiresAt = Math.min(preview.expiresAt, grant.expiresAt ?? Infinity);
  return {
    kind: "pass",
    to: { ...upstream, forwarded, rewrite },
    use: { ...grant, expiresAt },
  } satisfies Decision;
});

const answerFailure: AnswerFailure = (response, to, why) => answerPage(response, relayFailure(to, why));

const refuse = (response: ServerResponse): void => answerPage(response, noAccess());

const stranger = (): NotFound =>
  new NotFound({ error: "No preview exists at this address.", code: "not_found" });

/** The previews' raw routes, before all others: Host alone selects them. They live as long as the scope. */
export const makePreviews = Effect.gen(function* () {
  type Needs = Effect.Services<ReturnType<typeof decide>>;
  const context = yield* Effect.context<Needs>();
  const scope = yield* Effect.scope;
  const { hold } = yield* Openings;
  const { previews: address, publicUrl } = yield* Addresses;
  const ownHost = new URL(publicUrl).host;
  const proxy = yield* openProxy(answerFailure);

  /** The service itself may have a name below the previews' domain. */
  const placeFor = ({ headers }: IncomingMessage): PreviewPlace | "stranger" | null => {
    const host = headers.host ?? "";
    return host.toLowerCase() === ownHost ? null : previewNamed(address, host);
  };

  const answer = (
    request: IncomingMessage,
    response: ServerResponse,
    pass: (passage: Passage) => void,
  ): boolean => {
    const place = placeFor(request);
    if (place === null) return false;
    if (place === "stranger") {
      answerPage(response, stranger());
      return true;
    }
    const deciding = Effect.map(decide(request, place), (decision) => {
      if (decision.kind === "pass") pass(decision);
      else answerOpened(response, decision.cookie);
    });
    const answering = runDecision(deciding, (error) => answerPage(response, error));
    Effect.runForkWith(context)(Effect.forkIn(answering, scope));
    return true;
  };

  const routes: RawRoutes = {
    request: (request, response) =>
      answer(request, response, ({ to, use }) =>
        holdRequest(hold, { use, response, cut: proxy.pass(request, response, to) }, refuse),
      ),
    upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      if (placeFor(request) === null) return false;
      const response = responseOn(request, socket);
      response.setHeader("x-request-id", requestId(request));
      return answer(request, response, ({ to, use }) => {
        holdUpgrade(hold, { use, socket });
        proxy.upgrade(request, response, { socket, head, to });
      });
    },
  };
  return routes;
});
