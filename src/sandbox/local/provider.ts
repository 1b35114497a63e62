/**
 * The provider `local`: sandboxes on this machine from Linux namespaces, with or without bubblewrap, as root or as an
 * ordinary user (launch-plan.ts says how). It owns the parts that end with the service: the egress proxies' sockets and
 * the watch over limits. The sandboxes themselves outlive the service, and their records identify them later.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Schedule from "effect/Schedule";
import { doctorReport } from "./doctor.ts";
import { groupControls } from "./cgroup.ts";
import type { Installation, LocalOptions } from "./installation.ts";
import { removeOldParts } from "./installation.ts";
import { openInstallation, removeTrials } from "./form.ts";
import { LocalSandboxes } from "./sandboxes.ts";
import { SandboxError, SandboxProvider } from "../port.ts";

/** How often running sandboxes are checked (api.md 8). */
export const WATCH_INTERVAL_MS = 1_000;

/** The isolation of this installation, for the start-up log. */
export const summarize = (installation: Installation): string => {
  const controls = groupControls(installation.groupParents);
  const limits = ["memory", "processes"] as const;
  return [
    installation.form === "bubblewrap"
      ? "bubblewrap: namespaces and a seccomp filter"
      : `plain namespaces${installation.gate === null ? ", without a seccomp filter (weaker: install bubblewrap)" : " and a seccomp filter"}`,
    installation.ownUids ? "uids of its own for each sandbox" : "one uid, the service's",
    `${limits.map((limit) => `${limit} by ${controls.has(limit) ? "the kernel" : "a watcher"}`).join(", ")}, disk by a watcher`,
  ].join("; ");
};

const attempt = <A>(
  operation: SandboxError["operation"],
  run: () => Promise<A>,
): Effect.Effect<A, SandboxError> =>
  Effect.tryPromise({
    try: run,
    catch: (error) =>
      new SandboxError({ operation, message: error instanceof Error ? error.message : String(error) }),
  });

/**
 * The provider as a layer. Building it tries the forms on this machine, and takes over the sandboxes that a former
 * service of this installation left running. If no form works, it fails and names what is missing.
 */
export const localProvider = (options: LocalOptions): Layer.Layer<SandboxProvider, SandboxError> =>
  Layer.effect(
    SandboxProvider,
    Effect.gen(function* () {
      const installation = yield* attempt("create", () => openInstallation(options));
      yield* attempt("create", () => removeOldParts(installation));
      yield* attempt("destroy", () => removeTrials(options.runDir));
      const sandboxes = yield* Effect.acquireRelease(
        attempt("list", () => LocalSandboxes.open(installation)),
        (opened) => Effect.sync(() => opened.close()),
      );
      yield* Effect.flatMap(Clock.currentTimeMillis, (now) =>
        attempt("destroy", () => sandboxes.pruneImages(now)),
      ).pipe(Effect.catch((error) => Effect.logWarning(`unused images stay: ${error.message}`)));
      // The bundle takes seconds to make. The first session on an image should not wait for it.
      const prepare = attempt("create", async () => {
        if ((await installation.images.list()).length > 0) await installation.bundle();
      }).pipe(Effect.catch((error) => Effect.logWarning(`images cannot be used: ${error.message}`)));
      yield* Effect.forkScoped(prepare);
      const look = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis;
        yield* attempt("list", () => sandboxes.watch(now));
      }).pipe(Effect.catch((error) => Effect.logWarning(`sandboxes cannot be watched: ${error.message}`)));
      yield* Effect.forkScoped(Effect.repeat(look, Schedule.spaced(WATCH_INTERVAL_MS)));

      return SandboxProvider.of({
        name: "local",
        summary: summarize(installation),
        create: (spec) => Effect.uninterruptible(attempt("create", () => sandboxes.create(spec))),
        awaitExit: (id) => Effect.promise(() => sandboxes.exitOf(id)),
        list: attempt("list", () => sandboxes.list()),
        link: (id) => attempt("link", () => sandboxes.link(id)),
        setSecretNames: (id, names) =>
          Effect.uninterruptible(attempt("setSecretNames", () => sandboxes.setSecretNames(id, names))),
        logs: (id) => attempt("logs", () => sandboxes.logs(id)),
        end: (id) => Effect.uninterruptible(attempt("end", () => sandboxes.end(id))),
        destroy: (id) => Effect.uninterruptible(attempt("destroy", () => sandboxes.destroy(id))),
        doctor: doctorReport(options),
      });
    }),
  );
