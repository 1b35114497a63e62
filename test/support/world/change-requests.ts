/** Takes change requests on, as their actors do. */
import * as Effect from "effect/Effect";
import { changeRequest, type ChangeRequestEvent } from "../../../src/machines/change-request.ts";
import { ChangeRequests } from "../../../src/features/change-requests/ports/change-requests.ts";
import { NOON } from "./world.ts";

/** Steps a change request's machine and saves, as its actor does. Null: the machine refuses the event. */
export const tellRequest = Effect.fnUntraced(function* (
  id: string,
  event: ChangeRequestEvent,
  now: number = NOON,
) {
  const { memory } = yield* ChangeRequests;
  const loaded = yield* memory.load(id);
  if (loaded === null) return yield* Effect.die("no such change request");
  const { version, snapshot: before } = loaded;
  const { snapshot: after, commands, accepted } = changeRequest.step(before, event);
  if (!accepted) return null;
  return yield* memory.save({ id, version, event, before, after, commands, completes: null, now });
});
