/**
 * The port to whatever runs sandboxes: bubblewrap or plain namespaces on this machine (`local`), later containers,
 * microVMs or a cluster. A provider knows nothing of sessions' states; it makes, finds, reaches and removes
 * isolated machines that are labelled with the installation that owns them.
 *
 * Invariants every provider keeps (test/conformance/sandbox.ts):
 *  P1 `create` is idempotent by sandbox id: a second call, also after the service restarted, joins or finds the first.
 *  P2 `destroy` is idempotent, and when it returns no process, mount, namespace or directory of the sandbox is left.
 *  P3 `list` names sandboxes of this owner's labels only, also ones a dead service left behind.
 *  P4 an interrupted or failed `create` leaves nothing that `destroy` would not remove.
 *  P5 no secret of a spec appears in an error, a log line, a process's arguments or `list`.
 *  P6 what a sandbox wrote can be read until it is destroyed: also after it ended, however that came, and after the
 *     service restarted. When `end` has returned, nothing is added to it any more.
 */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";

/** Everything a provider needs to start one sandbox. */
export interface SandboxSpec {
  readonly id: string;
  readonly sessionId: string;
  /** The injected environment (spec.md, injected environment), PLATFORM_TOKEN included: for PID 1 and the daemon. */
  readonly environment: Readonly<Record<string, string>>;
  /** Project secrets: for the agent runtime alone, handed over in the launch file (domain/launch.ts). */
  readonly secrets: Readonly<Record<string, string>>;
  /** Hosts beyond `platform.internal` that this sandbox may reach; `*` is every public host. */
  readonly egressAllow: readonly string[];
  /**
   * Managed model gateway of the account's tier: the origin that `http://llm.platform.internal` leads to, e.g.
   * `http://127.0.0.1:9999` (a path after it is ignored: requests keep their own); null: unreachable.
   */
  readonly llmUpstream: string | null;
  /** Commit on refs/wip/<session> of what a former sandbox saved; null: there is none. */
  readonly wip: string | null;
  /** Milliseconds after which a boot is given up; the daemon stops retrying its clone by then. */
  readonly bootDeadlineMs: number;
}

/** How the service reaches the daemon: always HTTP. */
export type DaemonLink =
  | { readonly kind: "unix"; readonly path: string }
  | { readonly kind: "url"; readonly url: string }
  /** To a sandbox of another node, which passes on what comes with its credential. */
  | {
      readonly kind: "node";
      readonly url: string;
      /** Whose requests it passes on: a person's or program's keep a session from being idle, the service's own do not. */
      readonly request: (asked: { readonly method: string; readonly path: string; readonly by: Asker }) => {
        readonly path: string;
        /** Raw headers, name before value. */
        readonly headers: readonly string[];
      };
    };
export type Asker = "client" | "service";

/** A link as Node's request options name it. */
export const linkTarget = (
  link: DaemonLink,
): { readonly socketPath: string } | { readonly host: string; readonly port: number } => {
  if (link.kind === "unix") return { socketPath: link.path };
  const url = new URL(link.url);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  return { host, port: Number(url.port === "" ? 80 : url.port) };
};

/** What is asked over a link to have `path` of the daemon: that itself, or its address at the node that passes it on. */
export const linkRequest = (
  link: DaemonLink,
  asked: { readonly method: string; readonly path: string; readonly by: Asker },
): { readonly path: string; readonly headers: readonly string[] } =>
  link.kind === "node" ? link.request(asked) : { path: asked.path, headers: [] };

/** Why a sandbox is no more: told once, kept until it is destroyed. */
export interface SandboxExit {
  readonly code: "exited" | "memory_exceeded" | "disk_exceeded" | "processes_exceeded" | "absent";
  readonly message: string;
}

export interface SandboxListing {
  readonly id: string;
  readonly sessionId: string;
  readonly state: "running" | "exited";
}

/** One row of what `doctor` found; `how` names who enforces it. */
export interface DoctorFinding {
  readonly subject: string;
  readonly how: "kernel" | "watcher" | "not at all";
  readonly detail: string;
}

export interface DoctorReport {
  readonly provider: string;
  /** False where a real sandbox could not be started; `problem` says why and what to do about it. */
  readonly usable: boolean;
  readonly problem: string | null;
  readonly findings: readonly DoctorFinding[];
}

/** The provider could not do what was asked. `message` is for people and holds no secret. */
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
  /** The sandbox's node cannot be asked: for now (it passes), or for good. */
  node: Schema.optionalKey(Schema.Literals(["away", "dead"])),
}) {}

export class SandboxProvider extends Context.Service<
  SandboxProvider,
  {
    /** Stable name written to session_sandboxes.provider, e.g. `local`. */
    readonly name: string;
    /** One line for the start-up log: what isolates, what does not. */
    readonly summary: string;
    /**
     * Returns when the sandbox's PID 1 runs and `link` will answer; the daemon may still be booting (P1, P4). Once
     * begun it runs to its end (bounded in time) even when interrupted: whoever interrupts it calls `destroy`.
     */
    readonly create: (spec: SandboxSpec) => Effect.Effect<void, SandboxError>;
    /** Completes when the sandbox has ended by itself or was never there; interrupt it to stop watching. */
    readonly awaitExit: (id: string) => Effect.Effect<SandboxExit>;
    readonly list: Effect.Effect<readonly SandboxListing[], SandboxError>;
    readonly link: (id: string) => Effect.Effect<DaemonLink, SandboxError>;
    /** The project has secrets of these names by now: the model hosts that they pay for are open (api.md 8). */
    readonly setSecretNames: (id: string, names: readonly string[]) => Effect.Effect<void, SandboxError>;
    /** What PID 1 and the daemon wrote: the newest whole lines, at most 1 MiB; empty for an unknown id. */
    readonly logs: (id: string) => Effect.Effect<string, SandboxError>;
    /** Ends the sandbox's processes, orderly where they bear it, and leaves the rest to `destroy`. Idempotent. */
    readonly end: (id: string) => Effect.Effect<void, SandboxError>;
    readonly destroy: (id: string) => Effect.Effect<void, SandboxError>;
    /** Starts one real sandbox, probes it, destroys it. */
    readonly doctor: Effect.Effect<DoctorReport>;
  }
>()("platform/sandbox/SandboxProvider") {}
