/** This node's own provider and repositories, below the code that dispatches between nodes. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { GitBackend } from "../git/port.ts";
import { SandboxProvider } from "../sandbox/port.ts";

export class LocalParts extends Context.Service<
  LocalParts,
  {
    readonly provider: SandboxProvider["Service"];
    /** The hosted repositories on this node. */
    readonly repositories: GitBackend["Service"];
  }
>()("platform/nodes/LocalParts") {}

/** Built from the provider and the backend below it. */
export const localParts = Layer.effect(
  LocalParts,
  Effect.all({ provider: SandboxProvider, repositories: GitBackend }),
);
