/** Routes about the service itself: liveness, readiness, documentation (api.md 9). */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import { HttpRouter, HttpServerResponse } from "effect/http";
import { Scheduler } from "../duties/scheduler.ts";
import { StoreHealth } from "../store/ports/health.ts";

/** Whether the start is complete: migrations done, actors loaded. Set once by main. */
export class Readiness extends Context.Service<Readiness, { readonly started: () => boolean }>()(
  "platform/http/Readiness",
) {}

const DATABASE_TIME = "2 seconds";

const ready = Effect.gen(function* () {
  const { ping } = yield* StoreHealth;
  const readiness = yield* Readiness;
  const database = yield* ping.pipe(
    Effect.as(true),
    Effect.timeoutOrElse({ duration: DATABASE_TIME, orElse: () => Effect.succeed(false) }),
    Effect.orElseSucceed(() => false),
  );
  const { late } = yield* (yield* Scheduler).state;
  const checks = { database, started: readiness.started(), scheduler: !late };
  const isReady = Object.values(checks).every(Boolean);
  return HttpServerResponse.jsonUnsafe(
    { status: isReady ? "ready" : "not_ready", checks },
    { status: isReady ? 200 : 503 },
  );
});

export const systemRoutes = HttpRouter.addAll([
  HttpRouter.route("GET", "/healthz", Effect.succeed(HttpServerResponse.jsonUnsafe({ status: "alive" }))),
  HttpRouter.route("GET", "/readyz", ready),
]);
