/** Answers of raw routes and of the server itself in the API's one error shape. */
import { HttpServerResponse } from "effect/http";
import { bodyOf, statusOf, type ApiError } from "./api/errors.ts";

/** What every 503 carries (server.ts). */
export const RETRY_AFTER_SECONDS = "1";

export const apiErrorResponse = (error: ApiError): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(bodyOf(error), { status: statusOf(error) });

/** 405 with the methods that the address takes. */
export const wrongMethod = (...methods: readonly string[]): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(
    { error: `This address takes ${methods.join(", ")}.`, code: "method_not_allowed" },
    { status: 405, headers: { allow: methods.join(", ") } },
  );
