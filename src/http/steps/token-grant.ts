/**
 * What a person lets a new token reach, and until when: for tokens that she makes, and for programs that she signs in. A token
 * with an end, and a browser that it opened, make no token that lives longer.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { Projects } from "../../store/ports/projects/projects.ts";
import { listReader } from "../callers/access.ts";
import { Caller } from "../api/access.ts";
import { badRequest, notFound } from "../api/errors.ts";

export interface WantedGrant {
  /** Absent: all that the person may do. */
  readonly project_id?: string;
  /** Absent: the token does not expire. */
  readonly expires_at?: string;
}

/** The earlier of two ends. Null means never. */
const earlier = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? (one ?? other) : Math.min(one, other);

/** Fails for an instant in the past, and for a project that the caller does not see. */
export const tokenGrant = Effect.fnUntraced(function* ({ project_id, expires_at }: WantedGrant) {
  const caller = yield* Caller;
  const wish = expires_at === undefined ? null : Date.parse(expires_at);
  if (wish !== null && !(wish > (yield* Clock.currentTimeMillis)))
    return yield* badRequest("expires_at", "must be an instant in the future");
  const expiresAt = earlier(wish, caller.reachEndsAt);
  if (project_id !== undefined) {
    const reader = { accountId: caller.accountId, userId: listReader(caller) };
    const projects = yield* (yield* Projects).list(reader, { cursor: null, limit: 1, onlyId: project_id });
    if (projects.items.length === 0) return yield* notFound("project");
  }
  return { projectId: project_id ?? null, expiresAt };
});
