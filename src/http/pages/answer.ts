/** How the routes of the page's sign-in answer: with the cookie, and with errors in the common shape. */
import * as Effect from "effect/Effect";
import { HttpServerResponse } from "effect/http";
import { actingUnknown } from "../callers/acting.ts";
import { isApiError } from "../api/errors.ts";
import { withApiErrors } from "../steps/answers.ts";
import { Addresses } from "../limits.ts";
import { apiErrorResponse } from "../answers/respond.ts";
import { dashboardCookie, type DashboardSession, isSecure } from "./dashboard-sessions.ts";

/** The cookie holds the session. The CSRF token goes to the page, which returns it with every change. */
export const withCookie = Effect.fnUntraced(function* (
  response: HttpServerResponse.HttpServerResponse,
  session: Pick<DashboardSession, "cookie" | "maxAgeSeconds">,
) {
  const { publicUrl } = yield* Addresses;
  return HttpServerResponse.setCookieUnsafe(response, dashboardCookie(publicUrl), session.cookie, {
    httpOnly: true,
    sameSite: "strict",
    secure: isSecure(publicUrl),
    path: "/",
    maxAge: `${session.maxAgeSeconds} seconds`,
  });
});

export const withErrors = <E, R>(handler: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
  Effect.catch(withApiErrors(actingUnknown(handler)), (error: unknown) =>
    isApiError(error) ? Effect.succeed(apiErrorResponse(error)) : Effect.die(error),
  );
