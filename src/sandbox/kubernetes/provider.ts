/**
 * The provider `kubernetes`: each sandbox is a Pod of a cluster. The service runs in the cluster or beside it, where it
 * reaches Pods by their addresses and Pods reach its egress listener.
 */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { type DoctorReport, SandboxError, SandboxProvider } from "../port.ts";
import type { ChannelPlace } from "../remote/channel.ts";
import { EgressListener } from "../remote/egress-listener.ts";
import { Cluster, type ClusterOptions } from "./cluster.ts";
import { KubernetesSandboxes, type SandboxesOptions } from "./sandboxes.ts";

export interface KubernetesOptions extends Omit<SandboxesOptions, "cluster" | "listener"> {
  readonly cluster: ClusterOptions;
  /** Where the egress listener listens. */
  readonly listen: ChannelPlace;
  readonly doctor: Effect.Effect<DoctorReport>;
}

const attempt = <A>(
  operation: SandboxError["operation"],
  run: () => Promise<A>,
): Effect.Effect<A, SandboxError> =>
  Effect.tryPromise({
    try: run,
    catch: (error) =>
      new SandboxError({ operation, message: error instanceof Error ? error.message : String(error) }),
  });

/** The provider as a layer. Building it takes over the Pods that a former service of this installation left running. */
export const kubernetesProvider = (options: KubernetesOptions): Layer.Layer<SandboxProvider, SandboxError> =>
  Layer.effect(
    SandboxProvider,
    Effect.gen(function* () {
      const cluster = yield* attempt("create", () => Cluster.open(options.cluster));
      const listener = yield* Effect.acquireRelease(
        attempt("create", () => EgressListener.open(options.listen)),
        (opened) => Effect.promise(() => opened.close()),
      );
      const warn = yield* Effect.map(Effect.context<never>(), (context) => (why: string) => {
        Effect.runForkWith(context)(Effect.logWarning(`the cluster cannot be followed: ${why}`));
      });
      const egress = options.egress.port === 0 ? { ...options.egress, port: listener.port } : options.egress;
      const sandboxes = yield* Effect.acquireRelease(
        attempt("list", () => KubernetesSandboxes.open({ ...options, cluster, listener, egress }, warn)),
        (opened) => Effect.sync(() => opened.close()),
      );
      return SandboxProvider.of({
        name: "kubernetes",
        summary: `Pods in the namespace ${cluster.namespace}${options.runtimeClass === null ? "" : `, runtime class ${options.runtimeClass}`}`,
        create: (spec) => Effect.uninterruptible(attempt("create", () => sandboxes.create(spec))),
        awaitExit: (id) => Effect.promise(() => sandboxes.exitOf(id)),
        list: attempt("list", () => sandboxes.list()),
        link: (id) => attempt("link", () => sandboxes.link(id)),
        setSecretNames: (id, names) =>
          Effect.uninterruptible(attempt("setSecretNames", () => sandboxes.setSecretNames(id, names))),
        logs: (id) => attempt("logs", () => sandboxes.logs(id)),
        end: (id) => Effect.uninterruptible(attempt("end", () => sandboxes.end(id))),
        destroy: (id) => Effect.uninterruptible(attempt("destroy", () => sandboxes.destroy(id))),
        doctor: options.doctor,
      });
    }),
  );
