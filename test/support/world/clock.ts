/** Lives of a service on the test clock. */
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import * as Scope from "effect/Scope";
import { TestClock } from "effect/testing";

/** Actors at work get this many seconds to end. */
const END_S = 10;

/** Second by second: work that becomes ready at an instant runs before the next one. */
export const advance = (seconds: number) =>
  Effect.repeat(TestClock.adjust("1 second"), { times: seconds - 1 });

/** Runs a test over one life of a layer with actors, and ends the life while the clock goes on. */
export const inOneLife = <A, LE, LR, E>(layer: Layer.Layer<A, LE, LR>, test: Effect.Effect<void, E, A>) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make();
    const context = yield* Layer.buildWithScope(Layer.fresh(layer), scope);
    yield* Effect.provideContext(test, context);
    const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void));
    yield* advance(END_S);
    yield* Fiber.join(closing);
  });
