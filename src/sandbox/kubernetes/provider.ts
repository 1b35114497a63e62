/**
 * The provider `kubernetes`: each sandbox is a Pod of a cluster. The service runs in the cluster or beside it, where it
 * reaches Pods by their addresses and Pods reach its egress listener.
 */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { type DoctorReport, SandboxError, SandboxProvider } from "../port.ts";
import { attempt, portOver } from "../operations.ts";
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
      return portOver(sandboxes, {
        name: "kubernetes",
        summary: `Pods in the namespace ${cluster.namespace}${options.runtimeClass === null ? "" : `, runtime class ${options.runtimeClass}`}`,
        doctor: options.doctor,
      });
    }),
  );
