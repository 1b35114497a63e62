/**
 * Whether a request is of this service's own page. A page of another site sends requests too, and browsers add their cookies to some.
 *
 *  O1 Browsers say where a request comes from, by `Sec-Fetch-Site` or `Origin`. What they say must be this service.
 *  O2 What begins a session of a browser needs no cookie, so no CSRF token guards it: it comes from the own page (O1), as JSON, which no form
 *     of another site can send. Programs name no page.
 *  O3 A link sends no `Origin`. It begins a sign-in only if the browser says that it is this service's own, or that the person came by
 *     herself: by the address bar, a bookmark, another program. A preview is of the same site, and is not ours. Over plain http, browsers
 *     say nothing. A browser that comes otherwise gets a button, whose form O1 judges.
 */
import * as Effect from "effect/Effect";
import type * as Schema from "effect/Schema";
import { HttpServerRequest } from "effect/http";
import { badRequest, Forbidden, unsupportedMedia } from "../api/errors.ts";
import { JSON_LIMIT_BYTES, awaitBody } from "../reading/body.ts";
import { Addresses } from "../limits.ts";

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/** Whether the header `Origin` names this service: by its public URL, or by the host that the browser asked. */
export const isOwnPage = ({ origin, host }: Headers, publicUrl: string): boolean => {
  if (typeof origin !== "string" || !URL.canParse(origin)) return false;
  const page = new URL(origin);
  return page.origin === new URL(publicUrl).origin || page.host === host;
};

/** Whether the request says that it is of another page (O1). */
const isForeign = (headers: Headers, publicUrl: string): boolean => {
  const site = headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin") return true;
  return headers["origin"] !== undefined && !isOwnPage(headers, publicUrl);
};

const foreign = () =>
  new Forbidden({
    error: "A page of another site sent this request. Do this on the service's own page.",
    code: "forbidden",
  });

/** Fails with 403 for a request of another site's page. */
export const requireOwnPage = Effect.gen(function* () {
  const { headers } = yield* HttpServerRequest.HttpServerRequest;
  if (isForeign(headers, (yield* Addresses).publicUrl)) yield* foreign();
});

/** Whether a link of the own page, or a person herself, leads here (O3). */
export const isOwnNavigation = ({ "sec-fetch-site": site }: Headers): boolean =>
  site === "same-origin" || site === "none";

const FORM_LIMIT_BYTES = 4096;

/** The fields of a form of the own page (O1). */
export const ownForm = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest;
  yield* requireOwnPage;
  yield* awaitBody(request, FORM_LIMIT_BYTES);
  return new URLSearchParams(yield* Effect.orDie(request.text));
});

/** The JSON body of a request that begins a session (O2). @param issue the field and the words for one that does not fit */
export const ownPageBody = <A>(
  schema: Schema.Decoder<A>,
  issue: { readonly field: string; readonly words: string },
) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest;
    yield* requireOwnPage;
    yield* awaitBody(request, JSON_LIMIT_BYTES);
    if (!/^application\/json\s*(?:;|$)/i.test(request.headers["content-type"] ?? ""))
      yield* unsupportedMedia();
    return yield* Effect.mapError(HttpServerRequest.schemaBodyJson(schema), () =>
      badRequest(issue.field, issue.words),
    );
  });
