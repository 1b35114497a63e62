/**
 * The provider `kubernetes`: each sandbox is a Pod of a cluster. The service runs in the cluster or beside it, where it
 * reaches Pods by their addresses and Pods reach its egress listener.
 */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type * as Scope from "effect/Scope";
import { thrownText } from "../../ground/thrown.ts";
import { type DoctorReport, SandboxError, SandboxProvider } from "../port.ts";
import { attempt, installedIn, portOver } from "../operations.ts";
import { tellRefused } from "../refused-hosts.ts";
import { type PackageCache, openPackages } from "../packages/cache.ts";
import type { ChannelPlace } from "../remote/channel.ts";
import { EgressListener } from "../remote/egress-listener.ts";
import { Cluster, type ClusterOptions } from "./cluster.ts";
import { examineCluster, unusable } from "./doctor.ts";
import { KubernetesSandboxes, type SandboxesOptions } from "./sandboxes.ts";

export interface KubernetesOptions extends Omit<
  SandboxesOptions,
  "cluster" | "listener" | "packages" | "tellRefused"
> {
  readonly cluster: ClusterOptions;
  /** Where the egress listener listens. */
  readonly listen: ChannelPlace;
}

/** Sandboxes have no DNS, so they get an IP address, of the family on which the listener listens. */
const channelPlace = ({ egress, listen }: KubernetesOptions): Effect.Effect<ChannelPlace, SandboxError> =>
  attempt("create", async () => {
    try {
      const family = isIP(listen.host) === 4 ? 4 : 0;
      return { ...egress, host: (await lookup(egress.host, { family })).address };
    } catch (error) {
      const why = thrownText(error);
      throw new Error(`PLATFORM_KUBERNETES_EGRESS_ADDRESS is ${egress.host}, which has no address (${why})`, {
        cause: error,
      });
    }
  });

const openListener = ({
  listen,
}: KubernetesOptions): Effect.Effect<EgressListener, SandboxError, Scope.Scope> =>
  Effect.acquireRelease(
    attempt("create", () => EgressListener.open(listen)).pipe(
      Effect.mapError(
        ({ message }) =>
          new SandboxError({
            operation: "create",
            message: `the egress listener cannot listen where PLATFORM_KUBERNETES_EGRESS_HOST and _PORT say (${message})`,
          }),
      ),
    ),
    (opened) => Effect.promise(() => opened.close()),
  );

/** The provider as a layer. Building it takes over the Pods that a former service of this installation left running. */
export const kubernetesProvider = (
  options: KubernetesOptions,
  cache: PackageCache | null = null,
): Layer.Layer<SandboxProvider, SandboxError> =>
  Layer.effect(
    SandboxProvider,
    Effect.gen(function* () {
      const cluster = yield* attempt("create", () => Cluster.open(options.cluster));
      const place = yield* channelPlace(options);
      const listener = yield* openListener(options);
      const warn = yield* Effect.map(Effect.context<never>(), (context) => (why: string) => {
        Effect.runForkWith(context)(Effect.logWarning(`the cluster cannot be followed: ${why}`));
      });
      const egress = place.port === 0 ? { ...place, port: listener.port } : place;
      const packages = cache === null ? null : yield* openPackages(cache);
      const tell = yield* tellRefused;
      const sandboxOptions = {
        ...options,
        cluster,
        listener,
        egress,
        ...(packages && { packages }),
        tellRefused: tell,
      };
      const sandboxes = yield* Effect.acquireRelease(
        attempt("list", () => KubernetesSandboxes.open(sandboxOptions, warn)).pipe(
          Effect.mapError(
            ({ operation, message }) =>
              new SandboxError({
                operation,
                message: `${message}. \`platform doctor\` says what the service lacks in the cluster`,
              }),
          ),
        ),
        (former) => Effect.sync(() => former.close()),
      );
      return portOver(sandboxes, {
        name: "kubernetes",
        summary: `Pods in the namespace ${cluster.namespace}${options.runtimeClass === null ? "" : `, runtime class ${options.runtimeClass}`}`,
        installed:
          options.runtimes === undefined ? () => Effect.succeed(null) : installedIn(options.runtimes),
        doctor: examineCluster(sandboxOptions),
      });
    }),
  );

const IN_USE =
  "the port of the egress listener (PLATFORM_KUBERNETES_EGRESS_PORT) is in use. If the service runs, let it start the trial sandbox itself: open Service in the dashboard, then Examine. Otherwise stop the program that has the port";

/** Examines a cluster for a service that does not run in this process. */
export const kubernetesDoctor = (options: KubernetesOptions): Effect.Effect<DoctorReport> =>
  Effect.gen(function* () {
    const cluster = yield* attempt("create", () => Cluster.open(options.cluster));
    const egress = yield* channelPlace(options);
    const listener = yield* openListener(options).pipe(
      Effect.catch(({ message }) =>
        Effect.succeed({ problem: message.includes("EADDRINUSE") ? IN_USE : message }),
      ),
    );
    return yield* examineCluster({ ...options, cluster, listener, egress });
  }).pipe(
    Effect.catch(({ message }) => Effect.succeed(unusable(message))),
    Effect.scoped,
  );
