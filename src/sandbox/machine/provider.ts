/**
 * The providers whose sandboxes are on this machine: `local`, `gvisor` and `docker`. A provider owns the parts that end with the
 * service: the egress proxies' sockets and the watch over limits. The sandboxes themselves outlive the service, and
 * their records identify them later. A provider also takes over sandboxes that another kind of isolation started,
 * because ending and removing one needs only its record.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Schedule from "effect/Schedule";
import { doctorReport } from "./doctor.ts";
import type { Installation } from "./installation.ts";
import type { MachineOptions } from "./options.ts";
import { removeOldParts } from "./installation.ts";
import type { Kind } from "./isolation/isolation.ts";
import { openInstallation, removeTrials } from "./boot/trial.ts";
import { sandboxIds } from "./disk/run-directory.ts";
import { MachineSandboxes } from "./sandboxes.ts";
import { Measures } from "../../telemetry/port.ts";
import { type PackageCache, openPackages } from "../packages/cache.ts";
import { SandboxError, SandboxProvider } from "../port.ts";
import { attempt, installedIn, portOver } from "../operations.ts";
import { tellRefused } from "../refused-hosts.ts";

/** How often running sandboxes are checked (api.md 8). */
export const WATCH_INTERVAL_MS = 1_000;

/** The isolation of this installation, for the start-up log. */
export const summarize = ({ isolation, controls, ownUids }: Installation): string => {
  const limits = ["memory", "processes"] as const;
  return [
    isolation.summary,
    ownUids ? "uids of its own for each sandbox" : "one uid, the service's",
    `${limits.map((limit) => `${limit} by ${controls.has(limit) ? "the kernel" : "a watcher"}`).join(", ")}, disk by a watcher`,
  ].join("; ");
};

/**
 * The provider as a layer. Building it tries the kinds of isolation on this machine, strongest first, and takes over
 * the sandboxes that a former service of this installation left running. If no kind works, it fails and names what is
 * missing.
 */
export const machineProvider = (
  options: MachineOptions,
  kinds: readonly Kind[],
  cache: PackageCache | null = null,
): Layer.Layer<SandboxProvider, SandboxError> =>
  Layer.effect(
    SandboxProvider,
    Effect.gen(function* () {
      const { installation, refusals } = yield* attempt("create", () => openInstallation(options, kinds));
      for (const refusal of refusals) yield* Effect.logInfo(`sandboxes are not isolated by ${refusal}`);
      yield* attempt("create", () => removeOldParts(installation));
      yield* attempt("destroy", () => removeTrials(options.runDir));
      const { start } = installation.isolation;
      if (start.by === "engine") {
        yield* attempt("destroy", async () => start.removeOthers(new Set(await sandboxIds(options.runDir))));
      }
      const measures = yield* Measures;
      const packages = cache === null ? null : yield* openPackages(cache);
      const tell = yield* tellRefused;
      const sandboxes = yield* Effect.acquireRelease(
        attempt("list", () =>
          MachineSandboxes.open({ ...installation, ...(packages && { packages }), tellRefused: tell }),
        ),
        (opened) => Effect.sync(() => opened.close()),
      );
      yield* Effect.flatMap(Clock.currentTimeMillis, (now) =>
        attempt("destroy", () => sandboxes.pruneTrees(now)),
      ).pipe(Effect.catch((error) => Effect.logWarning(`unused images and runtimes stay: ${error.message}`)));
      // The bundle takes seconds to make. The first session on an image should not wait for it.
      const prepare = attempt("create", async () => {
        if ((await installation.images.list()).length > 0) await installation.bundle();
      }).pipe(Effect.catch((error) => Effect.logWarning(`images cannot be used: ${error.message}`)));
      yield* Effect.forkScoped(prepare);
      const look = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis;
        yield* attempt("list", () => sandboxes.watch(now));
        if (measures.isOn) measures.set("sandbox_memory_bytes", {}, sandboxes.memoryBytes());
      }).pipe(Effect.catch((error) => Effect.logWarning(`sandboxes cannot be watched: ${error.message}`)));
      yield* Effect.forkScoped(Effect.repeat(look, Schedule.spaced(WATCH_INTERVAL_MS)));

      return portOver(sandboxes, {
        name: installation.isolation.provider,
        summary: summarize(installation),
        installed: installedIn(installation.runtimes),
        doctor: doctorReport(options, kinds),
      });
    }),
  );
