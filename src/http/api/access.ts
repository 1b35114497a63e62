/** The privilege that an endpoint requires (domain/person/privileges.ts). Every endpoint has one as an annotation. */
import * as Context from "effect/Context";
import { HttpApiMiddleware } from "effect/http-api";
import type { Privilege } from "../../domain/person/privileges.ts";
import type { Principal, PathRows } from "../../store/ports/people/identity.ts";
import {
  BadRequest,
  Forbidden,
  Internal,
  NotFound,
  RequestTimeout,
  TooLarge,
  Unauthorized,
  Unavailable,
  UnsupportedMedia,
} from "./errors.ts";

export class RequiredPrivilege extends Context.Service<RequiredPrivilege, Privilege>()(
  "platform/http/RequiredPrivilege",
) {}

/** `reached`: what the path names, if it was read with the caller and the request has no body to wait for. */
export type RequestCaller = Principal & { readonly reached?: PathRows };

/** The caller. Provided to every handler behind `Authorized`. */
export class Caller extends Context.Service<Caller, RequestCaller>()("platform/http/Caller") {}

/** Authenticates the caller, checks the endpoint's privilege, and puts every failure into the common error shape. */
export class Authorized extends HttpApiMiddleware.Service<Authorized, { provides: Caller }>()(
  "platform/http/Authorized",
  {
    error: [
      BadRequest,
      Unauthorized,
      Forbidden,
      NotFound,
      RequestTimeout,
      TooLarge,
      UnsupportedMedia,
      Internal,
      Unavailable,
    ],
  },
) {}
