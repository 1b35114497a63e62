/**
 * The power that an endpoint requires (api.md 1 "Origin"). Every endpoint has one of these as an annotation.
 * http/access.ts decides which callers have it, and one table-driven test checks it.
 */
import * as Context from "effect/Context";
import { HttpApiMiddleware } from "effect/http-api";
import type { Principal, Reached } from "../../store/ports/identity.ts";
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
  /** Read the caller's own identity. */
  | "self"
  /** A person's own matters: her tokens, new projects, the queue. For user tokens that are not bound to a project. */
  | "account"
  /** Govern the account: its people, invitations. For the same tokens, of the account's owners. */
  | "administer"
  /** Read a project and everything in it. */
  | "read"
  /** Work in a project: sessions, fires. */
  | "work"
  /** Talk to the agent of a session. For user tokens only: an agent never answers its own request. */
  | "converse"
  /** Open and update change requests. */
  | "propose"
  /** Use the project's connectors, as the agent of a session. For the tokens of sandboxes only. */
  | "execute"
  /** Powers of a member that her agents lack: names of secrets, proposals of triggers. For user tokens only. */
  | "contribute"
  /** Merge a change request. For user tokens only, of the role that the project names. */
  | "merge"
  /** Govern a project: secrets, settings, members. For user tokens only, including one bound to that project. */
  | "govern"
  /**
   * See the service itself, with its metrics. For account-wide user tokens of the first account's owners; its handlers check which
   * account.
   */
  | "operate"
  /** The only use of a PLATFORM_TOKEN. */
  | "clone";

export class Access extends Context.Service<Access, Power>()("platform/http/Access") {}

/** `reached`: what the path names, if it was read with the caller and the request has no body to wait for. */
export type Arrived = Principal & { readonly reached?: Reached };

/** The caller. Provided to every handler behind `Authorized`. */
export class Caller extends Context.Service<Caller, Arrived>()("platform/http/Caller") {}

/** Authenticates the caller, checks the endpoint's power, and puts every failure into the common error shape. */
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
