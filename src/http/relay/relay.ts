/**
 * The relay to a session's daemon (api.md 3, `/runtime/*` and `/ports/{port}/*`). It authenticates, checks the session,
 * signs a fresh user context, and joins the two connections byte by byte (src/proxy). It works below Effect's router,
 * because it needs the bare connection for WebSockets, trailers and aborts.
 *
 *  L1 The path decides the session and port before anything else. The rest of the path is passed on unchanged.
 *  L2 The caller's credential never reaches the sandbox, and the daemon's context never comes from the caller.
 *  L3 For programs only: cookies are not accepted here (api.md 3 "preview" is for browsers).
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { isSteeringRequest } from "../../domain/connector/own-credential.ts";
import { tokenHash, tokenKind, parseUuid } from "../../domain/ids.ts";
import { signUserContext, USER_CONTEXT_HEADER } from "../../domain/sandbox/user-context.ts";
import { Activity } from "../../services/sessions/activity.ts";
import { withLink } from "../../services/answered.ts";
import { Keyring } from "../../services/keyring.ts";
import { openProxy, type AnswerFailure, type Cut, type Failure, type Upstream } from "../../proxy/proxy.ts";
import { responseOn } from "../../proxy/tunnel.ts";
import { linkRequest, linkTarget, SandboxProvider } from "../../sandbox/port.ts";
import { Identity, type Principal } from "../../store/ports/people/identity.ts";
import type { Session } from "../../store/ports/sessions/sessions.ts";
import { isSteering, type Privilege } from "../../domain/person/privileges.ts";
import { lackInto } from "../callers/access.ts";
import { noteSteering, requireNoSubscription } from "../callers/steering.ts";
import type { RequestCaller } from "../api/access.ts";
import {
  BadGateway,
  Conflict,
  GatewayTimeout,
  RequestTimeout,
  Unavailable,
  type ApiError,
} from "../api/errors.ts";
import { runDecision, sessionFor } from "../steps/answers.ts";
import { forbidden, requireRole, unauthorized } from "../callers/authorize.ts";
import { toUse, Openings, type Use } from "../callers/openings.ts";
import { rawAttempt, recordLack, tokenRefused, type Attempt } from "../answers/refused-requests.ts";
import { answerRaw, requestId } from "../answers/respond.ts";
import type { RawRoutes } from "../server.ts";

interface Target {
  readonly pid: string;
  readonly sid: string;
  /** The target at the daemon, including the query. */
  readonly path: string;
  readonly privilege: Privilege;
}

const RELAY =
  /^\/v1\/projects\/([^/?]+)\/sessions\/([^/?]+)\/(?:(abort|refresh)$|runtime(?=[/?]|$)|ports\/([^/?]+))(.*)$/s;
/** The daemon's own routes, as its router recognises them (daemon/http/route.ts). They are not part of the agent runtime. */
const NOT_THE_RUNTIMES = /^\/(?:platform(?:[/?]|$)|proxy\/)/;

/** Where a request goes, and the credential that it ends with. */
export interface Passage {
  readonly to: Upstream;
  readonly use: Use;
}

type Hold = Openings["Service"]["hold"];

/** Cuts a forwarded request when its credential ends. */
export const holdRequest = (
  hold: Hold,
  { use, response, cut }: { readonly use: Use; readonly response: ServerResponse; readonly cut: Cut },
  refuseWith: (response: ServerResponse) => void,
): void => {
  if (!response.closed)
    response.on(
      "close",
      hold(use, () => cut(refuseWith)),
    );
};

/** The same for an upgraded connection, from before its handshake. */
export const holdUpgrade = (
  hold: Hold,
  { use, socket }: { readonly use: Use; readonly socket: Duplex },
): void => {
  if (!socket.destroyed)
    socket.on(
      "close",
      hold(use, () => socket.destroy()),
    );
};

/** The relay target of a request. Null if its path is not a relay path. */
export function relayTarget(target: string, method = "GET"): Target | null {
  const [, project = "", session = "", control, port, rest = ""] = RELAY.exec(target) ?? [];
  const [pid, sid] = [parseUuid(project), parseUuid(session)];
  if (pid === null || sid === null) return null;
  if (control !== undefined)
    return method === "POST"
      ? { pid, sid, path: `/platform/${control}`, privilege: "control_runtime" }
      : null;
  const path = rest.startsWith("/") ? rest : `/${rest}`;
  // The daemon decides which spellings of a port are valid, so the port is passed on unchanged (threats.md X01).
  if (port !== undefined) return { pid, sid, path: `/proxy/${port}${path}`, privilege: "enter_port" };
  return NOT_THE_RUNTIMES.test(path) ? null : { pid, sid, path, privilege: "use_runtime" };
}

const notRunning = ({ status }: Session): Conflict =>
  new Conflict({
    error: `The session is ${status}. It must be running.`,
    code: "session_not_running",
  });

/** The Host header of a request that another node passes to the daemon. */
const NODE_HOST = "node";

export const nodeAway = (): Unavailable =>
  new Unavailable({
    error: "The node that runs the session's sandbox cannot be reached. Try again in a moment.",
    code: "node_away",
  });

/** The session, if the caller may enter its sandbox this way. Everything that leads inside asks here (access.ts). */
export const sessionToEnter = Effect.fnUntraced(function* (
  caller: RequestCaller,
  params: { readonly pid: string; readonly sid: string },
  privilege: Privilege,
) {
  const lack = lackInto(caller, privilege, null);
  if (lack !== null) return yield* forbidden(caller, lack);
  yield* requireRole(caller, privilege);
  const session = yield* sessionFor(caller, params);
  const lackThere = lackInto(caller, privilege, session);
  return lackThere === null ? session : yield* forbidden(caller, lackThere);
});

/** The same, if it is running. */
export const runningSession = Effect.fnUntraced(function* (...args: Parameters<typeof sessionToEnter>) {
  const session = yield* sessionToEnter(...args);
  const { status, sandboxId } = session;
  return status === "running" && sandboxId !== null ? { ...session, sandboxId } : yield* notRunning(session);
});

/**
 * The daemon of a running session's sandbox, with the caller's user context. `path` is the target there, including the
 * query.
 */
export const relayUpstream = Effect.fnUntraced(function* (
  caller: Principal,
  session: Effect.Success<ReturnType<typeof runningSession>>,
  { method = "GET", path }: { readonly method: string | undefined; readonly path: string },
) {
  const keyring = yield* Keyring;
  const provider = yield* SandboxProvider;
  const { touch, open } = yield* Activity;
  const link = yield* Effect.catchTag(withLink(provider, session.sandboxId), "SandboxError", ({ node }) =>
    Effect.fail(node === "away" ? nodeAway() : notRunning(session)),
  );
  const context = signUserContext(
    {
      userId: caller.user.id,
      sessionId: session.id,
      role: caller.origin,
      nowMs: yield* Clock.currentTimeMillis,
    },
    keyring.serviceKey(session.sandboxId),
  );
  const touchSession = (): void => touch(session.id);
  touchSession();
  const call = linkRequest(link, { method, path, by: "client" });
  const upstream: Upstream = {
    at: linkTarget(link),
    path: call.path,
    host: link.kind === "node" ? NODE_HOST : "daemon",
    headers: [USER_CONTEXT_HEADER, context, ...call.headers],
    heard: touchSession,
    opened: () => open(session.id),
  };
  return upstream;
});

/** Notes a request with which another person may steer the session. Others may read what a program in its sandbox shows. */
export const noteRequest = (
  ...[caller, session, privilege, { method, headers }]: [Principal, Session, Privilege, IncomingMessage]
) =>
  !isSteering(privilege)
    ? Effect.void
    : isSteeringRequest(method, headers.upgrade !== undefined)
      ? noteSteering(caller, session, privilege)
      : requireNoSubscription(caller, session);

/** Where an authenticated request goes, and the grant that it depends on. */
const passageFor = Effect.fnUntraced(function* (response: ServerResponse, target: Target) {
  const request = response.req;
  const attempt = yield* rawAttempt(response);
  const caller = yield* bearer(request, target, attempt);
  const { method } = request;
  const session = yield* Effect.tapError(
    runningSession(caller, target, target.privilege),
    recordLack(caller, attempt, target.pid),
  );
  yield* noteRequest(caller, session, target.privilege, request);
  const to = yield* relayUpstream(caller, session, { method, path: target.path });
  const { id, projectId, sandboxId } = session;
  const passage: Passage = {
    to,
    use: toUse(caller, { projectId, needs: "member", session: { id, sandboxId } }),
  };
  return passage;
});

const bearer = Effect.fnUntraced(function* ({ headers }: IncomingMessage, { pid }: Target, attempt: Attempt) {
  const token = /^Bearer ([A-Za-z0-9_-]+)$/i.exec(headers.authorization ?? "")?.[1];
  if (token === undefined || tokenKind(token) === null) return yield* unauthorized();
  const now = yield* Clock.currentTimeMillis;
  const path = { projectId: pid, sessionId: null };
  const hash = tokenHash(token);
  const arrival = yield* (yield* Identity).arrive(hash, now, path);
  if (arrival === null)
    return yield* Effect.flatMap(tokenRefused(hash, attempt, unauthorized()), Effect.fail);
  const caller: RequestCaller = { ...arrival.caller, reached: arrival.reached };
  return caller;
});

/** API errors for a missing answer. */
export const RELAY_FAILURES: Readonly<Record<Failure, () => ApiError>> = {
  unreachable: () => new BadGateway({ error: "The sandbox did not respond.", code: "upstream_unreachable" }),
  silent: () =>
    new GatewayTimeout({
      error: "The sandbox did not respond in time.",
      code: "upstream_timeout",
    }),
  body_stalled: () => new RequestTimeout({ error: "The body did not arrive in time.", code: "body_timeout" }),
};

/** The error for a missing answer: either the daemon or its node is unreachable. */
export const relayFailure = ({ host }: Upstream, why: Failure): ApiError =>
  host === NODE_HOST && why === "unreachable" ? nodeAway() : RELAY_FAILURES[why]();

/** Answers for a sandbox that did not. */
export const answerFailure: AnswerFailure = (response, to, why) => answerRaw(response, relayFailure(to, why));

const refuse = (response: ServerResponse): void => answerRaw(response, unauthorized());

/** The relay's raw routes, for the listener. They live as long as the scope. */
export const makeRelay = Effect.gen(function* () {
  type Needs = Effect.Services<ReturnType<typeof passageFor>>;
  const context = yield* Effect.context<Needs>();
  const { hold } = yield* Openings;
  const scope = yield* Effect.scope;
  const proxy = yield* openProxy(answerFailure);

  const decide = (
    request: IncomingMessage,
    response: ServerResponse,
    pass: (passage: Passage) => void,
  ): void => {
    const target = relayTarget(request.url ?? "", request.method);
    if (target === null) return;
    const deciding = Effect.map(passageFor(response, target), pass);
    const answering = runDecision(deciding, (error) => answerRaw(response, error));
    Effect.runForkWith(context)(Effect.forkIn(answering, scope));
  };

  const routes: RawRoutes = {
    request: (request, response) => {
      if (relayTarget(request.url ?? "", request.method) === null) return false;
      decide(request, response, ({ to, use }) =>
        holdRequest(hold, { use, response, cut: proxy.pass(request, response, to) }, refuse),
      );
      return true;
    },
    upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      if (relayTarget(request.url ?? "", request.method) === null) return false;
      const response = responseOn(request, socket);
      response.setHeader("x-request-id", requestId(request));
      decide(request, response, ({ to, use }) => {
        holdUpgrade(hold, { use, socket });
        proxy.upgrade(request, response, { socket, head, to });
      });
      return true;
    },
  };
  return routes;
});
