/**
 * The only reader of the environment. It reads every setting of settings.ts. A value that its setting does not accept stops
 * the start with the setting's name, the value, and what the setting expects.
 */
import { homedir } from "node:os";
import path from "node:path";
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { offeredRuntimes, parseInstallable, type OfferedRuntimes } from "../domain/runtimes/runtimes.ts";
import { parseTrustedProxies, type TrustedProxies } from "../domain/person/client-address.ts";
import { tokenKind } from "../domain/ids.ts";
import type { KubernetesSettings } from "../domain/sandbox/kubernetes.ts";
import type { DefaultModels } from "../domain/sandbox/model.ts";
import { type MailSettings, parseMailFrom, parseMailServer } from "../domain/service/mail-server.ts";
import { parseInstallationName } from "../domain/service/name.ts";
import { parseNodeHost, parseNodeUrl } from "../domain/service/node.ts";
import { sourceHosts, wrongSource } from "../domain/environment/packages.ts";
import { parsePreviewUrl, type PreviewAddress } from "../domain/session/preview.ts";
import {
  parseIssuer,
  type GithubSettings,
  type OidcGroups,
  type OidcSettings,
  type SignInSettings,
} from "../domain/person/sign-in.ts";
import { parseOtlpHeaders } from "../domain/service/otlp-headers.ts";
import { type RegistryLocation, readRegistryLocation } from "../domain/environment/registry-reference.ts";
import type { TerminalUsers } from "../domain/session/terminal.ts";
import { parseTierCaps, type Tier, type TierCaps } from "../domain/person/tier.ts";
import { readCluster } from "./cluster-config.ts";
import { readDatabaseAddress } from "./database-address.ts";
import {
  type GatewaySettings,
  readDefaultModels,
  readGateway,
  readTurns,
  type TurnSettings,
} from "./model-config.ts";
import { MINUTE } from "./setting.ts";
import { type Environment, SettingReader } from "./setting-reader.ts";
import { type NamesOf, type ProviderName, SETTINGS } from "./settings.ts";
import { unknownSettings } from "./unknown-settings.ts";

export interface Config extends TurnSettings {
  readonly saveTimeoutMs: number;
  readonly saveEveryMs: number;
  /** How much of this node's disk saved work may use. */
  readonly savesProjectBytes: number;
  readonly savesSessionBytes: number;
  readonly host: string;
  readonly port: number;
  /** `{base_url}` as senders and people see it. If null, it follows from host and port. */
  readonly publicUrl: string | null;
  /** What the page calls the installation. */
  readonly name: string;
  /** The picture before it. */
  readonly logoFile: string | null;
  /** Where browsers reach ports of sandboxes. Null means below `localhost`, on the service's own port. */
  readonly previewUrl: PreviewAddress | null;
  readonly dataDir: string;
  /** An external Postgres. Null means the embedded one in the data directory. */
  readonly databaseUrl: string | null;
  /** Where this node's runner listens for the other nodes: loopback or a private address. Port 0: any free one. */
  readonly nodeHost: string;
  readonly nodePort: number;
  /** The API port as the other nodes reach it. If null, it follows from host and port. */
  readonly nodeUrl: string | null;
  readonly bootstrapToken: string | null;
  readonly masterKey: string | null;
  readonly sandboxProvider: ProviderName;
  /** The path of gVisor's program. Null means the one on the PATH. */
  readonly runsc: string | null;
  readonly docker: {
    /** The engine's unix socket. */
    readonly socket: string;
    /** Null means the engine's default. */
    readonly runtime: string | null;
  };
  /** If null, another provider is chosen. */
  readonly kubernetes: KubernetesSettings | null;
  /** `auto`: the strongest form of `local` that works on this machine. */
  readonly localForm: "auto" | "bubblewrap" | "namespaces";
  readonly warmMemoryMb: number;
  readonly sandboxMemoryMb: number;
  readonly sandboxCpus: number;
  readonly sandboxProcesses: number;
  readonly sandboxDiskMb: number;
  /** If null, the service decides. */
  readonly imagesDir: string | null;
  readonly builder: "buildah" | "none";
  readonly buildsAtOnce: number;
  readonly buildTimeoutMs: number;
  readonly buildMemoryMb: number;
  readonly buildDiskMb: number;
  readonly imagesMaxMb: number;
  readonly environmentRefreshMs: number;
  readonly environmentBasesMs: number;
  /** Where images are pushed for a cluster. Null means nowhere. */
  readonly imageRegistry: (RegistryLocation & { readonly authFile: string | null }) | null;
  readonly packages: {
    /** What package files may use on the disk. 0: there is no cache, because it is off or no registry is named. */
    readonly cacheMb: number;
    /** Without a slash at the end. */
    readonly npm: string | null;
    readonly pypi: string | null;
    /** The hosts of both, which the operator trusts by naming them. In lower case, IPv6 addresses without brackets. */
    readonly allowHosts: readonly string[];
  };
  /** What projects may choose. The first one is PLATFORM_AGENT_ADAPTER's. */
  readonly runtimes: OfferedRuntimes;
  readonly terminals: TerminalUsers;
  readonly egressAllow: readonly string[];
  readonly importRoots: readonly string[];
  readonly gitAllowHosts: readonly string[];
  readonly trustedProxies: TrustedProxies;
  readonly webhookAllowHosts: readonly string[];
  readonly connectorAllowHosts: readonly string[];
  readonly tierCaps: TierCaps;
  readonly defaultTier: Tier;
  readonly llm: GatewaySettings | null;
  /** Default models by provider, including the gateway's. */
  readonly defaultModels: DefaultModels;
  /** Loopback port of the page that shows live actors. Null means no inspection. */
  readonly inspectPort: number | null;
  /** Loopback port of the metrics. Null if none are kept. */
  readonly metricsPort: number | null;
  /** Where traces go. Null means nowhere. */
  readonly otlp: {
    readonly endpoint: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly serviceName: string;
  } | null;
  /** The search path for programs: PATH. */
  readonly path: string;
  /** How many sandboxes may boot at a time on this node. */
  readonly bootsAtOnce: number;
  /** How many API requests may be under way at a time. */
  readonly requestsAtOnce: number;
  readonly bootTimeoutMs: number;
  readonly queueTtlMs: number;
  readonly queueMax: number;
  readonly cloneCredentialTtlMs: number;
  readonly schedulerIntervalMs: number;
  readonly manifestSyncMs: number;
  readonly catchupWindowMs: number;
  readonly fireRetentionMs: number;
  readonly auditRetentionMs: number;
  readonly actorIdleMs: number;
  readonly recoveryIntervalMs: number;
  readonly idleTimeoutMs: number;
  /** When a resting session makes room for a person's request. Null if never. */
  readonly makeRoomAfterMs: number | null;
  /** How long a request of an agent waits for its answer. */
  readonly requestTtlMs: number;
  readonly nodeGraceMs: number;
  readonly sandboxOrphanMs: number;
  readonly setupTimeoutMs: number;
  readonly signIn: SignInSettings;
  /** The way to people's mailboxes. Null if the service sends no mail. */
  readonly mail: MailSettings | null;
  /** A sentence for each name that is set but is not a setting. */
  readonly unknownSettings: readonly string[];
}

/** The service does not start: one line for each wrong setting. */
export class ConfigError extends Schema.TaggedError<ConfigError>()("ConfigError", {
  problems: Schema.Array(Schema.String),
}) {
  override get message(): string {
    return `The service cannot start with these settings:\n${this.problems.map((line) => `  - ${line}`).join("\n")}`;
  }
}

export type { Environment };

/** Where images are pushed, with the file of its credentials. */
const readImageRegistry = (
  read: Reader,
  locate: (file: string | null) => string | null,
): Config["imageRegistry"] => {
  const location = read.parsed("PLATFORM_IMAGE_REGISTRY", readRegistryLocation);
  const authFile = locate(read.text("PLATFORM_IMAGE_REGISTRY_AUTH"));
  return location === null ? null : { ...location, authFile };
};

/** Where images of environments are pushed, and after which times environments are looked at again. */
const readEnvironments = (read: Reader, locate: (file: string | null) => string | null) => ({
  imageRegistry: readImageRegistry(read, locate),
  environmentRefreshMs: read.duration("PLATFORM_ENVIRONMENT_REFRESH_MS"),
  environmentBasesMs: read.duration("PLATFORM_ENVIRONMENT_BASES_MS"),
});

/** How the page names and shows the installation. */
const readLook = (read: Reader, locate: (file: string | null) => string | null) => ({
  name: read.parsed("PLATFORM_NAME", parseInstallationName),
  logoFile: locate(read.text("PLATFORM_LOGO")),
});

const readIdle = (read: SettingReader): Pick<Config, "idleTimeoutMs" | "makeRoomAfterMs"> => ({
  idleTimeoutMs: read.duration("PLATFORM_IDLE_TIMEOUT_MS"),
  makeRoomAfterMs: read.integer("PLATFORM_MAKE_ROOM_AFTER_MINUTES") * MINUTE || null,
});

const readSaving = (read: SettingReader) => ({
  saveTimeoutMs: read.duration("PLATFORM_SAVE_TIMEOUT_MS"),
  saveEveryMs: read.duration("PLATFORM_SAVE_EVERY_MS"),
  savesProjectBytes: read.integer("PLATFORM_SAVES_PROJECT_BYTES"),
  savesSessionBytes: read.integer("PLATFORM_SAVES_SESSION_BYTES"),
});

/**
 * Reads all settings. A setting that is absent or empty has its default.
 *
 * @throws ConfigError with all problems together.
 */
export function readConfig(environment: Environment, workingDirectory: string): Config {
  const read = new Reader(environment);
  const locate = (file: string | null) => (file === null ? null : path.resolve(workingDirectory, file));
  const config: Config = {
    host: read.text("PLATFORM_HOST"),
    port: read.integer("PLATFORM_PORT"),
    publicUrl: read.origin("PLATFORM_PUBLIC_URL"),
    ...readLook(read, locate),
    previewUrl: read.parsed("PLATFORM_PREVIEW_URL", parsePreviewUrl),
    dataDir: path.resolve(workingDirectory, read.text("PLATFORM_DATA_DIR")),
    databaseUrl: read.databaseUrl(environment),
    nodeHost: read.parsed("PLATFORM_NODE_HOST", parseNodeHost),
    nodePort: read.integer("PLATFORM_NODE_PORT"),
    nodeUrl: read.parsed("PLATFORM_NODE_URL", parseNodeUrl),
    bootstrapToken: read.bootstrapToken(),
    masterKey: read.text("PLATFORM_MASTER_KEY"),
    ...read.providers(locate),
    warmMemoryMb: read.integer("PLATFORM_WARM_MEMORY_MB"),
    sandboxMemoryMb: read.integer("PLATFORM_SANDBOX_MEMORY_MB"),
    sandboxCpus: read.integer("PLATFORM_SANDBOX_CPUS"),
    sandboxProcesses: read.integer("PLATFORM_SANDBOX_PROCESSES"),
    sandboxDiskMb: read.integer("PLATFORM_SANDBOX_DISK_MB"),
    imagesDir: locate(read.text("PLATFORM_IMAGES_DIR")),
    builder: read.choice("PLATFORM_BUILDER"),
    buildsAtOnce: read.integer("PLATFORM_BUILDS_AT_ONCE"),
    buildTimeoutMs: read.duration("PLATFORM_BUILD_TIMEOUT_MS"),
    buildMemoryMb: read.integer("PLATFORM_BUILD_MEMORY_MB"),
    buildDiskMb: read.integer("PLATFORM_BUILD_DISK_MB"),
    imagesMaxMb: read.integer("PLATFORM_IMAGES_MAX_MB"),
    ...readEnvironments(read, locate),
    runtimes: read.runtimes(),
    terminals: read.choice("PLATFORM_TERMINALS"),
    egressAllow: read.hostList("PLATFORM_EGRESS_ALLOW"),
    importRoots: read.list("PLATFORM_IMPORT_ROOTS").map((root) => path.resolve(untilde(root))),
    gitAllowHosts: read.hostList("PLATFORM_GIT_ALLOW_HOSTS"),
    ...read.hosts(),
    tierCaps: read.parsed("PLATFORM_TIER_CAPS", parseTierCaps),
    defaultTier: read.choice("PLATFORM_DEFAULT_TIER"),
    llm: readGateway(read),
    defaultModels: readDefaultModels(read),
    inspectPort: read.integer("PLATFORM_INSPECT_PORT"),
    ...read.telemetry(),
    path: environment["PATH"] || "/usr/local/bin:/usr/bin:/bin",
    bootsAtOnce: read.integer("PLATFORM_BOOTS_AT_ONCE"),
    requestsAtOnce: read.integer("PLATFORM_REQUESTS_AT_ONCE"),
    bootTimeoutMs: read.duration("PLATFORM_BOOT_TIMEOUT_MS"),
    queueTtlMs: read.duration("PLATFORM_QUEUE_TTL_MS"),
    queueMax: read.integer("PLATFORM_QUEUE_MAX"),
    cloneCredentialTtlMs: read.duration("PLATFORM_CLONE_CREDENTIAL_TTL_MS"),
    schedulerIntervalMs: read.duration("PLATFORM_TRIGGER_SCHEDULER_INTERVAL_MS"),
    manifestSyncMs: read.duration("PLATFORM_MANIFEST_SYNC_MS"),
    catchupWindowMs: read.duration("PLATFORM_CATCHUP_WINDOW_MS"),
    auditRetentionMs: read.duration("PLATFORM_AUDIT_RETENTION_MS"),
    fireRetentionMs: read.duration("PLATFORM_FIRE_RETENTION_MS"),
    actorIdleMs: read.duration("PLATFORM_ACTOR_IDLE_MS"),
    recoveryIntervalMs: read.duration("PLATFORM_RECOVERY_INTERVAL_MS"),
    ...readIdle(read),
    ...readTurns(read),
    ...readSaving(read),
    requestTtlMs: read.duration("PLATFORM_REQUEST_TTL_MS"),
    nodeGraceMs: read.duration("PLATFORM_NODE_GRACE_MS"),
    sandboxOrphanMs: read.duration("PLATFORM_SANDBOX_ORPHAN_MS"),
    setupTimeoutMs: read.duration("PLATFORM_SETUP_TIMEOUT_MS"),
    signIn: read.signIn(workingDirectory),
    mail: read.mail(),
    unknownSettings: unknownSettings(environment),
  };
  if (read.problems.length > 0) throw new ConfigError({ problems: read.problems });
  return config;
}

const untilde = (file: string): string =>
  file.startsWith("~/") ? path.join(homedir(), file.slice(2)) : file;

/** The command of PLATFORM_AGENT_ADAPTER=acp, if none is given. */
const ACP_COMMAND = "opencode acp";

class Reader extends SettingReader {
  /** The installation's own runtime, and those that projects may choose as well. */
  runtimes(): OfferedRuntimes {
    const adapter = this.choice("PLATFORM_AGENT_ADAPTER");
    const setting = this.given("PLATFORM_AGENT_COMMAND");
    const command = setting ?? (adapter === "acp" ? ACP_COMMAND : SETTINGS.PLATFORM_AGENT_COMMAND.fallback);
    const installedRuntimes = this.parsed("PLATFORM_AGENT_RUNTIMES", parseInstallable);
    return offeredRuntimes({ adapter, command: command.split(/\s+/) }, installedRuntimes);
  }

  /** What isolates sandboxes. */
  providers(
    locate: (file: string | null) => string | null,
  ): Pick<Config, "sandboxProvider" | "runsc" | "docker" | "kubernetes" | "localForm"> {
    const sandboxProvider = this.choice("PLATFORM_SANDBOX_PROVIDER");
    const socket = this.text("PLATFORM_DOCKER_SOCKET");
    const runtime = this.text("PLATFORM_DOCKER_RUNTIME");
    return {
      sandboxProvider,
      runsc: locate(this.text("PLATFORM_RUNSC")),
      docker: { socket, runtime },
      kubernetes: readCluster(this, sandboxProvider, locate(this.text("PLATFORM_KUBERNETES_CONFIG"))),
      localForm: this.choice("PLATFORM_LOCAL_FORM"),
    };
  }

  /** A registry's credentials would be read by every sandbox, so its URL has none. */
  packages(): Config["packages"] {
    const source = (name: NamesOf<"url">) => {
      const url = this.url(name);
      const problem = url === null ? null : wrongSource(url);
      // A URL with a password is not shown.
      if (problem !== null) this.addProblem(`${name} ${problem}`);
      return url;
    };
    const npm = source("PLATFORM_PACKAGE_CACHE_NPM");
    const pypi = source("PLATFORM_PACKAGE_CACHE_PYPI");
    const cacheMb = npm === null && pypi === null ? 0 : this.integer("PLATFORM_PACKAGE_CACHE_MB");
    return { cacheMb, npm, pypi, allowHosts: sourceHosts([npm, pypi]) };
  }

  /** Hosts that are trusted more than others, and registries. */
  hosts(): Pick<Config, "trustedProxies" | "webhookAllowHosts" | "connectorAllowHosts" | "packages"> {
    return {
      packages: this.packages(),
      trustedProxies: this.parsed("PLATFORM_TRUSTED_PROXIES", parseTrustedProxies),
      webhookAllowHosts: this.hostList("PLATFORM_WEBHOOK_ALLOW_HOSTS"),
      connectorAllowHosts: this.hostList("PLATFORM_CONNECTOR_ALLOW_HOSTS"),
    };
  }

  /** Traces are sent if the collector's address is set. */
  telemetry(): Pick<Config, "metricsPort" | "otlp"> {
    const metricsPort = this.integer("PLATFORM_METRICS_PORT");
    const endpoint = this.url("OTEL_EXPORTER_OTLP_ENDPOINT");
    const name = "OTEL_EXPORTER_OTLP_HEADERS";
    const headers = parseOtlpHeaders(this.given(name) ?? "");
    // The value may be a credential, and the refusal is read by many.
    if (Result.isFailure(headers)) this.problem(name, "(hidden)", headers.failure);
    const serviceName = this.text("OTEL_SERVICE_NAME");
    if (endpoint === null || Result.isFailure(headers)) return { metricsPort, otlp: null };
    return { metricsPort, otlp: { endpoint, headers: headers.success, serviceName } };
  }

  /** A token of another form would be refused by every request, and no other one would exist. */
  bootstrapToken(): string | null {
    const name = "PLATFORM_BOOTSTRAP_TOKEN";
    const token = this.text(name);
    if (token === null || tokenKind(token) === "pat") return token;
    this.problem(name, "(hidden)", "platform_pat_ and 27 to 128 letters, digits, _ or -");
    return null;
  }

  /** The value may contain a password, so only its scheme is shown. */
  databaseUrl(environment: Environment): string | null {
    const name = "DATABASE_URL";
    const url = this.text(name);
    if (url === null) return null;
    const address = readDatabaseAddress(url, environment);
    if (Result.isSuccess(address)) return address.success;
    const [scheme] = /^[a-z][a-z0-9+.-]*:\/\//i.exec(url) ?? [];
    this.problem(name, scheme === undefined ? "(hidden)" : `${scheme}…`, address.failure);
    return null;
  }

  /** The claim and the groups count only together. */
  #groups(): OidcGroups | null {
    const allowedGroups = this.list("PLATFORM_OIDC_ALLOWED_GROUPS");
    const set = this.together({
      PLATFORM_OIDC_GROUPS_CLAIM: this.text("PLATFORM_OIDC_GROUPS_CLAIM"),
      PLATFORM_OIDC_ALLOWED_GROUPS: allowedGroups.length === 0 ? null : allowedGroups.join(","),
    });
    return set && { claim: set.PLATFORM_OIDC_GROUPS_CLAIM, allowed: allowedGroups };
  }

  #oidc(workingDirectory: string): OidcSettings | null {
    const domains = this.list("PLATFORM_OIDC_ALLOWED_DOMAINS");
    const groups = this.#groups();
    const set = this.together({
      PLATFORM_OIDC_ISSUER: this.parsed("PLATFORM_OIDC_ISSUER", parseIssuer),
      PLATFORM_OIDC_CLIENT_ID: this.text("PLATFORM_OIDC_CLIENT_ID"),
      PLATFORM_OIDC_CLIENT_SECRET_FILE: this.text("PLATFORM_OIDC_CLIENT_SECRET_FILE"),
    });
    return (
      set && {
        issuer: set.PLATFORM_OIDC_ISSUER,
        clientId: set.PLATFORM_OIDC_CLIENT_ID,
        secretFile: path.resolve(workingDirectory, set.PLATFORM_OIDC_CLIENT_SECRET_FILE ?? ""),
        allowedDomains: domains.map((domain) => domain.toLowerCase()),
        groups,
        ...(this.choice("PLATFORM_OIDC_EMAIL_VERIFIED") === "always" && { trustsAddresses: true }),
      }
    );
  }

  #github(workingDirectory: string): GithubSettings | null {
    const organization = this.text("PLATFORM_GITHUB_LOGIN_ORG");
    const set = this.together({
      PLATFORM_GITHUB_LOGIN_CLIENT_ID: this.text("PLATFORM_GITHUB_LOGIN_CLIENT_ID"),
      PLATFORM_GITHUB_LOGIN_SECRET_FILE: this.text("PLATFORM_GITHUB_LOGIN_SECRET_FILE"),
    });
    return (
      set && {
        clientId: set.PLATFORM_GITHUB_LOGIN_CLIENT_ID,
        secretFile: path.resolve(workingDirectory, set.PLATFORM_GITHUB_LOGIN_SECRET_FILE ?? ""),
        organization,
      }
    );
  }

  /** The value may contain a password, so it is not shown. */
  mail(): MailSettings | null {
    const name = "PLATFORM_SMTP_URL";
    const url = this.text(name);
    const server = url === null ? null : parseMailServer(url);
    if (server !== null && Result.isFailure(server)) this.problem(name, "(hidden)", server.failure);
    const set = this.together({
      [name]: url,
      PLATFORM_MAIL_FROM: this.parsed("PLATFORM_MAIL_FROM", parseMailFrom),
    });
    if (set === null || server === null || Result.isFailure(server)) return null;
    return { server: server.success, from: set.PLATFORM_MAIL_FROM };
  }

  /** A provider that is set in part, or that would let everybody sign up, stops the start. */
  signIn(workingDirectory: string): SignInSettings {
    const [oidc, github] = [this.#oidc(workingDirectory), this.#github(workingDirectory)];
    const signUp = this.choice("PLATFORM_SIGN_UP");
    const isOidcLimited = (oidc?.allowedDomains.length ?? 0) > 0 || (oidc?.groups ?? null) !== null;
    const isLimited = isOidcLimited || (github?.organization ?? null) !== null;
    if (signUp === "allowed" && !isLimited) {
      this.addProblem(
        `PLATFORM_SIGN_UP is "${signUp}"; expected also PLATFORM_OIDC_ALLOWED_DOMAINS or _ALLOWED_GROUPS with their provider, or PLATFORM_GITHUB_LOGIN_ORG with its own`,
      );
    }
    return { oidc, github, signUp, tokenSignInMs: this.duration("PLATFORM_TOKEN_SIGN_IN_MS") };
  }
}
