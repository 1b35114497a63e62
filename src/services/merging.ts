/** Calls to a change request's actor that return when its merge has ended. */
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import { ActorNotFound } from "../actors/host.ts";
import { Actors } from "../actors/actors.ts";
import type { MergeRefusal } from "../domain/merge.ts";
import type { ChangeRequestEvent } from "../machines/change-request.ts";
import { ChangeRequests, type ChangeRequest } from "../store/ports/change-requests.ts";
import { Events } from "../store/ports/events.ts";

type Which = Pick<ChangeRequest, "id" | "projectId">;

/** Reads the actor's state at least this often: a signal may be lost, and the caller must learn about an outage. */
const LOOK_AGAIN = "2 seconds";

/**
 * The actor's snapshot after the current merge. The actor owns the merge: it continues if the caller leaves, and on another
 * node if this one dies.
 */
const ended = Effect.fnUntraced(function* ({ id, projectId }: Which) {
  const { changed } = yield* Events;
  const { memory } = yield* ChangeRequests;
  const look = Effect.gen(function* () {
    // Listens before it reads, so that no change between the two is missed.
    const news = yield* Effect.forkScoped(changed(projectId), { startImmediately: true });
    const loaded = yield* memory.load(id);
    if (loaded === null) return yield* new ActorNotFound({ actorId: id });
    if (loaded.snapshot.state === "merging")
      yield* Effect.raceFirst(Effect.sleep(LOOK_AGAIN), Fiber.join(news));
    return loaded.snapshot;
  });
  return yield* Effect.repeat(Effect.scoped(look), { until: ({ state }) => state !== "merging" });
});

export type MergeAnswer =
  | { readonly outcome: "merged" }
  | { readonly outcome: "refused"; readonly refusal: MergeRefusal }
  /** It was merged or closed before it was asked. */
  | { readonly outcome: "not_open" };

const answer = (given: MergeAnswer): MergeAnswer => given;

/** A change request needs no slot, so `CapReached` would be a defect. */
const tell = Effect.fnUntraced(function* ({ id }: Which, event: ChangeRequestEvent) {
  const actors = yield* Actors;
  return yield* Effect.catchTag(actors.changeRequest(id, event), "CapReached", Effect.die);
});

/** Merges a request and waits for the result. If a merge is already under way, it waits for that one, then asks again if needed. */
export const askToMerge = Effect.fnUntraced(function* (
  request: Which,
  wish: { readonly by: string; readonly message: string | null },
) {
  const ask = Effect.gen(function* () {
    const { accepted, snapshot } = yield* tell(request, { type: "merge.requested", ...wish });
    if (snapshot.state !== "merging") return answer({ outcome: "not_open" });
    const { state, context } = yield* ended(request);
    if (state === "merged") return answer({ outcome: "merged" });
    if (accepted && context.refusal !== null) return answer({ outcome: "refused", refusal: context.refusal });
    return state === "open" ? null : answer({ outcome: "not_open" });
  });
  const answered = yield* Effect.repeat(ask, { until: (given) => given !== null });
  return answered ?? answer({ outcome: "not_open" });
});

export type CloseAnswer =
  | { readonly outcome: "closed" | "merged" | "merging" }
  /** Git could not be asked whether it has merged the request. */
  | { readonly outcome: "refused"; readonly refusal: MergeRefusal };

/** Closes a request. `merging`: a merge is under way, and its result decides. */
export const askToClose = Effect.fnUntraced(function* (request: Which) {
  const { accepted, snapshot } = yield* tell(request, { type: "close.requested" });
  const isClosing = snapshot.state === "merging" && (accepted || snapshot.context.aim === "close");
  const { state, context } = isClosing ? yield* ended(request) : snapshot;
  const closed: CloseAnswer =
    state === "open"
      ? { outcome: "refused", refusal: context.refusal ?? { because: "no_changes" } }
      : { outcome: state };
  return closed;
});
