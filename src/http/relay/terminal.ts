/**
 * Terminals (docs/use/terminal.md): a person's commands in the sandbox of a running session. The service checks who asks, and
 * joins her WebSocket with the daemon's (daemon/terminals). It does not read the bytes.
 *
 * Threats and defences:
 *
 *  W1 Only people get a terminal, with the role that PLATFORM_TERMINALS asks for. An agent's token gets none.
 *  W2 A page of another site can make a browser open a WebSocket with our cookie. Browsers say which page asks (Origin), so a
 *     cookie counts only for our own page: the Origin is the public address, or it has the request's own Host.
 *  W3 When the token, the role or the session ends, the connection is cut within a second, and the command ends: it does not
 *     wait for a person who may not come back.
 *  W4 Each connection is on the audit record before it opens, and when it has ended. Keys and output are not.
 *  W5 Keys count as activity, and the daemon reports them (daemon/report.ts `typed_at`). Other bytes do not: an open
 *     terminal would keep a session alive for ever.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { tokenHash, tokenKind, parseUuid } from "../../domain/ids.ts";
import {
  TERMINAL_KEPT_MS,
  TERMINAL_OUTPUT_KEPT,
  TERMINALS_MAX,
  terminalWish,
} from "../../domain/session/terminal.ts";
import { openProxy } from "../../proxy/proxy.ts";
import { responseOn } from "../../proxy/tunnel.ts";
import { Acting, withAudit } from "../../services/audit.ts";
import { Identity } from "../../store/ports/people/identity.ts";
import { neededRole } from "../callers/access.ts";
import { auditActor } from "../callers/acting.ts";
import { Caller, type RequestCaller } from "../api/access.ts";
import { badRequest, Forbidden } from "../api/errors.ts";
import { unauthorized } from "../callers/authorize.ts";
import { runDecision } from "../steps/answers.ts";
import { Addresses, Limits } from "../limits.ts";
import { toUse, Openings } from "../callers/openings.ts";
import { isOwnPage } from "../callers/own-page.ts";
import { cookieIn } from "../pages/dashboard-sessions.ts";
import { rawAttempt, recordLack, tokenRefused } from "../answers/refused-requests.ts";
import { answerRaw, requestId } from "../answers/respond.ts";
import type { RawRoutes } from "../server.ts";
import { noteSteering } from "../callers/steering.ts";
import { answerFailure, runningSession, relayUpstream } from "./relay.ts";

interface Params {
  readonly pid: string;
  readonly sid: string;
}

const PATH = /^\/v1\/projects\/([^/?]+)\/sessions\/([^/?]+)\/terminal(?:\?(.*))?$/s;

const terminalTarget = (target: string): (Params & { readonly query: string }) | null => {
  const [, project = "", session = "", query = ""] = PATH.exec(target) ?? [];
  const [pid, sid] = [parseUuid(project), parseUuid(session)];
  return pid === null || sid === null ? null : { pid, sid, query };
};

const PRIVILEGES = { members: "open_terminal", owners: "open_owners_terminal" } as const;

const turnedOff = () =>
  new Forbidden({
    error: "Terminals are turned off on this service (PLATFORM_TERMINALS). Its operator can change that.",
    code: "terminals_off",
  });

/** The privilege that a terminal needs here (W1). */
const privilegeHere = Effect.gen(function* () {
  const { terminals } = yield* Limits;
  return terminals === "off" ? yield* turnedOff() : PRIVILEGES[terminals];
});

/** The session, if the caller may have a terminal in it now. */
const sessionWithTerminal = (caller: RequestCaller, params: Params) =>
  Effect.flatMap(privilegeHere, (privilege) => runningSession(caller, params, privilege));

/** Handler of `GET …/terminal`: whether a terminal can be opened now, and what it keeps. */
export const terminalOffer = Effect.fnUntraced(function* (params: Params) {
  yield* sessionWithTerminal(yield* Caller, params);
  return { limit: TERMINALS_MAX, kept_ms: TERMINAL_KEPT_MS, kept_bytes: TERMINAL_OUTPUT_KEPT };
});

const foreign = () =>
  new Forbidden({
    error: "A page of another site sent this request. Open the terminal on the session's own page.",
    code: "forbidden",
  });

/** The hash of the request's token, or of its cookie's secret. */
const readCredential = Effect.fnUntraced(function* (request: IncomingMessage) {
  const { authorization, cookie } = request.headers;
  if (authorization !== undefined) {
    const token = /^Bearer ([A-Za-z0-9_-]+)$/i.exec(authorization)?.[1];
    if (token === undefined || tokenKind(token) === null) return yield* unauthorized();
    return tokenHash(token);
  }
  const { publicUrl } = yield* Addresses;
  const secret = cookieIn(cookie, publicUrl);
  if (secret === null) return yield* unauthorized();
  // W2
  return isOwnPage(request.headers, publicUrl) ? tokenHash(secret) : yield* foreign();
});

type Response = ReturnType<typeof responseOn>;

const findCaller = Effect.fnUntraced(function* (response: Response, { pid }: Params) {
  const hash = yield* readCredential(response.req);
  const path = { projectId: pid, sessionId: null };
  const arrival = yield* (yield* Identity).arrive(hash, yield* Clock.currentTimeMillis, path);
  if (arrival !== null) return { ...arrival.caller, reached: arrival.reached } satisfies RequestCaller;
  const attempt = yield* rawAttempt(response);
  return yield* Effect.flatMap(tokenRefused(hash, attempt, unauthorized()), Effect.fail);
});

/** Checks a request, and puts it on record (W4). @returns where it goes, and what to do at its ends */
const passageFor = Effect.fnUntraced(function* (response: Response, target: Params & { query: string }) {
  const caller = yield* findCaller(response, target);
  const attempt = yield* rawAttempt(response);
  const session = yield* Effect.tapError(
    sessionWithTerminal(caller, target),
    recordLack(caller, attempt, target.pid),
  );
  const wish = terminalWish(new URLSearchParams(target.query));
  if ("message" in wish) return yield* badRequest(wish.path, wish.message);
  yield* noteSteering(caller, session, "open_terminal");
  const { id, projectId, sandboxId } = session;
  const toDaemon = (method: string) =>
    relayUpstream(caller, session, { method, path: `/platform/terminal?${target.query}` });
  const { heard: _, ...to } = yield* toDaemon("GET");
  const act = {
    ...attempt.act,
    actor: auditActor(caller),
    accountId: caller.accountId,
    projectId,
  };
  const record = (action: "terminal.opened" | "terminal.closed") => {
    const row = { action, target: id, changes: { terminal: wish.id, again: wish.after !== null } };
    return Effect.provideService(Effect.void.pipe(withAudit(() => row)), Acting, act);
  };
  yield* record("terminal.opened");
  const needs = neededRole(yield* privilegeHere, "owner") ?? "owner";
  return {
    to,
    use: toUse(caller, { projectId, needs, session: { id, sandboxId } }),
    closed: Effect.catchCause(record("terminal.closed"), (cause) =>
      Effect.logWarning("the end of a terminal is not on record", cause),
    ),
    /** The request that ends the command, if its sandbox still runs (W3). */
    end: toDaemon("DELETE"),
  };
});

/** The terminals' raw route, for upgrades alone. It lives as long as the scope. */
export const makeTerminals = Effect.gen(function* () {
  type Needs = Effect.Services<ReturnType<typeof passageFor>>;
  const context = yield* Effect.context<Needs>();
  const { hold } = yield* Openings;
  const scope = yield* Effect.scope;
  const proxy = yield* openProxy(answerFailure);
  const start = <A, E>(effect: Effect.Effect<A, E, Needs>): void =>
    void Effect.runForkWith(context)(Effect.forkIn(effect, scope));

  const upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): boolean => {
    const target = terminalTarget(request.url ?? "");
    if (target === null) return false;
    const response = responseOn(request, socket);
    response.setHeader("x-request-id", requestId(request));
    const passage = Effect.map(passageFor(response, target), ({ to, use, closed, end }) => {
      if (socket.destroyed) return start(closed);
      const release = hold(use, () => {
        socket.destroy();
        start(Effect.ignore(Effect.map(end, (daemon) => proxy.tell(daemon, "DELETE"))));
      });
      socket.on("close", () => {
        release();
        start(closed);
      });
      proxy.upgrade(request, response, { socket, head, to });
    });
    start(runDecision(passage, (error) => answerRaw(response, error)));
    return true;
  };
  const routes: RawRoutes = { request: () => false, upgrade };
  return routes;
});
