/** Answers of raw routes and of the server itself in the API's one error shape. */
import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { HttpServerResponse } from "effect/http";
import { bodyOf, statusOf, Unavailable, type ApiError } from "./api/errors.ts";

/** What every 503 carries (server.ts). */
export const RETRY_AFTER_SECONDS = "1";

export const apiErrorResponse = (error: ApiError): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(bodyOf(error), { status: statusOf(error) });

const SANE_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** The request's id: the caller's where it sent a sane one, else a new one (api.md 1 "Base"). */
export const requestId = ({ headers }: IncomingMessage): string => {
  const given = headers["x-request-id"];
  return typeof given === "string" && SANE_ID.test(given) ? given : randomUUID();
};

/** A JSON answer below Effect's router. What is left of the request's body is not read: the connection ends with it. */
export const answerJson = (
  response: ServerResponse,
  status: number,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): void => {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
    ...(response.req.complete ? {} : { connection: "close" }),
    ...headers,
  });
  response.end(text);
};

/** An error below Effect's router. */
export const answerRaw = (response: ServerResponse, error: ApiError): void =>
  answerJson(
    response,
    statusOf(error),
    bodyOf(error),
    error instanceof Unavailable ? { "retry-after": RETRY_AFTER_SECONDS } : {},
  );

/** 405 with the methods that the address takes. */
export const wrongMethod = (...methods: readonly string[]): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(
    { error: `This address takes ${methods.join(", ")}.`, code: "method_not_allowed" },
    { status: 405, headers: { allow: methods.join(", ") } },
  );
