/** The page that a browser gets for a port that does not answer: small, without script, and reloading itself. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { escapeHtml } from "../../src/ground/html.ts";

/** Seconds until the browser reloads: development servers restart often. */
const REFRESH_SECONDS = 3;

const HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "cache-control": "no-store",
  "content-security-policy":
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/** Whether a browser shows the answer to a person. */
export const wantsPage = ({ method, headers }: IncomingMessage): boolean =>
  (method === "GET" || method === "HEAD") &&
  (headers.accept ?? "")
    .split(",")
    .some((range) => /^\s*text\/html\s*(?:;(?!\s*q=0(?:\.0*)?\s*$).*)?$/i.test(range));

/** Answers with a sentence as a page. */
export const answerPage = (
  response: ServerResponse,
  { status, error }: { readonly status: number; readonly error: string },
): void => {
  const page = [
    '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">',
    `<meta http-equiv="refresh" content="${REFRESH_SECONDS}">`,
    "<title>No app is running on this port</title>",
    "<h1>No app is running on this port</h1>",
    `<p>${escapeHtml(error)}</p>`,
    `<p>Start the app in the session. This page reloads every ${REFRESH_SECONDS} seconds.</p>\n</html>\n`,
  ].join("\n");
  response.writeHead(status, { ...HEADERS, "content-length": Buffer.byteLength(page) });
  response.end(page);
};
