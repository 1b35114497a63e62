/** Who acts in a request, for the audit record (services/audit.ts). */
import type { IncomingMessage, ServerResponse } from "node:http";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import { HttpServerRequest } from "effect/http";
import { AUDIT_TEXT_MAX } from "../../domain/person/audit.ts";
import { clientAddress, NO_PROXIES, type TrustedProxies } from "../../domain/person/client-address.ts";
import { Acting, actAs, type Act } from "../../services/audit.ts";
import type { AuditActor } from "../../store/ports/audit.ts";
import type { Principal } from "../../store/ports/people/identity.ts";
import type { RequestCaller } from "../api/access.ts";
import { RequestId } from "../answers/respond.ts";

type Request = HttpServerRequest.HttpServerRequest;

/** PLATFORM_TRUSTED_PROXIES. The default trusts none. */
export const Proxies = Context.Reference<TrustedProxies>("platform/http/Proxies", {
  defaultValue: () => NO_PROXIES,
});

/** The address of a raw request's client, or null if its connection has ended. */
export const rawClientAddress = (
  { headers, socket }: Pick<IncomingMessage, "headers" | "socket">,
  proxies: TrustedProxies,
): string | null => {
  const forwarded = headers["x-forwarded-for"];
  return clientAddress(
    socket.remoteAddress ?? null,
    Array.isArray(forwarded) ? forwarded.join(",") : forwarded,
    proxies,
  );
};

/** Where a request comes from, as rows keep it and people read it (domain/person/client-address.ts). */
export const requestSender = (request: Request): Effect.Effect<Pick<Act, "address" | "userAgent">> =>
  Effect.map(Proxies, (proxies) => ({
    address: clientAddress(
      Option.getOrNull(request.remoteAddress),
      request.headers["x-forwarded-for"],
      proxies,
    ),
    userAgent: request.headers["user-agent"]?.slice(0, AUDIT_TEXT_MAX) ?? null,
  }));

/** A caller who is not known yet. */
export const unknownAct = Effect.fnUntraced(function* (request: Request) {
  const act: Act = {
    ...actAs("unknown"),
    ...(yield* requestSender(request)),
    requestId: yield* RequestId,
  };
  return act;
});

/** The same, of a request below the router. Its answer has the request's id already. */
export const rawAct = (response: Pick<ServerResponse, "req" | "getHeader">) =>
  Effect.map(Proxies, (proxies) => {
    const { req } = response;
    const act: Act = {
      ...actAs("unknown"),
      address: rawClientAddress(req, proxies),
      userAgent: req.headers["user-agent"]?.slice(0, AUDIT_TEXT_MAX) ?? null,
      requestId: String(response.getHeader("x-request-id")),
    };
    return act;
  });

/** An agent acts as its session, not as the person whose token it has. */
export const auditActor = ({
  origin,
  user,
  sessionId,
  tokenId,
}: Pick<Principal, "origin" | "user" | "sessionId" | "tokenId">): AuditActor =>
  origin === "user"
    ? { kind: "person", id: user.id, name: user.name, tokenId }
    : { kind: origin, id: sessionId, name: origin === "session" ? user.name : null, tokenId };

/** The changes of this effect are the caller's. */
export const actingAs =
  (caller: RequestCaller, request: Request) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.flatMap(unknownAct(request), (act) =>
      Effect.provideService(effect, Acting, {
        ...act,
        actor: auditActor(caller),
        accountId: caller.accountId,
        projectId: caller.reached?.path.projectId ?? null,
      }),
    );

/** The changes of this effect are of a caller who is not known yet. A sign-in names the person. */
export const actingUnknown = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const act = yield* unknownAct(yield* HttpServerRequest.HttpServerRequest);
    return yield* Effect.provideService(effect, Acting, act);
  });

/** The person that a sign-in has found, with the browser's session that it opened. */
export const signedInActor = (
  { id, name }: { readonly id: string; readonly name: string },
  tokenId: string,
): AuditActor => ({ kind: "person", id, name, tokenId });
