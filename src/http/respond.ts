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

/** The same below Effect's router. What is left of the request's body is not read: the connection ends with the answer. */
export const answerRaw = (response: ServerResponse, error: ApiError): void => {
  const body = JSON.stringify(bodyOf(error));
  response.writeHead(statusOf(error), {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    connection: "close",
    ...(error instanceof Unavailable ? { "retry-after": RETRY_AFTER_SECONDS } : {}),
  });
  response.end(body);
};

/** 405 with the methods that the address takes. */
export const wrongMethod = (...methods: readonly string[]): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(
    { error: `This address takes ${methods.join(", ")}.`, code: "method_not_allowed" },
    { status: 405, headers: { allow: methods.join(", ") } },
  );
