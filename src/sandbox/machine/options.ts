/** What the service says to the sandboxes of its machine. */
import type { ModelDoor } from "../model-door.ts";
import type { LaunchOptions } from "../launch-settings.ts";
import type { PackageSources } from "../../domain/environment/packages.ts";

export interface SandboxLimits {
  /** Memory of all processes of a sandbox together, in bytes. */
  readonly memoryBytes: number;
  /** How many processors it may use at a time. */
  readonly cpus: number;
  /** How many processes and threads a sandbox may have. */
  readonly processes: number;
  /** How many files one process may have open. */
  readonly openFiles: number;
  /** /workspace, the agent's home and /tmp together, in bytes. */
  readonly diskBytes: number;
  /** How many files and directories they may contain. */
  readonly diskFiles: number;
  /** How many bytes of one second's output of PID 1 and the daemon are kept. */
  readonly logBytesPerSecond: number;
}

const MIB = 1024 * 1024;

/** api.md 8. The limit on files prevents one sandbox from using up the file system's inodes. */
export const DEFAULT_LIMITS: SandboxLimits = {
  memoryBytes: 2048 * MIB,
  cpus: 4,
  processes: 512,
  openFiles: 4096,
  diskBytes: 8192 * MIB,
  diskFiles: 1_000_000,
  logBytesPerSecond: MIB,
};

export interface MachineOptions extends LaunchOptions {
  /** Images of sandboxes (images/store.ts). */
  readonly imagesDir: string;
  /** Agent runtimes that an operator has added (runtimes/store.ts). */
  readonly runtimesDir: string;
  /** Created if missing. Its path is short, and other users can traverse it (so it is not below a 0700 home). */
  readonly runDir: string;
  readonly installationId: string;
  readonly nodeId: string;
  /** The Node that runs the daemon. */
  readonly nodePath: string;
  /** The daemon's program as one JavaScript file. */
  readonly daemonBundle: string;
  /** Node's compiled form of the daemon (daemon/bundle/code-cache.ts). If null, every start compiles it again. */
  readonly daemonCodeCache: string | null;
  /** The `platform` command as one executable JavaScript file. */
  readonly commandLine: string;
  /** Programs of the agent runtime, placed on the PATH under their own file names. */
  readonly agentBinaries: readonly string[];
  readonly limits: SandboxLimits;
  /** Answers calls to the account's own providers of models. Absent: nothing does. */
  readonly modelDoor?: ModelDoor;
  /** The origin of this service's listener, which platform.internal leads to. */
  readonly serviceUrl: string;
  /** The hosts of the public URL and of the node. Sandboxes reach neither. */
  readonly serviceHosts?: readonly string[];
  /** The registries for new sandboxes. Absent: their package managers ask registries themselves. */
  readonly packageSources?: PackageSources;
  /** The service's PATH, to find bubblewrap and other programs. */
  readonly path: string;
}
