/**
 * Every setting of the service: its name, kind, default and description. `config.ts` reads the environment by these
 * definitions, and `npm run docs` writes docs/operate/settings.md from them, so a setting is defined and documented once.
 */
import { availableParallelism } from "node:os";
import { INSTALLABLE_EXPECTED, INSTALLABLE_NAMES } from "../domain/runtimes/runtimes.ts";
import { AGENT_ADAPTERS } from "../domain/runtimes/runtime.ts";
import { DEFAULT_GATEWAY_MODEL } from "../domain/sandbox/model.ts";
import { ENVIRONMENT_SETTINGS } from "./environment-settings.ts";
import { KUBERNETES_SETTINGS } from "./kubernetes-settings.ts";
import { MAIL_SETTINGS } from "./mail-settings.ts";
import { PROVIDER_SETTINGS } from "./provider-settings.ts";
import { SIGN_IN_SETTINGS } from "./sign-in-settings.ts";
import { SANDBOX_LIMIT_SETTINGS } from "./sandbox-settings.ts";
import { SAVE_SETTINGS } from "./save-settings.ts";
import { DAY, define, duration, HOUR, MINUTE, SECOND, type Setting } from "./setting.ts";
import { TERMINAL_USERS } from "../domain/session/terminal.ts";
import { DEFAULT_TIER_CAPS, TIERS } from "../domain/person/tier.ts";

const BOOTS_PER_CORE = 4;

export const SETTINGS = define({
  PLATFORM_HOST: {
    group: "Addresses",
    kind: "text",
    fallback: "127.0.0.1",
    about: "The address that the service listens on. With the default, other machines cannot reach it.",
  },
  PLATFORM_PORT: {
    group: "Addresses",
    kind: "integer",
    fallback: 8080,
    min: 0,
    max: 65_535,
    about: "The port that the service listens on. `0` takes any free port.",
  },
  PLATFORM_PUBLIC_URL: {
    group: "Addresses",
    kind: "url",
    fallback: null,
    shown: "`http://{host}:{port}`",
    about:
      "The address of the service as people and webhook senders see it, without a path. Links and webhook URLs begin with it.",
  },
  PLATFORM_NAME: {
    group: "Addresses",
    kind: "structured",
    fallback: "Platform",
    expects: "name of 1 to 40 characters in one line",
    about:
      "The name of the installation: at the top of its page and of the pages of a sign-in, in the title of the browser's tab, and where a connector's server asks a person for her consent.",
  },
  PLATFORM_LOGO: {
    group: "Addresses",
    kind: "text",
    fallback: null,
    about:
      "A file with an SVG or PNG picture of at most 64 KiB, which stands before the name at the top of the page and of the pages of a sign-in. It is read at the start.",
  },
  PLATFORM_PREVIEW_URL: {
    group: "Addresses",
    kind: "structured",
    fallback: null,
    expects: "http(s) URL whose host begins with `*.`",
    shown: "`http://*.localhost:{port}`",
    about:
      "Where browsers reach the ports of sandboxes, each on a host of its own, for example `https://*.preview.example.com`. " +
      "The default works only in a browser on the same machine. Use a domain that serves nothing else.",
  },
  PLATFORM_INSPECT_PORT: {
    group: "Addresses",
    kind: "integer",
    fallback: null,
    min: 0,
    max: 65_535,
    shown: "off",
    about:
      "Loopback port of a page that [shows live actors](inspect.md), also to Stately's inspector. Prompts and secrets are redacted. " +
      "`npm run inspect` uses 8090.",
  },
  PLATFORM_TRUSTED_PROXIES: {
    group: "Addresses",
    kind: "structured",
    fallback: "",
    expects: "IP addresses and CIDR blocks, separated by commas",
    shown: "none",
    about:
      "Your own reverse proxies. A client's address is read from `X-Forwarded-For` [only as far as these wrote it](sign-in.md#behind-a-proxy).",
  },
  PLATFORM_WEBHOOK_ALLOW_HOSTS: {
    group: "Addresses",
    kind: "hosts",
    wildcards: false,
    about:
      "Hosts of receivers of outbound webhooks that may have a private or loopback address, use plain http, or another port than 443.",
  },
  PLATFORM_DATA_DIR: {
    group: "Data and identity",
    kind: "text",
    fallback: ".platform-data",
    about:
      "Directory of the embedded database, hosted repositories, mirrors, the master key, and the ids of installation and node. " +
      "One service owns it. [Back it up](backup.md).",
  },
  DATABASE_URL: {
    group: "Data and identity",
    kind: "text",
    fallback: null,
    shown: "embedded Postgres",
    about:
      "A Postgres server, version 15 or newer, to use instead of the embedded one. Services that share it are nodes of one " +
      "service, and need `PLATFORM_MASTER_KEY`. [Its forms](install.md#the-address-of-the-database).",
  },
  PLATFORM_MASTER_KEY: {
    group: "Data and identity",
    kind: "text",
    fallback: null,
    shown: "made in the data directory",
    about:
      "The key that encrypts project secrets and from which session tokens derive. Without it, the stored secrets cannot be " +
      "read. A wrong key stops the start.",
  },
  PLATFORM_BOOTSTRAP_TOKEN: {
    group: "Data and identity",
    kind: "text",
    fallback: null,
    shown: "generated",
    about:
      "The first account's access token: `platform_pat_` and 43 characters. Set it if the first start has no terminal.",
  },
  ...SIGN_IN_SETTINGS,
  ...MAIL_SETTINGS,
  ...PROVIDER_SETTINGS,
  ...KUBERNETES_SETTINGS,
  ...SANDBOX_LIMIT_SETTINGS,
  ...ENVIRONMENT_SETTINGS,
  PLATFORM_AGENT_COMMAND: {
    group: "Sandboxes",
    kind: "text",
    fallback: "opencode serve --hostname 127.0.0.1 --port 4096",
    about:
      "The command that starts the agent runtime in a sandbox. With `PLATFORM_AGENT_ADAPTER=acp` the default is `opencode acp`.",
  },
  PLATFORM_AGENT_ADAPTER: {
    group: "Sandboxes",
    kind: "choice",
    values: AGENT_ADAPTERS,
    about:
      "How the daemon controls the agent runtime. `opencode` uses opencode's own API. `acp` works with any agent that speaks the " +
      "Agent Client Protocol over its standard input and output. `plain` works with any HTTP server, and has no conversation.",
  },
  PLATFORM_AGENT_RUNTIMES: {
    group: "Sandboxes",
    kind: "structured",
    fallback: "",
    expects: INSTALLABLE_EXPECTED,
    shown: "none",
    about:
      "Further [agent runtimes](runtimes.md) that projects may choose, whose programs you have added with `platform runtimes add`, or installed: " +
      `${INSTALLABLE_NAMES.map((name) => `\`${name}\``).join(", ")}, or \`acp:ID\` for an agent of a registry, separated by commas.`,
  },
  PLATFORM_EGRESS_ALLOW: {
    group: "Sandboxes",
    kind: "hosts",
    wildcards: true,
    about:
      "Hosts that every sandbox may reach. `*.example.org` allows all hosts below a domain, `*` allows every public host. " +
      "Private addresses are never allowed.",
  },
  PLATFORM_BOOTS_AT_ONCE: {
    group: "Sandboxes",
    kind: "integer",
    fallback: BOOTS_PER_CORE * availableParallelism(),
    min: 1,
    max: 10_000,
    shown: `${BOOTS_PER_CORE} for each core`,
    about:
      "How many sandboxes boot at the same time on a node. Other boots wait, and their boot timeout begins when they start. " +
      "More do not finish sooner: a clone and the start of an agent runtime keep a core busy for a second or two.",
  },
  PLATFORM_BOOT_TIMEOUT_MS: duration(
    "Sandboxes",
    2 * MINUTE,
    "How long a boot may take. After that the session is `failed` with `boot_timeout`.",
  ),
  PLATFORM_SETUP_TIMEOUT_MS: duration(
    "Sandboxes",
    10 * MINUTE,
    "How long a project's setup command may run. After that it is ended, and the agent begins and is told so.",
  ),
  PLATFORM_SANDBOX_ORPHAN_MS: duration(
    "Sandboxes",
    DAY,
    "A sandbox that hears nothing from its service for this long ends itself. The default is longer than a repair of the service takes.",
  ),
  PLATFORM_TERMINALS: {
    group: "Sessions",
    kind: "choice",
    values: TERMINAL_USERS,
    about:
      "Who may open a [terminal](../use/terminal.md) in the sandbox of a session: `members` of the project, only its `owners`, or " +
      "no one (`off`).",
  },
  PLATFORM_IDLE_TIMEOUT_MS: duration(
    "Sessions",
    15 * MINUTE,
    "A running session stops after this long without a request, without data from a client, and without an agent at work. " +
      "The default survives a coffee break.",
  ),
  PLATFORM_MAKE_ROOM_AFTER_MINUTES: {
    group: "Sessions",
    kind: "integer",
    fallback: 10,
    min: 0,
    max: 525_600,
    about:
      "If a person's request waits for a free session, the session of the account that has rested longest stops once it has rested for " +
      "this many minutes, [if it can](../use/queue.md#a-session-that-makes-room). `0` turns this off.",
  },
  ...SAVE_SETTINGS,
  PLATFORM_MAX_TURN_MS: duration(
    "Sessions",
    4 * HOUR,
    "An agent's turn that takes longer is ended, and says so. It no longer counts as work, so the session can become idle.",
  ),
  PLATFORM_MODEL_SILENCE_MS: duration(
    "Sessions",
    2 * MINUTE,
    "A turn is ended if a call of the model brings no text, thought, tool or usage for this long, or if opencode does not call the model for " +
      "this long. A connection that is only kept open brings nothing. While opencode receives the arguments of a tool, it is ten minutes. With a program of the Agent Client Protocol, a call through the " +
      "managed gateway or a provider of the account, the project or the person counts that brings no byte. Calls with a key in the sandbox are not seen there, and the limit is ten minutes.",
  ),
  PLATFORM_REQUEST_TTL_MS: duration(
    "Sessions",
    30 * MINUTE,
    "A question or permission of an agent that has no answer for this long is declined. The agent is told to decide by itself.",
  ),
  PLATFORM_ACTOR_IDLE_MS: duration(
    "Sessions",
    MINUTE,
    "How long an actor without work stays in memory. A shorter time saves memory; a longer one saves reads from the database.",
  ),
  PLATFORM_RECOVERY_INTERVAL_MS: duration(
    "Sessions",
    5 * SECOND,
    "How often the service looks for work that a lost message left undone, such as a free slot and a waiting fire.",
  ),
  PLATFORM_TRIGGER_SCHEDULER_INTERVAL_MS: duration(
    "Triggers",
    MINUTE,
    "How often the scheduler checks that every timer that rang was handled. Cron triggers do not wait for this poll: each has an exact timer.",
  ),
  PLATFORM_MANIFEST_SYNC_MS: duration(
    "Triggers",
    MINUTE,
    "How often the service asks whether default branches and the branches of open change requests moved. Pushes and merges " +
      "through the service are seen at once.",
  ),
  PLATFORM_CATCHUP_WINDOW_MS: duration(
    "Triggers",
    HOUR,
    "After a downtime, the newest missed instant of a cron trigger fires if it is not older than this. All other missed instants are recorded as skipped.",
  ),
  PLATFORM_FIRE_RETENTION_MS: {
    group: "Triggers",
    kind: "duration",
    fallback: 30 * DAY,
    min: DAY,
    about:
      "How long the ledger keeps fires. At least one day, because repeated deliveries are recognized by these rows.",
  },
  PLATFORM_AUDIT_RETENTION_MS: {
    group: "Data and identity",
    kind: "duration",
    fallback: 365 * DAY,
    min: DAY,
    about: "How long the audit record keeps who did what. At least one day.",
  },
  PLATFORM_QUEUE_TTL_MS: duration(
    "Triggers",
    DAY,
    "How long a fire may wait for a free slot. After that it is `expired`.",
  ),
  PLATFORM_QUEUE_MAX: {
    group: "Triggers",
    kind: "integer",
    fallback: 10_000,
    min: 1,
    max: 10_000_000,
    about: "How many fires of one account may wait. When the queue is full, a webhook gets 503 `queue_full`.",
  },
  PLATFORM_IMPORT_ROOTS: {
    group: "Git",
    kind: "list",
    separator: ":",
    about:
      "Directories below which `import_from` may be a local path. Without this setting, local imports are refused.",
  },
  PLATFORM_GIT_ALLOW_HOSTS: {
    group: "Git",
    kind: "hosts",
    wildcards: false,
    about: "Git servers that may have a private or loopback address, or use plain http.",
  },
  PLATFORM_CONNECTOR_ALLOW_HOSTS: {
    group: "Connectors",
    kind: "hosts",
    wildcards: false,
    about:
      "Servers of connectors and of model providers that may have a private or loopback address, or use plain http.",
  },
  PLATFORM_CLONE_CREDENTIAL_TTL_MS: duration(
    "Git",
    HOUR,
    "How long a sandbox's git password is valid. The daemon renews it at 80 % of this time. It always ends with the sandbox.",
  ),
  PLATFORM_LLM_BASE_URL: {
    group: "Models",
    kind: "url",
    fallback: null,
    about:
      "URL of a managed, OpenAI-compatible model gateway. Sandboxes reach it as `llm.platform.internal`.",
  },
  PLATFORM_LLM_API_KEY: {
    group: "Models",
    kind: "text",
    fallback: null,
    about: "The gateway's key.",
  },
  PLATFORM_LLM_TIERS: {
    group: "Models",
    kind: "structured",
    fallback: "[]",
    expects: "JSON array of tiers",
    about:
      "The tiers whose sessions may use the gateway. Without `PLATFORM_LLM_BASE_URL`, they have no effect.",
  },
  PLATFORM_LLM_MODEL: {
    group: "Models",
    kind: "structured",
    fallback: null,
    expects: "model id",
    shown: `\`${DEFAULT_GATEWAY_MODEL}\``,
    about:
      "The model that the gateway is asked for. A session can choose another one with `agent_model` `managed/<id>`.",
  },
  PLATFORM_DEFAULT_MODELS: {
    group: "Models",
    kind: "structured",
    fallback: null,
    expects: "JSON object from provider to model id",
    shown: "the table in `src/domain/sandbox/model.ts`",
    about:
      'The model for each provider, for example `{"anthropic": "claude-sonnet-4-6"}`. A session uses it if the project has ' +
      "that provider's key and names no model.",
  },
  PLATFORM_TIER_CAPS: {
    group: "Accounts and load",
    kind: "structured",
    fallback: JSON.stringify(DEFAULT_TIER_CAPS),
    expects: "JSON object from tier to number",
    about: "How many sessions of one account may be provisioning or running at the same time, by tier.",
  },
  PLATFORM_DEFAULT_TIER: {
    group: "Accounts and load",
    kind: "choice",
    values: TIERS,
    about: "The tier of a new account.",
  },
  PLATFORM_REQUESTS_AT_ONCE: {
    group: "Accounts and load",
    kind: "integer",
    fallback: 256,
    min: 1,
    max: 100_000,
    about:
      "How many API requests are processed at the same time. Further requests get 503 `busy` with `Retry-After` at once.",
  },
  PLATFORM_NODE_HOST: {
    group: "Several nodes",
    kind: "structured",
    fallback: "127.0.0.1",
    expects: "loopback or private IP address",
    about:
      "The address on which a node receives messages from other nodes. This port has no authentication, so it must not be " +
      "reachable from a public network.",
  },
  PLATFORM_NODE_PORT: {
    group: "Several nodes",
    kind: "integer",
    fallback: 0,
    min: 0,
    max: 65_535,
    about: "The port for these messages. `0` takes any free port.",
  },
  PLATFORM_NODE_URL: {
    group: "Several nodes",
    kind: "structured",
    fallback: null,
    expects: "http URL of host and port",
    shown: "`http://{host}:{port}`",
    about: "The node's API port as the other nodes reach it.",
  },
  PLATFORM_NODE_GRACE_MS: duration(
    "Several nodes",
    MINUTE,
    "A node that is silent for this long is dead, and the sessions whose sandboxes it had are `failed`. A node that starts again sooner keeps its sandboxes.",
  ),
  PLATFORM_METRICS_PORT: {
    group: "Monitoring",
    kind: "integer",
    fallback: null,
    min: 0,
    max: 65_535,
    shown: "off",
    about:
      "Loopback port on which a Prometheus on this machine reads the [metrics](monitoring.md) of this node at `/metrics`, without a token.",
  },
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    group: "Monitoring",
    kind: "url",
    fallback: null,
    shown: "off",
    about:
      "The base address of a collector that takes OTLP over HTTP. [Traces](monitoring.md#traces) of sessions go to `/v1/traces` below it, as JSON.",
  },
  OTEL_EXPORTER_OTLP_HEADERS: {
    group: "Monitoring",
    kind: "structured",
    fallback: null,
    expects: "`name=value` pairs, separated by commas, with percent escapes in values",
    shown: "none",
    about: "Headers of requests to the collector, for example its credential.",
  },
  OTEL_SERVICE_NAME: {
    group: "Monitoring",
    kind: "text",
    fallback: "platform",
    about: "The service's name in traces.",
  },
});

type Names = keyof typeof SETTINGS;
/** Names of the settings of one kind. */
export type NamesOf<Kind extends Setting["kind"]> = {
  [Name in Names]: (typeof SETTINGS)[Name]["kind"] extends Kind ? Name : never;
}[Names];

export type ProviderName = (typeof SETTINGS)["PLATFORM_SANDBOX_PROVIDER"]["values"][number];
