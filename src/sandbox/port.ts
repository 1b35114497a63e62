/**
 * The port to sandbox providers: bubblewrap or plain namespaces on this machine (`local`), gVisor on this machine
 * (`gvisor`), a container engine of this machine (`docker`), Pods of a cluster (`kubernetes`). A provider knows nothing about sessions' states. It creates, finds, reaches and removes isolated
 * machines that are labelled with the installation that owns them.
 *
 * Invariants of every provider (test/conformance/sandboxes/sandbox.ts):
 *  P1 `create` is idempotent by sandbox id: a second call, also after a restart of the service, joins or finds the
 *     first.
 *  P2 `destroy` is idempotent. When it returns, no process, mount, namespace or directory of the sandbox is left.
 *  P3 `list` returns only sandboxes with this owner's labels, including those that a dead service left behind.
 *  P4 An interrupted or failed `create` leaves nothing that `destroy` would not remove.
 *  P5 No secret of a spec appears in an error, a log line, a process's arguments or `list`.
 *  P6 A sandbox's output can be read until it is destroyed, also after it ended in any way, and after a restart of the
 *     service. After `end` has returned, no output is added.
 */
import type { AccountProvider } from "../domain/sandbox/account-provider.ts";
import type { Duplex } from "node:stream";
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import type { LaunchAgent, LaunchRuntime, Recap } from "../domain/sandbox/launch.ts";

/** Everything that a provider needs to start one sandbox. */
export interface SandboxSpec {
  readonly id: string;
  /** Null if the sandbox waits for its session, which it gets by `DaemonClient.claim`. */
  readonly sessionId: string | null;
  /**
   * The injected environment (spec.md, injected environment), including PLATFORM_TOKEN: for PID 1 and the daemon. Without
   * a session, it lacks the session's variables (domain/sandbox/environment.ts).
   */
  readonly environment: Readonly<Record<string, string>>;
  /** Project secrets: for the agent runtime alone, passed in the launch file (domain/sandbox/launch.ts). */
  readonly secrets: Readonly<Record<string, string>>;
  /**
   * The image whose file system the sandbox sees, by the name in the project's manifest. Null means the provider's own, for
   * `local`, `gvisor` and `docker` the machine's.
   */
  readonly image: string | null;
  /** Variables for the agent that override the image's, and that everything else overrides. Absent: none. */
  readonly variables?: Readonly<Record<string, string>>;
  /** Hosts beyond `platform.internal` that this sandbox may reach. `*` is every public host. */
  readonly egressAllow: readonly string[];
  /**
   * The managed model gateway of the account's tier, where `http://llm.platform.internal` leads to, e.g. `http://127.0.0.1:9999/v1`.
   * Requests keep their path, which must be below this one. Null if unreachable.
   */
  readonly llmUpstream: string | null;
  /** The providers of models that the sandbox reaches by their inside addresses (account-provider.ts). Absent: none. */
  readonly providers?: readonly AccountProvider[];
  /** What starts the agent runtime. */
  readonly runtime: LaunchRuntime;
  /** The digest of its program on the node (`installed` of the port). Absent: the node has none for it. */
  readonly installed?: string;
  /** What the manifest says of the session's agent. Null if there is nothing, or the claim brings it. */
  readonly agent: LaunchAgent | null;
  /** The commit of a former sandbox's saved work. Empty: it is made when somebody fetches it. Null without saved work. */
  readonly wip: string | null;
  /** What that work lacks, as sentences for the agent. Null if nothing does, as far as is known. */
  readonly wipLacks: string | null;
  /** Whether the sandbox brings that work back into its checkout. */
  readonly restore: boolean;
  /** The conversation with former sandboxes. Null without one. */
  readonly recap: Recap | null;
  /** Whether the runtime is told where the gateway to tools is: of connectors, and of the platform itself. */
  readonly hasConnectors: boolean;
  /** Milliseconds after which a boot is given up. By then the daemon has stopped retrying its clone. */
  readonly bootDeadlineMs: number;
}

export const ABSENT_EXIT: SandboxExit = { code: "absent", message: "the sandbox does not exist" };

/** Of a sandbox that is given nothing, as those of `doctor` and of tests are. */
export const BARE_SPEC = {
  secrets: {},
  image: null,
  egressAllow: [],
  llmUpstream: null,
  agent: null,
  wip: null,
  wipLacks: null,
  restore: false,
  recap: null,
  hasConnectors: false,
} as const satisfies Partial<SandboxSpec>;

/** How the service reaches the daemon: always HTTP. */
export type DaemonLink =
  | { readonly kind: "unix"; readonly path: string }
  | {
      readonly kind: "url";
      readonly url: string;
      /** Opens a connection that proves who the service is. Absent: a plain one to the URL's host and port. */
      readonly connect?: () => Duplex;
    }
  /** A link to another node's sandbox. That node forwards requests that carry the credential. */
  | {
      readonly kind: "node";
      readonly url: string;
      /** The requester: requests of a person or program keep a session from being idle, the service's own do not. */
      readonly request: (request: {
        readonly method: string;
        readonly path: string;
        readonly by: Requester;
      }) => {
        readonly path: string;
        /** Raw headers, name before value. */
        readonly headers: readonly string[];
      };
    };
export type Requester = "client" | "service";

/** A link in the form of Node's request options. With `createConnection`, a request must name no agent. */
export const linkTarget = (
  link: DaemonLink,
):
  | { readonly socketPath: string }
  | { readonly host: string; readonly port: number }
  | { readonly createConnection: () => Duplex } => {
  if (link.kind === "unix") return { socketPath: link.path };
  if (link.kind === "url" && link.connect !== undefined) return { createConnection: link.connect };
  const url = new URL(link.url);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  return { host, port: Number(url.port === "" ? 80 : url.port) };
};

/** The request that reaches the daemon's `path` over a link: the path itself, or its address at the forwarding node. */
export const linkRequest = (
  link: DaemonLink,
  request: { readonly method: string; readonly path: string; readonly by: Requester },
): { readonly path: string; readonly headers: readonly string[] } =>
  link.kind === "node" ? link.request(request) : { path: request.path, headers: [] };

/** Why a sandbox ended. Reported once, and kept until the sandbox is destroyed. */
export const SandboxExit = Schema.Struct({
  code: Schema.Literals(["exited", "memory_exceeded", "disk_exceeded", "processes_exceeded", "absent"]),
  message: Schema.String,
});
export type SandboxExit = typeof SandboxExit.Type;

export interface SandboxListing {
  readonly id: string;
  /** Null if it was started without a session. */
  readonly sessionId: string | null;
  readonly state: "running" | "exited";
}

/** One row of the `doctor` report. `how` names who enforces it. */
export interface DoctorFinding {
  readonly subject: string;
  readonly how: "kernel" | "gvisor" | "watcher" | "cluster" | "not at all";
  readonly detail: string;
}

export interface DoctorReport {
  readonly provider: string;
  /** False if no real sandbox could be started. `problem` gives the reason and the remedy. */
  readonly usable: boolean;
  readonly problem: string | null;
  readonly findings: readonly DoctorFinding[];
}

/** The provider's operation failed. `message` is for people and contains no secret. */
export class SandboxError extends Schema.TaggedError<SandboxError>()("SandboxError", {
  operation: Schema.Literals([
    "create",
    "list",
    "link",
    "setSecretNames",
    "logs",
    "end",
    "destroy",
    "doctor",
  ]),
  message: Schema.String,
  /** There is no room for the sandbox. Without it, `create` has a cause that only a person can remove. */
  code: Schema.optionalKey(Schema.Literal("no_capacity")),
  /** The sandbox's node is unreachable: temporarily, or for good. */
  node: Schema.optionalKey(Schema.Literals(["away", "dead"])),
}) {}

export class SandboxProvider extends Context.Service<
  SandboxProvider,
  {
    /** The stable name in session_sandboxes.provider, e.g. `local`. */
    readonly name: string;
    /** One line for the start-up log about the isolation and its gaps. */
    readonly summary: string;
    /**
     * Returns when the sandbox's PID 1 runs and `link` will answer. The daemon may still be booting (P1, P4). Once
     * begun, it runs to its end (bounded in time) even if interrupted: a caller that interrupts it then calls
     * `destroy`.
     */
    readonly create: (spec: SandboxSpec) => Effect.Effect<void, SandboxError>;
    /** The digest of the program that new sandboxes on this node get for a runtime. Null if the node has none for it. */
    readonly installed: (runtime: LaunchRuntime) => Effect.Effect<string | null>;
    /** Completes when the sandbox has ended by itself or does not exist. Interrupt it to stop watching. */
    readonly awaitExit: (id: string) => Effect.Effect<SandboxExit>;
    readonly list: Effect.Effect<readonly SandboxListing[], SandboxError>;
    readonly link: (id: string) => Effect.Effect<DaemonLink, SandboxError>;
    /** The project's secrets now have these names. Opens the model hosts whose keys are among them (api.md 8). */
    readonly setSecretNames: (id: string, names: readonly string[]) => Effect.Effect<void, SandboxError>;
    /** The output of PID 1 and the daemon: the newest whole lines, at most 1 MiB. Empty for an unknown id. */
    readonly logs: (id: string) => Effect.Effect<string, SandboxError>;
    /** Ends the sandbox's processes, gracefully if possible, and leaves the rest to `destroy`. Idempotent. */
    readonly end: (id: string) => Effect.Effect<void, SandboxError>;
    readonly destroy: (id: string) => Effect.Effect<void, SandboxError>;
    /** Starts one real sandbox, probes it, destroys it. */
    readonly doctor: Effect.Effect<DoctorReport>;
  }
>()("platform/sandbox/SandboxProvider") {}
