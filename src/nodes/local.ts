/** What this node has itself, below what dispatches between nodes. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { GitBackend } from "../git/port.ts";
import { SandboxProvider } from "../sandbox/port.ts";

export class LocalParts extends Context.Service<
  LocalParts,
  {
    readonly provider: SandboxProvider["Service"];
    /** Of the hosted repositories here. */
    readonly repositories: GitBackend["Service"];
  }
>()("platform/nodes/LocalParts") {}

/** Of the provider and the backend that are given. */
export const localParts = Layer.effect(
  LocalParts,
  Effect.all({ provider: SandboxProvider, repositories: GitBackend }),
);
