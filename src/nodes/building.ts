/**
 * Builds on other nodes. A build belongs to one node, and its actor may live on any: the actor's node asks the build's
 * node for the outcome again and again. If the build's node is dead, the build has failed.
 */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Schema from "effect/Schema";
import { backoff } from "../ground/backoff.ts";
import { BuildFailure } from "../domain/environment/build-failure.ts";
import { BuildingElsewhere, type BuildOutcome } from "../services/environments/building.ts";
import { Keyring } from "../services/keyring.ts";
import type { EnvironmentBuild } from "../store/ports/projects/environment-builds.ts";
import { nodeCaller } from "./call.ts";
import { NodeMap } from "./map.ts";

/** A call that waits for an outcome waits this long at the other node, and a little longer for the answer. */
export const OUTCOME_WAIT_MS = 15_000;
const OUTCOME_TIMEOUT_MS = OUTCOME_WAIT_MS + 10_000;
/** The end of a build waits until its processes have ended. */
const END_TIMEOUT_MS = 60_000;
/** If a node is away, retry after 100 ms, doubling to 1 s. */
const AGAIN = backoff("100 millis", "1 second");

const Outcome = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("image.ready"),
    image: Schema.Struct({ digest: Schema.String, bytes: Schema.Int, files: Schema.Int }),
  }),
  Schema.Struct({ type: Schema.Literal("build.failed"), failure: BuildFailure }),
]);
/** Null if the build is under way. */
const decodeOutcome = Schema.decodeUnknownEffect(Schema.NullOr(Outcome));

/** The node does not exist any more, or does not know the build. */
export const LOST: BuildOutcome = {
  type: "build.failed",
  failure: { code: "builder_unavailable", problem: "the node of the build no longer exists" },
};

const make = Effect.gen(function* () {
  const map = yield* NodeMap;
  const { nodes: keys } = yield* Keyring;
  const call = nodeCaller({ map, keys });

  /** One question, which may take a while. Null until then. */
  const look = Effect.fnUntraced(function* ({ id, nodeId }: EnvironmentBuild) {
    const place = map.place(nodeId);
    if (place.is === "dead") return LOST;
    if (place.is !== "there") return yield* Effect.fail("unknown" as const);
    const answer = yield* call(place, { operation: "environment.run", given: id }, OUTCOME_TIMEOUT_MS);
    return answer.ok ? yield* decodeOutcome(answer.value) : yield* Effect.fail("unknown" as const);
  });

  return BuildingElsewhere.of({
    run: (build) =>
      look(build).pipe(
        Effect.retry(AGAIN),
        Effect.orDie,
        Effect.repeat({ until: (outcome) => outcome !== null }),
        Effect.map((outcome) => outcome ?? LOST),
      ),
    // Without its last caller, the build ends (services/environments/building.ts U3). This ends it sooner.
    end: ({ id, nodeId }) => {
      const place = map.place(nodeId);
      if (place.is !== "there") return Effect.void;
      return Effect.ignore(call(place, { operation: "environment.end", given: id }, END_TIMEOUT_MS));
    },
  });
});

export const nodeBuilding = Layer.effect(BuildingElsewhere, make);
