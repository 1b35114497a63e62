/** Who acts in a request, for the audit record (services/audit.ts). */
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import { HttpServerRequest } from "effect/http";
import { AUDIT_TEXT_MAX } from "../domain/audit.ts";
import { Acting, actOf, type Act } from "../services/audit.ts";
import type { AuditActor } from "../store/ports/audit.ts";
import type { Principal } from "../store/ports/identity.ts";
import type { Arrived } from "./api/access.ts";
import { RequestId } from "./respond.ts";

type Request = HttpServerRequest.HttpServerRequest;

/**
 * Where a request comes from, as rows keep it and people read it. The address is the connection's: behind a proxy, it is
 * the proxy's.
 */
export const senderOf = (request: Request): Pick<Act, "address" | "userAgent"> => ({
  address: Option.getOrNull(request.remoteAddress),
  userAgent: request.headers["user-agent"]?.slice(0, AUDIT_TEXT_MAX) ?? null,
});

const unknownAct = (request: Request, requestId: string | null): Act => ({
  ...actOf("unknown"),
  ...senderOf(request),
  requestId,
});

/** An agent acts as its session, not as the person whose token it has. */
const actorOf = ({ origin, user, sessionId, tokenId }: Principal): AuditActor =>
  origin === "user"
    ? { kind: "person", id: user.id, name: user.name, tokenId }
    : { kind: origin, id: sessionId, name: origin === "session" ? user.name : null, tokenId };

/** The changes of this effect are the caller's. */
export const actingAs =
  (caller: Arrived, request: Request) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.flatMap(RequestId, (requestId) =>
      Effect.provideService(effect, Acting, {
        ...unknownAct(request, requestId),
        actor: actorOf(caller),
        accountId: caller.accountId,
        projectId: caller.reached?.path.projectId ?? null,
      }),
    );

/** The changes of this effect are of a caller who is not known yet. A sign-in names the person. */
export const actingUnknown = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const act = unknownAct(yield* HttpServerRequest.HttpServerRequest, yield* RequestId);
    return yield* Effect.provideService(effect, Acting, act);
  });

/** The person that a sign-in has found, with the browser's session that it opened. */
export const signedInActor = (
  { id, name }: { readonly id: string; readonly name: string },
  tokenId: string,
): AuditActor => ({ kind: "person", id, name, tokenId });
