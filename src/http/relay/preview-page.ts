/**
 * The service's own answers on a preview's host, for a person with a browser: a small page without script, style or
 * address.
 */
import type { ServerResponse } from "node:http";
import { errorStatus, Unavailable, type ApiError } from "../api/errors.ts";
import { RETRY_AFTER_SECONDS } from "../answers/respond.ts";
import { escapeHtml } from "../../ground/html.ts";

/** No cache keeps it, no page may frame it, and it sends no referrer. */
const HEADERS = {
  "cache-control": "no-store",
  "content-security-policy":
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

const TITLES: Readonly<Record<number, string>> = {
  401: "This preview needs a link",
  403: "Request blocked",
  404: "Preview not found",
  409: "The session is not running",
};

/** Answers with an error's sentence and closes the connection, since the rest of the request was not read. */
export const answerPage = (response: ServerResponse, error: ApiError): void => {
  const status = errorStatus(error);
  const title = TITLES[status] ?? "The preview is not available";
  const page =
    `<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>${title}</title>\n` +
    `<h1>${title}</h1>\n<p>${escapeHtml(error.error)}</p>\n</html>\n`;
  response.writeHead(status, {
    ...HEADERS,
    ...(error instanceof Unavailable ? { "retry-after": RETRY_AFTER_SECONDS } : {}),
    connection: "close",
    "content-type": "text/html; charset=utf-8",
    "content-length": Buffer.byteLength(page),
  });
  response.end(page);
};

/** Redirects from a link to the app, with the cookie that the link gave. */
export const answerOpened = (response: ServerResponse, cookie: string | null): void => {
  response.writeHead(303, {
    ...HEADERS,
    ...(cookie === null ? {} : { "set-cookie": cookie }),
    location: "/",
    "content-length": 0,
  });
  response.end();
};
