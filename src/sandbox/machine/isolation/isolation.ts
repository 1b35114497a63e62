/**
 * What differs between the ways to isolate a sandbox on this machine. Everything else in this folder is the same for
 * all of them: directories, records, limits, egress, teardown.
 */
import type { ContainerPlace } from "../../containers/engine.ts";
import type { DoctorFinding } from "../../port.ts";
import type { Control } from "../limits/cgroup.ts";
import type { MachineOptions } from "../options.ts";
import type { MountStep, OpenedImage } from "../boot/layout.ts";
import type { SandboxPaths } from "../disk/run-directory.ts";
import type { Sighting } from "../sighting.ts";
import type { Tools } from "../tools.ts";

/** The port's `name` of each provider on this machine. */
export type MachineProviderName = "local" | "gvisor" | "docker";

/** The host users of one sandbox of a root service. */
export interface SandboxUsers {
  /** Starts the sandbox, and runs what isolates it. */
  readonly setup: number;
  readonly daemon: number;
  readonly agent: number;
  /** The content of uid_map and gid_map. */
  readonly map: string;
}

/** How many host uids (and gids of the same numbers) one sandbox of a root service uses, from its base on. */
export const UIDS_PER_SANDBOX = 3;

/** Everything that starts one sandbox. */
export interface LaunchRequest {
  readonly id: string;
  readonly paths: SandboxPaths;
  readonly layout: readonly MountStep[];
  /** If null, the sandbox sees the machine's own root. */
  readonly image: OpenedImage | null;
  /** The first host uid. Null if the service is an ordinary user. */
  readonly uidBase: number | null;
  /** For PID 1 and the daemon. It contains PLATFORM_TOKEN. */
  readonly environment: Readonly<Record<string, string>>;
}

/** The command that becomes the sandbox. It uses the protocol of boot/launcher.ts. */
export interface Launcher {
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** A file that the launcher reads as descriptor FILTER_FD. Null if it has no such descriptor. */
  readonly filter: string | null;
}

/** A command of the service starts each sandbox, and control groups of the service bound it. */
export interface LauncherStart {
  readonly by: "launcher";
  /** Writes what the launcher needs into the sandbox's directory, and returns the launcher. */
  readonly launch: (request: LaunchRequest) => Promise<Launcher>;
}

/** A container engine of this machine starts, bounds and removes each sandbox. */
export interface EngineStart {
  readonly by: "engine";
  /** The limits that the engine enforces. */
  readonly controls: ReadonlySet<Control>;
  /** Where the sandbox's container will be. It is recorded before the container exists. */
  readonly place: (id: string) => ContainerPlace;
  /**
   * Makes and starts the container. Its first program writes `up` into `paths.up` as descriptor 3, and its output to
   * `paths.log`.
   * @returns the pid of its first program on this machine
   */
  readonly start: (request: LaunchRequest) => Promise<number>;
  /** Removes containers of this run directory whose sandbox is not in `ids`, and images that no container uses. */
  readonly removeOthers: (ids: ReadonlySet<string>) => Promise<void>;
}

/** One way to isolate sandboxes, prepared on this machine. */
export interface Isolation {
  readonly provider: MachineProviderName;
  /** E.g. `bubblewrap`. */
  readonly form: string;
  /** Whose kernel answers a sandbox's system calls: this machine's, or gVisor. */
  readonly enforcer: "kernel" | "gvisor";
  /** For the start-up log: what isolates, without the limits. */
  readonly summary: string;
  /** Further files below /opt/platform/lib, by name. */
  readonly library: Readonly<Record<string, string>>;
  /** Files in the run directory that launchers use. */
  readonly files: readonly string[];
  /** Limits that it leaves to control groups: it works only where the kernel enforces them. */
  readonly needsGroups: boolean;
  /** How many processes and threads of this machine run so many of a sandbox. */
  readonly hostProcesses: (inside: number) => number;
  readonly users: (uidBase: number) => SandboxUsers;
  /** The daemon's prefix for each command that runs as the agent (domain/sandbox/launch.ts `prefix`). */
  readonly agentPrefix: (sandbox: {
    readonly uidBase: number | null;
    readonly image: OpenedImage | null;
  }) => string[];
  readonly start: LauncherStart | EngineStart;
  /** For `doctor`, by what a sandbox saw: what is said of it beside `commonFindings` (sighting.ts). */
  readonly findings: (sighting: Sighting) => readonly DoctorFinding[];
}

/** The input of `prepare`. */
export interface Preparation {
  readonly options: MachineOptions;
  readonly tools: Tools;
  /** Whether sandboxes get uids of their own (the service is root). */
  readonly ownUids: boolean;
}

/** One way that may work on this machine. */
export interface Kind {
  /** Named in errors, e.g. `bubblewrap`. */
  readonly name: string;
  /** The run directory exists. @throws Error that says what is missing on this machine */
  readonly prepare: (preparation: Preparation) => Promise<Isolation>;
}
