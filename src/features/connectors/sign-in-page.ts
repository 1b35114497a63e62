/**
 * The two stops of a person's browser when she signs in to a connector: the address that begins it, and the one to which the
 * server sends her back (api.md 5).
 *
 *  Z1 The address asks for the page's session of the person who began the sign-in. The session's cookie is strict: the browser
 *     sends it here, because no other site's page leads here, and does not send it with the callback.
 *  Z2 So the address gives the browser a separate cookie for the callback: a random secret, lax, of which the
 *     sign-in has the hash. Over https its name has the prefix `__Host-`, so no other host can plant one.
 */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http";
import type { SignInFault } from "../../connectors/sign-in/port.ts";
import { finishSignIn, FLOW_LIFE_MS, openSignIn } from "./sign-in.ts";
import { newPassword } from "../../services/entropy.ts";
import { StoreError } from "../../store/ports/journal.ts";
import { actingUnknown } from "../../http/callers/acting.ts";
import { authenticator } from "../../http/callers/authorize.ts";
import { Addresses } from "../../http/limits.ts";
import { withErrors } from "../../http/pages/answer.ts";
import { hostCookie, isSecure } from "../../http/pages/dashboard-sessions.ts";
import { escapeHtml } from "../../ground/html.ts";
import { doorPage } from "../../http/pages/look.ts";

const NAME = "platform_connector";

/** The same for all connectors: people register it at their servers. */
export const connectorRedirectUri = (publicUrl: string): string =>
  `${publicUrl}/dashboard/callback/connector`;

/** The address that a person opens to sign in. */
export const connectorSignInAddress = (publicUrl: string, ticket: string): string =>
  `${publicUrl}/dashboard/connectors/${ticket}`;

const withBrowser = Effect.fnUntraced(function* (
  response: HttpServerResponse.HttpServerResponse,
  { secret, maxAgeMs }: { readonly secret: string; readonly maxAgeMs: number },
) {
  const { publicUrl } = yield* Addresses;
  return HttpServerResponse.setCookieUnsafe(response, hostCookie(publicUrl, NAME), secret, {
    httpOnly: true,
    sameSite: "lax",
    secure: isSecure(publicUrl),
    path: "/",
    maxAge: maxAgeMs,
  });
});

const withoutBrowser = (response: HttpServerResponse.HttpServerResponse) =>
  withBrowser(response, { secret: "", maxAgeMs: 0 });

/** The page for a sign-in that does not go on. */
const refusal = (status: number, title: string, text: string) =>
  doorPage({
    title,
    status,
    body: `<h1>${escapeHtml(title)}</h1>\n<p>${escapeHtml(text)}</p>\n<p><a href="/">Back to the projects</a></p>`,
  });

const OVER =
  "It is not yours, it was already used, it is older than ten minutes, or another one was started meanwhile. Press “Sign in” at the connector again.";

const open = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest;
  const authenticate = yield* authenticator;
  const caller = yield* Effect.result(authenticate(request));
  if (Result.isFailure(caller) && caller.failure instanceof StoreError)
    return yield* Effect.fail(caller.failure);
  if (Result.isFailure(caller) || caller.success.kind !== "browser")
    return yield* refusal(
      401,
      "Sign in to this service first",
      "Sign in on the page in this browser. Then open this address again.",
    );
  const { params } = yield* HttpRouter.RouteContext;
  const browser = yield* newPassword;
  const address = yield* openSignIn({
    ticket: params["ticket"] ?? "",
    userId: caller.success.user.id,
    browserId: caller.success.tokenId,
    browser,
  });
  if (address === null) return yield* refusal(400, "This sign-in cannot be opened", OVER);
  const there = HttpServerResponse.redirect(address, { status: 303 });
  return yield* withBrowser(there, { secret: browser, maxAgeMs: FLOW_LIFE_MS });
});

const faultPage = ({ kind, why }: SignInFault) => {
  switch (kind) {
    case "denied":
      return refusal(403, "The sign-in was cancelled", `You or the server did not allow it. ${why}.`);
    case "unreachable":
      return refusal(502, "The server does not answer", `${why}. Try again later.`);
    default:
      return refusal(403, "The sign-in was refused", `${why}. Press “Sign in” at the connector again.`);
  }
};

/** The browser comes back. The sign-in ends, whatever the answer is. */
const callback = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest;
  const { publicUrl } = yield* Addresses;
  const url = new URL(connectorRedirectUri(publicUrl));
  const start = request.url.indexOf("?");
  url.search = start < 0 ? "" : request.url.slice(start + 1);
  const browser = request.cookies[hostCookie(publicUrl, NAME)] ?? "";
  const outcome = yield* finishSignIn({ browser, callback: url });
  switch (outcome.kind) {
    case "signed_in": {
      const { projectId, slug } = outcome;
      const home = HttpServerResponse.redirect(`/#/projects/${projectId}/connectors/${slug}`, {
        status: 303,
      });
      return yield* withoutBrowser(home);
    }
    case "unknown":
      // The cookie stays: another site may have sent the browser here, and the real callback may still come.
      return yield* refusal(400, "This sign-in cannot be completed", OVER);
    case "changed":
      return yield* withoutBrowser(
        yield* refusal(
          409,
          "The connector changed meanwhile",
          "It has another server or another kind of sign-in now, or you are no longer an owner of the project.",
        ),
      );
    case "fault": {
      const { kind, why } = outcome.fault;
      yield* Effect.logWarning("a sign-in to a connector was refused", { kind, why });
      return yield* withoutBrowser(yield* faultPage(outcome.fault));
    }
  }
});

export const connectorSignInRoutes = HttpRouter.addAll([
  HttpRouter.route("GET", "/dashboard/connectors/:ticket", withErrors(open)),
  HttpRouter.route("GET", "/dashboard/callback/connector", withErrors(actingUnknown(callback))),
]);
