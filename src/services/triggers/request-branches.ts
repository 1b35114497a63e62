import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Queue from "effect/Queue";

/** Signals that wait; an older one that is lost is made up for by the next round. */
const SIGNALS = 1024;

export class RequestBranches extends Context.Service<
  RequestBranches,
  {
    /** Has the open requests of a project looked at soon: one of its branches has moved, or may have. */
    readonly moved: (projectId: string) => Effect.Effect<void>;
    /** The projects of which that was said since the duty asked last; waits for one. */
    readonly signals: Effect.Effect<readonly string[]>;
  }
>()("platform/services/RequestBranches") {
  /** The signal alone: actors give it, and the duty stands above them. */
  static readonly layer = Layer.effect(
    RequestBranches,
    Effect.map(Queue.sliding<string>(SIGNALS), (signals) => ({
      moved: (projectId) => Effect.asVoid(Queue.offer(signals, projectId)),
      signals: Queue.takeAll(signals),
    })),
  );
}
