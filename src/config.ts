/**
 * The only reader of the environment: every setting of the service, its default and the reason. An invalid value
 * refuses the start; the message names the setting, the value and the expected form (api.md 9).
 */
import { availableParallelism, homedir } from "node:os";
import path from "node:path";
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { GATEWAY_PROVIDER, parseDefaultModels, parseModelId, type DefaultModels } from "./domain/model.ts";
import { parseNodeHost, parseNodeUrl } from "./domain/node.ts";
import { parsePreviewUrl, type PreviewAddress } from "./domain/preview.ts";
import {
  DEFAULT_TIER_CAPS,
  parseTierCaps,
  parseTierList,
  type Tier,
  type TierCaps,
  TIERS,
} from "./domain/tier.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const BOOTS_PER_CORE = 4;

export interface Config {
  readonly host: string;
  readonly port: number;
  /** `{base_url}` as senders and people see it. Null: from host and port. */
  readonly publicUrl: string | null;
  /** Where browsers reach ports of sandboxes. Null: below `localhost`, on the service's own port. */
  readonly previewUrl: PreviewAddress | null;
  readonly dataDir: string;
  /** An external Postgres. Null: the embedded one in the data directory. */
  readonly databaseUrl: string | null;
  /** Where this node's runner listens for the other nodes: loopback or a private address. Port 0: any free one. */
  readonly nodeHost: string;
  readonly nodePort: number;
  /** The API port as the other nodes reach it. Null: from host and port. */
  readonly nodeUrl: string | null;
  readonly bootstrapToken: string | null;
  readonly masterKey: string | null;
  readonly sandboxProvider: "auto" | "local" | "simulated";
  /** `auto`: the strongest form of `local` that works on this machine. */
  readonly localForm: "auto" | "bubblewrap" | "namespaces";
  readonly agentCommand: readonly string[];
  readonly agentAdapter: "opencode" | "plain";
  readonly egressAllow: readonly string[];
  readonly importRoots: readonly string[];
  readonly gitAllowHosts: readonly string[];
  readonly tierCaps: TierCaps;
  readonly defaultTier: Tier;
  readonly llm: {
    readonly baseUrl: string;
    readonly apiKey: string;
    readonly tiers: readonly string[];
  } | null;
  /** Default models by provider, including the gateway's. */
  readonly defaultModels: DefaultModels;
  /** Loopback port of the page that shows live actors. Null: no inspection. */
  readonly inspectPort: number | null;
  /** The search path for programs: PATH. */
  readonly path: string;
  /** How many sandboxes may boot at once on this node. */
  readonly bootsAtOnce: number;
  /** How many API requests may be under way at once. */
  readonly requestsAtOnce: number;
  readonly bootTimeoutMs: number;
  readonly queueTtlMs: number;
  readonly queueMax: number;
  readonly cloneCredentialTtlMs: number;
  readonly schedulerIntervalMs: number;
  readonly manifestSyncMs: number;
  readonly catchupWindowMs: number;
  readonly fireRetentionMs: number;
  readonly actorIdleMs: number;
  readonly recoveryIntervalMs: number;
  readonly idleTimeoutMs: number;
  readonly maxTurnMs: number;
  readonly saveTimeoutMs: number;
  readonly nodeGraceMs: number;
  readonly sandboxOrphanMs: number;
}

/** The start is refused, with one line for each wrong setting. */
export class ConfigError extends Schema.TaggedError<ConfigError>()("ConfigError", {
  problems: Schema.Array(Schema.String),
}) {
  override get message(): string {
    return `The service cannot start with these settings:\n${this.problems.map((line) => `  - ${line}`).join("\n")}`;
  }
}

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads all settings. A value that is absent or empty takes its default.
 *
 * @throws ConfigError with every problem at once.
 */
export function readConfig(environment: Environment, workingDirectory: string): Config {
  const read = new Reader(environment);
  const host = read.text("PLATFORM_HOST") ?? "127.0.0.1";
  const port = read.integer("PLATFORM_PORT", { fallback: 8080, min: 0, max: 65_535 });
  const config: Config = {
    host,
    port,
    publicUrl: read.url("PLATFORM_PUBLIC_URL"),
    previewUrl: read.parsed("PLATFORM_PREVIEW_URL", parsePreviewUrl),
    dataDir: path.resolve(workingDirectory, read.text("PLATFORM_DATA_DIR") ?? ".platform-data"),
    databaseUrl: read.text("DATABASE_URL"),
    // The runner trusts every peer on its port, so the address must never be reachable by strangers.
    nodeHost: read.parsed("PLATFORM_NODE_HOST", parseNodeHost) ?? "127.0.0.1",
    nodePort: read.integer("PLATFORM_NODE_PORT", { fallback: 0, min: 0, max: 65_535 }),
    nodeUrl: read.parsed("PLATFORM_NODE_URL", parseNodeUrl),
    bootstrapToken: read.text("PLATFORM_BOOTSTRAP_TOKEN"),
    masterKey: read.text("PLATFORM_MASTER_KEY"),
    sandboxProvider: read.oneOf("PLATFORM_SANDBOX_PROVIDER", ["auto", "local", "simulated"]),
    localForm: read.oneOf("PLATFORM_LOCAL_FORM", ["auto", "bubblewrap", "namespaces"]),
    agentCommand: (
      read.text("PLATFORM_AGENT_COMMAND") ?? "opencode serve --hostname 127.0.0.1 --port 4096"
    ).split(/\s+/),
    agentAdapter: read.oneOf("PLATFORM_AGENT_ADAPTER", ["opencode", "plain"]),
    egressAllow: read.list("PLATFORM_EGRESS_ALLOW", ","),
    importRoots: read
      .list("PLATFORM_IMPORT_ROOTS", path.delimiter)
      .map((root) => path.resolve(untilde(root))),
    gitAllowHosts: read.list("PLATFORM_GIT_ALLOW_HOSTS", ","),
    tierCaps: read.parsed("PLATFORM_TIER_CAPS", parseTierCaps) ?? DEFAULT_TIER_CAPS,
    defaultTier: read.oneOf("PLATFORM_DEFAULT_TIER", TIERS),
    llm: read.gateway(),
    defaultModels: read.models(),
    inspectPort:
      read.text("PLATFORM_INSPECT_PORT") === null
        ? null
        : read.integer("PLATFORM_INSPECT_PORT", { fallback: 0, min: 0, max: 65_535 }),
    path: read.text("PATH") ?? "/usr/local/bin:/usr/bin:/bin",
    // More at once would not finish sooner: a clone and the start of an agent runtime keep a core busy for a second or
    // two.
    bootsAtOnce: read.integer("PLATFORM_BOOTS_AT_ONCE", {
      fallback: BOOTS_PER_CORE * availableParallelism(),
      min: 1,
      max: 10_000,
    }),
    // A quarter of a second of work for one core. On an overloaded machine it is some seconds, for which a client
    // waits.
    requestsAtOnce: read.integer("PLATFORM_REQUESTS_AT_ONCE", { fallback: 256, min: 1, max: 100_000 }),
    // A boot that takes longer has hung, and its user should know (api.md 3).
    bootTimeoutMs: read.duration("PLATFORM_BOOT_TIMEOUT_MS", 2 * MINUTE),
    queueTtlMs: read.duration("PLATFORM_QUEUE_TTL_MS", DAY),
    queueMax: read.integer("PLATFORM_QUEUE_MAX", { fallback: 10_000, min: 1, max: 10_000_000 }),
    cloneCredentialTtlMs: read.duration("PLATFORM_CLONE_CREDENTIAL_TTL_MS", HOUR),
    // Exact timers fire the instants. The poll only notices changes whose signal was lost (spec 6).
    schedulerIntervalMs: read.duration("PLATFORM_TRIGGER_SCHEDULER_INTERVAL_MS", MINUTE),
    // Merges and pushes are read at once. This notices branches that moved from outside.
    manifestSyncMs: read.duration("PLATFORM_MANIFEST_SYNC_MS", MINUTE),
    // After a longer downtime, the next instant had better do the work.
    catchupWindowMs: read.duration("PLATFORM_CATCHUP_WINDOW_MS", HOUR),
    // Rows identify delivery ids for a day (api.md 4): a shorter time would fire a repeated delivery twice.
    fireRetentionMs: read.duration("PLATFORM_FIRE_RETENTION_MS", 30 * DAY, DAY),
    // Long enough for a session's next message to find its actor in memory, short enough for memory to follow the load.
    actorIdleMs: read.duration("PLATFORM_ACTOR_IDLE_MS", MINUTE),
    // A free slot is offered to the queue within this time, even if its signal was lost.
    recoveryIntervalMs: read.duration("PLATFORM_RECOVERY_INTERVAL_MS", 5 * SECOND),
    // Long enough for a person to return from a break, short enough not to keep unused sandboxes.
    idleTimeoutMs: read.duration("PLATFORM_IDLE_TIMEOUT_MS", 15 * MINUTE),
    // Longer than any useful turn.
    maxTurnMs: read.duration("PLATFORM_MAX_TURN_MS", 4 * HOUR),
    // A request to stop a session waits for the save.
    saveTimeoutMs: read.duration("PLATFORM_SAVE_TIMEOUT_MS", 20 * SECOND),
    // A node that restarts within this time finds its sandboxes and continues with them.
    nodeGraceMs: read.duration("PLATFORM_NODE_GRACE_MS", MINUTE),
    // Longer than a repair of the service takes: sandboxes that run meanwhile are found again.
    sandboxOrphanMs: read.duration("PLATFORM_SANDBOX_ORPHAN_MS", DAY),
  };
  read.refuseProblems();
  return config;
}

const untilde = (file: string): string =>
  file.startsWith("~/") ? path.join(homedir(), file.slice(2)) : file;

/** One year. A longer interval is a mistake in the unit. */
const LONGEST_MS = 365 * DAY;

class Reader {
  readonly #environment: Environment;
  readonly #problems: string[] = [];

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  problem(name: string, value: string, expected: string): void {
    this.#problems.push(`${name} is ${JSON.stringify(value)}; expected ${expected}`);
  }

  refuseProblems(): void {
    if (this.#problems.length > 0) throw new ConfigError({ problems: this.#problems });
  }

  text(name: string): string | null {
    const value = this.#environment[name];
    return value === undefined || value === "" ? null : value;
  }

  list(name: string, separator: string): readonly string[] {
    return (this.text(name) ?? "")
      .split(separator)
      .map((item) => item.trim())
      .filter((item) => item !== "");
  }

  integer(
    name: string,
    range: { readonly fallback: number; readonly min: number; readonly max: number },
  ): number {
    const text = this.text(name);
    if (text === null) return range.fallback;
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= range.min && value <= range.max) return value;
    this.problem(name, text, `a whole number from ${range.min} to ${range.max}`);
    return range.fallback;
  }

  /** Milliseconds, at least 1 unless another bound is given, and at most a year (threats.md C21). */
  duration(name: string, fallback: number, min = 1): number {
    return this.integer(name, { fallback, min, max: LONGEST_MS });
  }

  /** The first of `values` is the default. */
  oneOf<const Values extends readonly [string, ...string[]]>(name: string, values: Values): Values[number] {
    const text = this.text(name);
    if (text === null) return values[0];
    const value = values.find((candidate) => candidate === text);
    if (value !== undefined) return value;
    this.problem(name, text, `one of ${values.join(", ")}`);
    return values[0];
  }

  url(name: string): string | null {
    const text = this.text(name);
    if (text === null) return null;
    const url = URL.parse(text);
    if (url !== null && (url.protocol === "http:" || url.protocol === "https:"))
      return text.replace(/\/+$/, "");
    this.problem(name, text, "an http or https URL");
    return null;
  }

  /** The value as the domain's parser reads it. Null if it is absent or invalid. */
  parsed<A>(name: string, parse: (text: string) => Result.Result<A, string>): A | null {
    const text = this.text(name);
    if (text === null) return null;
    const result = parse(text);
    if (Result.isSuccess(result)) return result.success;
    this.problem(name, text, result.failure);
    return null;
  }

  /** The managed gateway is on if its URL is set. Its tiers are a JSON list, empty by default. */
  gateway(): Config["llm"] {
    const baseUrl = this.url("PLATFORM_LLM_BASE_URL");
    if (baseUrl === null) return null;
    const tiers = this.parsed("PLATFORM_LLM_TIERS", parseTierList) ?? [];
    return { baseUrl, apiKey: this.text("PLATFORM_LLM_API_KEY") ?? "", tiers };
  }

  /**
   * PLATFORM_LLM_MODEL sets the gateway's model. PLATFORM_DEFAULT_MODELS sets those of providers whose key is a secret.
   */
  models(): DefaultModels {
    const models = this.parsed("PLATFORM_DEFAULT_MODELS", parseDefaultModels) ?? {};
    const gateway = this.parsed("PLATFORM_LLM_MODEL", parseModelId);
    return gateway === null ? models : { ...models, [GATEWAY_PROVIDER]: gateway };
  }
}
