/** The page at `/` and its sign-in: with a token, or with a one-time link (api.md 3, 9). */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Schema from "effect/Schema";
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http";
import { tokenHash, tokenKind } from "../../domain/ids.ts";
import { withAudit, recordRefusedEntry } from "../../services/audit.ts";
import { BrowserSessions, type SignedInPerson } from "../../store/ports/people/browser-sessions.ts";
import { Forbidden } from "../api/errors.ts";
import { actingAs, signedInActor } from "../callers/acting.ts";
import { authenticator, unauthorized } from "../callers/authorize.ts";
import { ownForm, ownPageBody } from "../callers/own-page.ts";
import { withErrors, withCookie } from "./answer.ts";
import {
  cookieIn,
  csrfToken,
  issueCode,
  newSession,
  openingLink,
  sessionHash,
} from "./dashboard-sessions.ts";
import { invitationRoutes } from "./invitations.ts";
import { doorPage, InstallationLook } from "./look.ts";
import { signInRoutes } from "./sign-in.ts";
import { Addresses } from "../limits.ts";
import { tokenRefused } from "../answers/refused-requests.ts";
import { ownPage, PAGE_POLICY, readPage, type PageFile } from "./page-files.ts";
import { escapeHtml } from "../../ground/html.ts";

const SECURITY_HEADERS = {
  "content-security-policy": PAGE_POLICY,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
};

/** A browser asks each time, and gets nothing if it has the file. It does not ask for a file whose name says its content. */
const CACHED = { lasting: "public, max-age=31536000, immutable", asked: "no-cache" } as const;

const answerFile = ({ plain, gzipped, type, tag, isLasting }: PageFile) =>
  Effect.map(HttpServerRequest.HttpServerRequest, ({ headers }) => {
    const isGzipped = /\bgzip\b/.test(headers["accept-encoding"] ?? "");
    const cacheControl = isLasting ? CACHED.lasting : CACHED.asked;
    const own = { ...SECURITY_HEADERS, "cache-control": cacheControl, etag: tag, vary: "accept-encoding" };
    if (headers["if-none-match"] === tag) return HttpServerResponse.empty({ status: 304, headers: own });
    return HttpServerResponse.uint8Array(isGzipped ? gzipped : plain, {
      contentType: type,
      headers: isGzipped ? { ...own, "content-encoding": "gzip" } : own,
    });
  });

const pageRoutes = (files: readonly PageFile[]) =>
  files.map((file) =>
    HttpRouter.route("GET", file.name === "index.html" ? "/" : `/${file.name}`, answerFile(file)),
  );

/** The row of a sign-in that found its person. */
const signInRow = (by: "token" | "link", sessionId: string) => (person: SignedInPerson | null) =>
  person === null
    ? null
    : { action: "sign_in" as const, actor: signedInActor(person, sessionId), changes: { by } };

const SignIn = Schema.Struct({ token: Schema.String });

const signIn = Effect.gen(function* () {
  const body = yield* ownPageBody(SignIn, { field: "token", words: "must be a token" });
  const hash = tokenKind(body.token) === "pat" ? tokenHash(body.token) : null;
  const { row, session } = yield* newSession;
  const opening = (yield* BrowserSessions).open(hash ?? "", row).pipe(withAudit(signInRow("token", row.id)));
  const user = hash === null ? null : yield* opening;
  // Tokens in sandboxes cannot open the dashboard: an agent is not a person.
  if (user === null) {
    yield* recordRefusedEntry({ action: "sign_in", changes: { by: "token" } });
    const refusal = hash === null ? Effect.succeed(unauthorized()) : tokenRefused(hash, null, unauthorized());
    return yield* Effect.flatMap(refusal, Effect.fail);
  }
  return yield* withCookie(HttpServerResponse.jsonUnsafe({ user, csrf: session.csrf }), session);
});

/** A used or unknown code leads to the page, which says so and asks for a token. */
const linkRefused = Effect.as(
  recordRefusedEntry({ action: "sign_in", changes: { by: "link" } }),
  HttpServerResponse.redirect("/?link=refused", { status: 303 }),
);

/**
 * Shows the person that a one-time link signs in. It uses nothing up, because programs follow links too, and replaces no session, because another site
 * can lead here: the person presses a button.
 */
const showLink = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest;
  const code = new URLSearchParams(request.url.split("?")[1] ?? "").get("code") ?? "";
  const now = yield* Clock.currentTimeMillis;
  const person = yield* (yield* BrowserSessions).person(tokenHash(code), now);
  if (person === null) return yield* linkRefused;
  const name = escapeHtml(person.name);
  const body = [
    `<h1>Sign in as ${name}?</h1>`,
    `<p>This one-time link signs this browser in as <strong>${name}</strong>. Another person who is signed in here is signed out.</p>`,
    `<form method="post" action="/dashboard/open"><input type="hidden" name="code" value="${escapeHtml(code)}">`,
    `<p><button type="submit">Sign in as ${name}</button></p></form>`,
    '<p class="quiet">If you did not ask for this link, <a href="/">go to the page</a> without it.</p>',
  ];
  return yield* doorPage({ title: `Sign in as ${person.name}`, body: body.join("\n"), hasForm: true });
});

/** Uses a one-time link up. Only the page above sends it: a browser names the page that a form is on. */
const openLink = Effect.gen(function* () {
  const code = (yield* ownForm).get("code") ?? "";
  const { row, session } = yield* newSession;
  const opening = (yield* BrowserSessions).openLink(tokenHash(code), row);
  const user = yield* opening.pipe(withAudit(signInRow("link", row.id)));
  const home = HttpServerResponse.redirect("/", { status: 303 });
  if (user === null) return yield* linkRefused;
  // The browser omits a strict cookie on a navigation from a foreign page. The page's own requests, after it has
  // loaded, carry it.
  return yield* withCookie(home, session);
});

const current = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest;
  const authenticate = yield* authenticator;
  const caller = yield* authenticate(request);
  const cookie = cookieIn(request.headers["cookie"], (yield* Addresses).publicUrl);
  if (cookie === null) return yield* unauthorized();
  return HttpServerResponse.jsonUnsafe({ user: caller.user, csrf: csrfToken(cookie) });
});

/** Ends the browser's session on all nodes. */
const signOut = Effect.gen(function* () {
  const hash = yield* sessionHash(yield* HttpServerRequest.HttpServerRequest, (yield* Addresses).publicUrl);
  if (hash !== null)
    yield* (yield* BrowserSessions).signOut(hash).pipe(
      withAudit((person) =>
        person === null
          ? null
          : {
              action: "sign_out",
              target: person.sessionId,
              actor: signedInActor(person, person.sessionId),
            },
      ),
    );
  return yield* withCookie(HttpServerResponse.empty(), { cookie: "", maxAgeSeconds: 0 });
});

/** Creates a one-time link for the holder of a token. It is valid for five minutes. */
const makeLink = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest;
  const authenticate = yield* authenticator;
  const caller = yield* authenticate(request);
  const token = /^Bearer (\S+)$/i.exec(request.headers["authorization"] ?? "")?.[1];
  if (token === undefined || caller.origin !== "user") {
    return yield* new Forbidden({
      error: "Only a user's token can create a dashboard link.",
      code: "forbidden",
    });
  }
  const issue = issueCode(tokenHash(token));
  const row = { action: "sign_in.link_created", target: caller.tokenId } as const;
  const code = yield* issue.pipe(
    withAudit(() => row),
    actingAs(caller, request),
  );
  const { publicUrl } = yield* Addresses;
  return HttpServerResponse.jsonUnsafe({ url: openingLink(publicUrl, code) }, { status: 201 });
});

/** @param directory contains the page's files. */
export const dashboardRoutes = (directory: string) =>
  Layer.unwrap(
    Effect.map(
      Effect.flatMap(InstallationLook, (look) =>
        Effect.promise(async () => ownPage(await readPage(directory), look)),
      ),
      (files) =>
        HttpRouter.addAll([
          ...pageRoutes(files),
          HttpRouter.route("POST", "/dashboard/session", withErrors(signIn)),
          HttpRouter.route("GET", "/dashboard/session", withErrors(current)),
          HttpRouter.route("DELETE", "/dashboard/session", withErrors(signOut)),
          HttpRouter.route("GET", "/dashboard/open", withErrors(showLink)),
          HttpRouter.route("POST", "/dashboard/open", withErrors(openLink)),
          HttpRouter.route("POST", "/dashboard/links", withErrors(makeLink)),
          ...invitationRoutes,
          ...signInRoutes,
        ]),
    ),
  );
