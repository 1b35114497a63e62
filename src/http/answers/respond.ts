/** Answers of raw routes and of the server itself, in the API's common error shape. */
import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import * as Context from "effect/Context";
import { HttpServerResponse } from "effect/http";
import { errorBody, errorStatus, Unavailable, type ApiError } from "../api/errors.ts";

/** Every 503 carries this header (server.ts). */
export const RETRY_AFTER_SECONDS = "1";

export const apiErrorResponse = (error: ApiError): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(errorBody(error), { status: errorStatus(error) });

/** The id of the request that a fiber answers, or null if it answers none. */
export const RequestId = Context.Reference<string | null>("platform/http/RequestId", {
  defaultValue: () => null,
});

const SANE_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** The request's id: the caller's if it is well-formed, otherwise a new one (api.md 1 "Base"). */
export const requestId = ({ headers }: IncomingMessage): string => {
  const header = headers["x-request-id"];
  return typeof header === "string" && SANE_ID.test(header) ? header : randomUUID();
};

/** How many unread bytes Node discards after an answer to reuse the connection. */
const DROPPED_BYTES = 64 * 1024;

/** Whether too much of a request's body may be left to discard. */
const hasMuchLeft = ({ complete, headers }: IncomingMessage): boolean =>
  !complete &&
  (headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > DROPPED_BYTES);

/** A JSON answer below Effect's router. If much of the request's body is left, the connection closes. */
export const answerJson = (
  response: ServerResponse,
  status: number,
  { body, headers = {} }: { readonly body: object; readonly headers?: Readonly<Record<string, string>> },
): void => {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
    ...(hasMuchLeft(response.req) ? { connection: "close" } : {}),
    ...headers,
  });
  response.end(text);
};

/** After these the body is not read any further: the sender was too slow, or sends too much. */
const ENDING = new Set([408, 413]);

/** An error below Effect's router. Keeps the connection open if possible. */
export const answerError = (response: ServerResponse, error: ApiError): void => {
  const status = errorStatus(error);
  const headers = {
    ...(ENDING.has(status) ? { connection: "close" } : {}),
    ...(error instanceof Unavailable ? { "retry-after": RETRY_AFTER_SECONDS } : {}),
  };
  answerJson(response, status, { body: errorBody(error), headers });
};

/**
 * An error below Effect's router that closes the connection: the following bytes are not trustworthy, or were not read.
 */
export const answerRaw = (response: ServerResponse, error: ApiError): void => {
  response.setHeader("connection", "close");
  answerError(response, error);
};

/** 405 with the allowed methods. */
export const wrongMethod = (...methods: readonly string[]): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(
    { error: `Method not allowed. This address accepts ${methods.join(", ")}.`, code: "method_not_allowed" },
    { status: 405, headers: { allow: methods.join(", ") } },
  );
