/** Answers of raw routes and of the server itself in the API's one error shape. */
import { HttpServerResponse } from "effect/http";
import { bodyOf, statusOf, type ApiError, Unavailable } from "./api/errors.ts";

const RETRY_AFTER_SECONDS = "1";

export const apiErrorResponse = (error: ApiError): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(bodyOf(error), {
    status: statusOf(error),
    ...(error instanceof Unavailable ? { headers: { "retry-after": RETRY_AFTER_SECONDS } } : {}),
  });

/** 405 with the methods that the address takes. */
export const wrongMethod = (...methods: readonly string[]): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(
    { error: `This address takes ${methods.join(", ")}.`, code: "method_not_allowed" },
    { status: 405, headers: { allow: methods.join(", ") } },
  );
