/** The node's proxy to package registries, for the lifetime of a sandbox provider. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import type * as Scope from "effect/Scope";
import { Measures } from "../../telemetry/port.ts";
import { attempt } from "../operations.ts";
import type { SandboxError } from "../port.ts";
import { type PackageOptions, PackageProxy } from "./proxy.ts";

/** The cache of package files: its directory, its size, and the hosts that may be private. */
export type PackageCache = Pick<PackageOptions, "directory" | "bytes" | "allowHosts">;

/** How often its size is measured. */
const MEASURE_EVERY = "5 seconds";

/** Opens the proxy in the caller's scope. Without its directory, sandboxes still have it, and nothing is kept. */
export const openPackages = (cache: PackageCache): Effect.Effect<PackageProxy, SandboxError, Scope.Scope> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock;
    const measures = yield* Measures;
    const now = () => clock.currentTimeMillisUnsafe();
    const open = (bytes: number) =>
      attempt("create", () => PackageProxy.open({ ...cache, bytes, measures, now }));
    const packages = yield* Effect.acquireRelease(
      open(cache.bytes).pipe(
        Effect.catch((error) =>
          Effect.andThen(Effect.logWarning(`packages are not kept: ${error.message}`), open(0)),
        ),
      ),
      (opened) => Effect.promise(() => opened.close()),
    );
    const measure = Effect.sync(() => measures.set("package_cache_bytes", {}, packages.bytes));
    yield* Effect.forkScoped(Effect.repeat(measure, Schedule.spaced(MEASURE_EVERY)));
    return packages;
  });
