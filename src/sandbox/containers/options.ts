/** The part of Docker's API that describes a container: the fields that sandboxes use, by the engine's names. */

export interface Mount {
  readonly Type: "bind";
  readonly Source: string;
  readonly Target: string;
  readonly ReadOnly: boolean;
  readonly BindOptions: { readonly Propagation: "rprivate" };
}

export interface Ulimit {
  readonly Name: string;
  readonly Soft: number;
  readonly Hard: number;
}

export interface ContainerOptions {
  readonly Image: string;
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly User: string;
  readonly Hostname: string;
  readonly WorkingDir: string;
  readonly Labels: Readonly<Record<string, string>>;
  readonly HostConfig: {
    readonly Runtime?: string;
    readonly Mounts: readonly Mount[];
    /** Options by target. */
    readonly Tmpfs: Readonly<Record<string, string>>;
    readonly ShmSize: number;
    readonly ReadonlyRootfs: boolean;
    readonly MaskedPaths: readonly string[];
    readonly NetworkMode: "none";
    readonly IpcMode: "private";
    readonly UsernsMode: "host";
    readonly CapDrop: readonly string[];
    readonly CapAdd: readonly string[];
    readonly SecurityOpt: readonly string[];
    readonly Memory: number;
    readonly MemorySwap: number;
    readonly PidsLimit: number;
    readonly CpuPeriod: number;
    readonly CpuQuota: number;
    readonly Ulimits: readonly Ulimit[];
    readonly LogConfig: { readonly Type: "none"; readonly Config: Readonly<Record<string, never>> };
    readonly RestartPolicy: { readonly Name: "no" };
  };
}
