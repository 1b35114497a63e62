/**
 * Which power an endpoint asks for (api.md 1 "Origin"). Every endpoint carries one of these as an annotation; who has
 * which is decided in one place, http/access.ts, and held by one table-driven test.
 */
import * as Context from "effect/Context";
import { HttpApiMiddleware } from "effect/http-api";
import type { Principal } from "../../store/ports/records.ts";
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

export type Power =
  /** Reading who one is. */
  | "self"
  /** The account's own matters: tokens, new projects, the queue. User tokens that are bound to no project. */
  | "account"
  /** Reading a project and what belongs to it. */
  | "read"
  /** Working in a project: sessions, fires. */
  | "work"
  /** Opening and updating change requests. */
  | "propose"
  /** Governing a project: secrets, settings, merges. User tokens only, one bound to that project included. */
  | "govern"
  /** PLATFORM_TOKEN's one use. */
  | "clone";

export class Access extends Context.Service<Access, Power>()("platform/http/Access") {}

/** Who calls. Provided to every handler behind `Authorized`. */
export class Caller extends Context.Service<Caller, Principal>()("platform/http/Caller") {}

/** Authenticates the caller, checks the endpoint's power, and gives every failure the one shape. */
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
