/**
 * One sandbox as a Pod. Its description has no variable of the sandbox and no secret: those come over its link
 * (../remote/start.ts). The image of the project is untrusted: no program of it runs as the daemon, and its variables are for the agent.
 */
import type { V1Container, V1Pod, V1Secret, V1Volume, V1VolumeMount } from "@kubernetes/client-node";
import type { PackageSources } from "../../domain/environment/packages.ts";
import { PACKAGE_PARTS } from "../../domain/runtimes/installed.ts";
import type { AddedStart } from "../../domain/runtimes/runtime.ts";
import { BUNDLE_TOOLS } from "../bundle/bundle.ts";
import { placeInside } from "../runtimes/added.ts";
import { type SandboxPackages, sandboxPackages } from "../packages/of-sandbox.ts";
import { type SandboxKeys, secretMark } from "../remote/keys.ts";
import type { SandboxSpec } from "../port.ts";

/** Labels and annotations of the Pods. */
export const LABELS = {
  component: "platform/component",
  installation: "platform/installation",
  node: "platform/node",
  sandbox: "platform/sandbox",
  session: "platform/session",
  /** By which secret its keys were made (`secretMark`). */
  keys: "platform/keys",
} as const;
/** What the egress proxy needs to know again after a restart of the service: JSON of `EgressRecord`. */
export const EGRESS_ANNOTATION = "platform/egress";

/** The version of the runtime that was brought into it (`PodRuntime`). */
const RUNTIME_ANNOTATION = "platform/runtime-version";
/** What starts that runtime, if its files say it: JSON of `AddedStart`. */
const RUNTIME_START_ANNOTATION = "platform/runtime-start";

/** When the service was last there (heard.ts), in ISO 8601. */
export const HEARD_ANNOTATION = "platform/heard-at";

export const LINK_PORT = 7443;
/** This container's exit code when neither the image nor the bundle has the agent's program. */
export const LACKS_PROGRAM = { container: "image-variables", code: 78 } as const;
/** The container whose end is the sandbox's end. */
export const SANDBOX_CONTAINER = "sandbox";

const DAEMON = 1000;
export const AGENT_UID = 1001;
export const LIBRARY = "/opt/platform/lib";
/** The programs of the agent runtimes that the runtime image has. */
export const AGENT_BINARIES = "/opt/platform/bin";
const RUN = "/run/platform";
/** The environment that the image gives a program, for the daemon to read. */
export const IMAGE_ENVIRONMENT = `${RUN}/image-environment`;
const KEY_DIRECTORY = "/run/platform-key";
/** Seconds between SIGTERM and SIGKILL. */
const GRACE_S = 10;

export interface EgressRecord {
  readonly allow: readonly string[];
  readonly secretNames: readonly string[];
  readonly llmUpstream: string | null;
  /** The package registries that it was started with. Absent: none. */
  readonly packages?: SandboxPackages;
}

export interface PodLimits {
  readonly memoryBytes: number;
  readonly cpus: number;
  readonly diskBytes: number;
}

export interface PodOptions {
  /** The installation's secret for links, at least 32 bytes. No Pod has it. */
  readonly secret: Uint8Array;
  readonly installationId: string;
  readonly nodeId: string;
  /** The image with the runtime bundle. */
  readonly runtimeImage: string;
  /** The image of projects that name none. */
  readonly image: string;
  /** Null means the cluster's default. */
  readonly runtimeClass: string | null;
  /** Names of Secrets by which nodes pull the images. Absent: none. */
  readonly pullSecrets?: readonly string[];
  readonly limits: PodLimits;
  /** The registries whose packages are cached. Absent: none. */
  readonly packageSources?: PackageSources;
}

/** An agent runtime that an operator has added to the service. */
export interface PodRuntime {
  readonly name: string;
  readonly version: string;
  /** The reference of an image with its files at the root, by digest. */
  readonly image: string;
  /** Absent: its record says what starts it. */
  readonly start?: AddedStart;
}

interface Brought {
  readonly spec: SandboxSpec;
  /** Null if its program is in the image, or in the bundle. */
  readonly runtime: PodRuntime | null;
}

export const podName = (id: string): string => `platform-${id}`;

/** Selects the Pods of this installation's node. */
export const podSelector = ({ installationId, nodeId }: PodOptions): string =>
  `${LABELS.installation}=${installationId},${LABELS.node}=${nodeId}`;

/** Everything that an ordinary program may do without. */
const unprivilegedContext = (uid: number): V1Container["securityContext"] & object => ({
  runAsUser: uid,
  runAsGroup: uid,
  runAsNonRoot: true,
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ["ALL"] },
});

/** What the daemon keeps, to start the agent as another user and to end it. */
const KEPT = ["SETUID", "SETGID", "SETPCAP", "KILL"];

const mount = (name: string, mountPath: string, more: Partial<V1VolumeMount> = {}): V1VolumeMount => ({
  name,
  mountPath,
  ...more,
});

const bundleShell = (script: string): string[] => [`${BUNDLE_TOOLS}/sh`, "-ec", script];

/** The directories are made by the users that own them: a container without rights cannot give them away. */
const preparing = (
  { runtimeImage: image }: PodOptions,
  resources: V1Container["resources"] & object,
): V1Container[] => [
  {
    name: "prepare",
    image,
    command: bundleShell(
      [
        `PATH=${BUNDLE_TOOLS}`,
        "cp -R /opt/platform/. /copy",
        "mkdir -m 711 /volume/run",
        "mkdir -m 755 /volume/run/agent",
        "mkdir -m 700 /volume/run/proxy",
        "mkfifo -m 600 /volume/run/start",
      ].join("\n"),
    ),
    volumeMounts: [mount("platform", "/copy"), mount("run", "/volume")],
    securityContext: unprivilegedContext(DAEMON),
    resources,
  },
  {
    name: "prepare-files",
    image,
    command: bundleShell(
      `PATH=${BUNDLE_TOOLS}; mkdir -m 755 /volume/workspace /volume/home; mkdir -m 1777 /volume/tmp`,
    ),
    volumeMounts: [mount("files", "/volume")],
    securityContext: unprivilegedContext(AGENT_UID),
    resources,
  },
];

/** Copies the runtime's files to where every sandbox has them. No program of its image runs. */
const bringRuntime = (
  { name, version, image }: PodRuntime,
  resources: V1Container["resources"] & object,
): V1Container => {
  const place = placeInside(name, version);
  const copies = PACKAGE_PARTS.map((part) => `[ ! -d /${part} ] || cp -R /${part} ${place}`);
  return {
    name: "runtime",
    image,
    command: bundleShell([`PATH=${BUNDLE_TOOLS}`, `mkdir -p ${place}`, ...copies].join("\n")),
    workingDir: "/",
    env: clearedLoader(),
    volumeMounts: [mount("platform", "/opt/platform")],
    securityContext: unprivilegedContext(DAEMON),
    resources,
  };
};

/** Copies the variables. For a runtime that was not added, it first looks for its program on the PATH that it will have. */
const keepVariables = ({ spec: { runtime: launch }, runtime }: Brought): string[] => {
  const copy = [`${BUNDLE_TOOLS}/cp`, "-f"];
  if (runtime !== null || launch.packaged === undefined)
    return [...copy, "/proc/self/environ", IMAGE_ENVIRONMENT];
  const [program = ""] = launch.command;
  return bundleShell(
    [
      `PATH="${AGENT_BINARIES}:$PATH:/usr/local/bin"`,
      `command -v '${program}' >/dev/null || exit ${LACKS_PROGRAM.code}`,
      // As the shell got them: it has some of its own.
      `${copy.join(" ")} /proc/$$/environ ${IMAGE_ENVIRONMENT}`,
    ].join("\n"),
  );
};

/**
 * Writes down the environment that the image's programs get. The sandbox's first program clears its own, because the image could lead
 * it astray. This one can write that file and nothing else, and no program of the image runs.
 */
const imageVariables = (
  options: PodOptions,
  { resources, ...brought }: Brought & { readonly resources: V1Container["resources"] & object },
): V1Container => ({
  name: LACKS_PROGRAM.container,
  image: brought.spec.image ?? options.image,
  command: keepVariables(brought),
  workingDir: "/",
  env: clearedLoader(),
  volumeMounts: [
    mount("platform", "/opt/platform", { readOnly: true }),
    mount("run", RUN, { subPath: "run" }),
  ],
  securityContext: unprivilegedContext(DAEMON),
  resources,
});

/** The way to the service. It alone has the start key, and no program of the image runs in it. */
const linkContainer = ({ runtimeImage: image }: PodOptions): V1Container => ({
  name: "link",
  image,
  command: [
    `${LIBRARY}/node`,
    `${LIBRARY}/link.cjs`,
    RUN,
    `${KEY_DIRECTORY}/key`,
    "$(POD_IP)",
    String(LINK_PORT),
  ],
  env: [{ name: "POD_IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } }],
  ports: [{ name: "link", containerPort: LINK_PORT }],
  volumeMounts: [mount("run", RUN, { subPath: "run" }), mount("key", KEY_DIRECTORY, { readOnly: true })],
  securityContext: unprivilegedContext(DAEMON),
  resources: { requests: { cpu: "10m", memory: "64Mi" }, limits: { memory: "256Mi" } },
});

/** Waits until the link has brought the launch file, and becomes PID 1. */
const START = ["trap 'exit 143' TERM", `read -r go <${RUN}/start`, "trap - TERM", 'exec "$@"'].join("\n");

const asDaemon = (): string[] => {
  const capabilities = KEPT.map((name) => `+${name.toLowerCase()}`).join(",");
  return [
    `${BUNDLE_TOOLS}/setpriv`,
    "--reuid",
    String(DAEMON),
    "--regid",
    String(DAEMON),
    "--clear-groups",
    "--no-new-privs",
    `--inh-caps=-all,${capabilities}`,
    `--ambient-caps=-all,${capabilities}`,
    `--bounding-set=-all,${capabilities}`,
    "--",
  ];
};

/** Variables by which an image could lead the first program, before it clears its environment. */
const LOADER_VARIABLES = [
  "LD_PRELOAD",
  "LD_AUDIT",
  "LD_LIBRARY_PATH",
  "GLIBC_TUNABLES",
  "GCONV_PATH",
  "LOCPATH",
];

const clearedLoader = () => LOADER_VARIABLES.map((name) => ({ name, value: "" }));

const sandboxContainer = (options: PodOptions, spec: Pick<SandboxSpec, "image">): V1Container => ({
  name: SANDBOX_CONTAINER,
  image: spec.image ?? options.image,
  command: [
    `${BUNDLE_TOOLS}/env`,
    "-i",
    `PATH=${BUNDLE_TOOLS}:/usr/local/bin:/usr/bin:/bin`,
    "HOME=/opt/platform/home",
    "PLATFORM_WORKSPACE=/workspace",
    ...asDaemon(),
    `${BUNDLE_TOOLS}/sh`,
    "-c",
    START,
    "sandbox",
    `${BUNDLE_TOOLS}/sh`,
    "/usr/local/bin/platform-entrypoint",
  ],
  workingDir: "/workspace",
  env: clearedLoader(),
  volumeMounts: [
    mount("platform", "/opt/platform", { readOnly: true }),
    mount("files", "/opt/platform/home", { subPath: "home" }),
    mount("files", "/workspace", { subPath: "workspace" }),
    mount("files", "/tmp", { subPath: "tmp" }),
    mount("run", RUN, { subPath: "run" }),
    ...["platform-agent", "platform-entrypoint", "platform"].map((name) =>
      mount("platform", `/usr/local/bin/${name}`, { subPath: `bin-own/${name}`, readOnly: true }),
    ),
    ...["passwd", "group"].map((name) =>
      mount("platform", `/etc/${name}`, { subPath: `etc/${name}`, readOnly: true }),
    ),
  ],
  securityContext: {
    // setpriv becomes the daemon's user at once. A container's own user would lose the four capabilities.
    runAsUser: 0,
    runAsGroup: 0,
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ["ALL"], add: KEPT },
  },
  resources: makeResources(options.limits),
});

const makeResources = ({ memoryBytes, cpus, diskBytes }: PodLimits): V1Container["resources"] & object => ({
  // A quarter of the processors: a sandbox waits for its model most of the time.
  requests: { memory: String(memoryBytes), cpu: `${cpus * 250}m`, "ephemeral-storage": "512Mi" },
  limits: { memory: String(memoryBytes), cpu: String(cpus), "ephemeral-storage": String(diskBytes) },
});

const makeVolumes = (id: string, { diskBytes }: PodLimits): V1Volume[] => [
  { name: "platform", emptyDir: {} },
  { name: "run", emptyDir: { medium: "Memory", sizeLimit: "128Mi" } },
  { name: "files", emptyDir: { sizeLimit: String(diskBytes) } },
  { name: "key", secret: { secretName: podName(id), defaultMode: 0o444 } },
];

/** The runtime that was brought into a Pod. */
export const broughtRuntime = ({ metadata }: V1Pod): Pick<PodRuntime, "version" | "start"> | null => {
  const { [RUNTIME_ANNOTATION]: version, [RUNTIME_START_ANNOTATION]: start } = metadata?.annotations ?? {};
  if (version === undefined) return null;
  return { version, ...(start !== undefined && { start: JSON.parse(start) as AddedStart }) };
};

/** @param runtime null: its program is in the image, or in the bundle */
export const newPod = (options: PodOptions, spec: SandboxSpec, runtime: PodRuntime | null = null): V1Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    name: podName(spec.id),
    labels: {
      [LABELS.component]: "sandbox",
      [LABELS.installation]: options.installationId,
      [LABELS.node]: options.nodeId,
      [LABELS.sandbox]: spec.id,
      [LABELS.keys]: secretMark(options.secret),
      ...(spec.sessionId !== null && { [LABELS.session]: spec.sessionId }),
    },
    annotations: {
      [EGRESS_ANNOTATION]: egressText({
        allow: spec.egressAllow,
        secretNames: Object.keys(spec.secrets),
        llmUpstream: spec.llmUpstream,
        ...sandboxPackages(options.packageSources, spec),
      }),
      ...(runtime !== null && { [RUNTIME_ANNOTATION]: runtime.version }),
      ...(runtime?.start !== undefined && { [RUNTIME_START_ANNOTATION]: JSON.stringify(runtime.start) }),
    },
  },
  spec: {
    ...(options.runtimeClass !== null && { runtimeClassName: options.runtimeClass }),
    ...(options.pullSecrets?.length && { imagePullSecrets: options.pullSecrets.map((name) => ({ name })) }),
    restartPolicy: "Never",
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    hostname: "sandbox",
    // The egress proxy resolves names. The resolver must be named, and this one does not exist.
    dnsPolicy: "None",
    dnsConfig: { nameservers: ["127.0.0.1"] },
    terminationGracePeriodSeconds: GRACE_S,
    securityContext: { seccompProfile: { type: "RuntimeDefault" } },
    initContainers: [
      ...preparing(options, makeResources(options.limits)),
      ...(runtime === null ? [] : [bringRuntime(runtime, makeResources(options.limits))]),
      imageVariables(options, { spec, runtime, resources: makeResources(options.limits) }),
    ],
    containers: [sandboxContainer(options, spec), linkContainer(options)],
    volumes: makeVolumes(spec.id, options.limits),
  },
});

export const egressText = (record: EgressRecord): string => JSON.stringify(record);

/** The start key. The cluster removes it with its Pod, if the service did not before. */
export const startKeySecret = (pod: V1Pod, id: string, keys: SandboxKeys): V1Secret => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: {
    name: podName(id),
    labels: { ...pod.metadata?.labels },
    ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: podName(id), uid: pod.metadata?.uid ?? "" }],
  },
  immutable: true,
  stringData: { key: Buffer.from(keys.start.key).toString("base64") },
});
