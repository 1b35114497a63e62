/**
 * The import rules of the codebase (CONTRIBUTING.md, "The shape"):
 *
 *   ground ← domain ← machines ← ports ← services ← actors ← duties ← http ← features ← assembly ← service ← serve ← main
 *
 * The daemon stands beside that line: it shares domain, machines, the actor host and the proxy. The command line stands
 * outside: it asks the service over HTTP.
 * A feature has a slice of these rings in its folder: `rules`, `ports`, `sql`, and files by the name of their ring. The
 * files that join the features are in `assembly`. Adapters hang on the ports and are named there and by programs alone. Each rule states its reason; `npm run check`
 * holds them. It reads shipped code and the twins (`src daemon demo dashboard test/twins`): other tests may name anything.
 */
const PORTS =
  "^src/store/ports/|^src/git/(connection|kept|port|pull-requests|server/(pushed|ref-policy|standing)|upstream/upstreams)\\.ts$|^src/sandbox/(port|daemon|model-door)\\.ts$|^src/(builder/(site/)?|connectors/(sign-in/)?|saves/|sign-in/|telemetry/)port\\.ts$|^src/features/[^/]+/ports/";
const MACHINES = "^src/machines/|^src/features/[^/]+/machine\\.ts$";
/** Definitions of the API. */
const DEFINITIONS = "^src/http/api/|^src/features/[^/]+/[a-z-]*(api|examples)\\.ts$";
const PROGRAMS = "^src/(main|serve|operator|platform)\\.ts$|^src/installation/";
/** The command line, a client of the API. The operator's commands are in `installation/operator`. */
const CLIENT = "^src/cli/|^src/features/[^/]+/commands\\.ts$";
const COMPOSITION = `${PROGRAMS}|^src/assembly/adapters\\.ts$`;
/** What joins the features: the definitions of the API, the store, the service, the adapters and the commands. */
const JOINS = `${COMPOSITION}|^src/assembly/|^src/service\\.ts$`;
const ADAPTERS =
  "^src/(store|git|sandbox|builder|connectors|sign-in|telemetry)/|^src/features/[^/]+/(sql/|(sender|mailer)\\.ts$)";
const SQL = "^src/(store/postgres|features/[^/]+/sql)/";
/** Through which a program reaches the world; crypto, path, buffer, util, streams and questions about addresses do not count. */
const SOCKETS =
  "^(net|tls|http|https|http2|dgram|dns)(/|$)|^node_modules/(undici|nodemailer)/|^src/ground/net/(?!address\\.ts$)";

module.exports = {
  forbidden: [
    {
      name: "no-cycles",
      comment:
        "Two files that need each other are one, or have a third inside. The twins' types may point both ways.",
      severity: "error",
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ["type-only"] } },
    },
    {
      name: "no-cycles-of-types",
      comment:
        "Shipped files that need each other's types cannot be read one after the other. The twins' tables name their rows, which name the tables.",
      severity: "error",
      from: { path: "^(src|daemon|dashboard|demo)/" },
      to: { circular: true },
    },
    {
      name: "resolvable",
      comment: "An import that leads nowhere fails at run time, where only one path may meet it.",
      severity: "error",
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: "no-development-packages",
      comment: "A built service starts from `npm ci --omit=dev`. Only a build loads esbuild and Vite.",
      severity: "error",
      from: { path: "^(src|daemon)/" },
      to: { dependencyTypes: ["npm-dev"], dependencyTypesNot: ["type-only"], pathNot: "/(?:esbuild|vite)/" },
    },
    {
      name: "the-page-takes-types",
      comment:
        "The page runs in browsers. Of the service it takes the API's types, which the compiler erases, so that a renamed field does not compile. The templates of triggers are data that the manifest's own parser is tested with, the page finds the places of a prompt as the renderer does, it names the causes of failed turns as the daemon does, it says of a failed session what the page of its state says, and the command line says of saved work, of hosts for ssh, of what a session does and of an agent's tools what the page says. Both follow a text that grows by one rule. The order of models in a menu, and that day and weekday of a schedule are alternatives, are rules of the domain.",
      severity: "error",
      from: { path: "^dashboard/" },
      to: {
        path: "^(src|daemon|demo|test)/|^node_modules/effect/",
        pathNot:
          "^src/domain/(?:counted|duration|text|conversation/(?:growing|row-texts|tool-words)|model/menu|person/own-session|trigger/(?:cron-days|templates|placeholders)|save/(?:reasons|shown)|service/news-words|session/(?:activity-words|begun|failure|model-errors|ssh-host|title))\\.ts$",
        dependencyTypesNot: ["type-only"],
      },
    },
    {
      name: "the-page-knows-no-node",
      comment: "Its type check knows Node's names, because the API's definitions use them.",
      severity: "error",
      from: { path: "^dashboard/" },
      to: { dependencyTypes: ["core"] },
    },
    {
      name: "domain-is-the-innermost-ring",
      comment:
        "The service, the daemon and the tests share pure values and functions. Every ring uses the ground, which knows none.",
      severity: "error",
      from: { path: "^src/(ground|domain)/" },
      to: { path: "^(src|daemon|demo|test)/", pathNot: "^src/(ground|$1)/" },
    },
    {
      name: "rules-of-a-feature-are-pure",
      comment: "They stand to their feature as the domain to the core.",
      severity: "error",
      from: { path: "^src/features/([^/]+)/rules/" },
      to: { path: "^(src|daemon|demo|test)/", pathNot: "^src/(ground|domain|features/$1/rules)/" },
    },
    {
      name: "features-are-above-the-core",
      comment: "The core works without each feature. A feature is named where features are joined.",
      severity: "error",
      from: { path: "^(src|daemon|demo)/", pathNot: ["^src/features/", JOINS] },
      to: { path: "^src/features/" },
    },
    {
      name: "features-are-strangers",
      comment: "The core has the parts that two features need.",
      severity: "error",
      from: { path: "^src/features/([^/]+)/" },
      to: { path: "^src/features/", pathNot: "^src/features/$1/" },
    },
    {
      name: "features-use-the-core",
      comment: "A feature does not know what joins it, nor other nodes, nor adapters.",
      severity: "error",
      from: { path: "^src/features/" },
      to: {
        path: "^(src|daemon|demo|test)/",
        pathNot: ["^src/(ground|domain|machines|services|actors|duties|http|store|features)/", PORTS, CLIENT],
      },
    },
    {
      name: "joins-are-above-the-features",
      comment: "Only programs and the service name what joins the features.",
      severity: "error",
      from: { path: "^(src|daemon|demo)/", pathNot: JOINS },
      to: { path: "^src/assembly/(api|database|commands)\\.ts$" },
    },
    {
      name: "the-domain-dials-nothing",
      comment: "It may ask whether an address is public.",
      severity: "error",
      from: { path: "^(src/(domain|machines|features/[^/]+/rules)|daemon)/" },
      to: { path: "^src/ground/net/(?!address\\.ts$)" },
    },
    {
      name: "hosts-are-dialled-in-one-way",
      comment: "ground/net checks addresses. The provider for clusters looks its own up, for a policy.",
      severity: "error",
      from: { path: "^(src|daemon)/", pathNot: "^src/(ground/net|sandbox/kubernetes)/" },
      to: { path: "^(dns)(/|$)|^node_modules/undici/", dependencyTypesNot: ["type-only"] },
    },
    {
      name: "domain-does-no-io",
      comment:
        "What the domain computes must be the same everywhere and always. Of builtins it has hashes, bytes and net's " +
        "isIP and BlockList, which are arithmetic; of packages the readers of TOML, YAML and JSON with comments, a validator of JSON Schema and effect's values.",
      severity: "error",
      from: { path: "^src/(domain|features/[^/]+/rules)/" },
      to: {
        dependencyTypes: ["core", "npm", "npm-dev"],
        pathNot: [
          "^node_modules/(smol-toml|@humanwhocodes/momoa|yaml)/",
          "^node_modules/@modelcontextprotocol/client/dist/validators/",
          "^node_modules/effect/dist/(Result|Schema|Option|Predicate|SchemaIssue)\\.",
          "^(crypto|buffer|path|util|net)$",
        ],
      },
    },
    {
      name: "machines-are-pure",
      comment:
        "A machine is data and two functions over xstate and the domain: no effect, no clock, no client.",
      severity: "error",
      from: { path: MACHINES },
      to: { pathNot: [MACHINES, "^src/(domain|ground|features/[^/]+/rules)/", "^node_modules/xstate/"] },
    },
    {
      name: "xstate-stays-in-machines",
      comment:
        "The rest of the program sees declared events, commands and snapshots, so the library can be replaced. The " +
        "inspector shows machines' definitions and may name their type.",
      severity: "error",
      from: { pathNot: MACHINES },
      to: { path: "^node_modules/xstate/", dependencyTypesNot: ["type-only"] },
    },
    {
      name: "ports-know-no-adapter",
      comment: "A port that knows one of its adapters is no port.",
      severity: "error",
      from: { path: PORTS },
      to: {
        path: "^(src|daemon|demo)/",
        pathNot: ["^src/(ground|domain|features/[^/]+/rules)/", MACHINES, PORTS],
      },
    },
    {
      name: "adapters-serve-ports",
      comment: "An adapter is called, it does not call: the actors above it decide when.",
      severity: "error",
      from: { path: ADAPTERS, pathNot: PORTS },
      to: { path: "^src/(actors|assembly|duties|services|http|settings|[^/]+\\.ts$)|^demo/" },
    },
    {
      name: "adapters-do-not-know-each-other",
      comment: "The store, repositories and sandboxes meet in actors, through ports.",
      severity: "error",
      from: { path: "^src/(store|git|sandbox|telemetry)/" },
      to: { path: "^src/(store|git|sandbox|telemetry)/", pathNot: ["^src/$1/", PORTS] },
    },
    {
      name: "runtimes-are-records",
      comment:
        "A runtime is looked up by its name in runtimes.ts. Only the default, opencode, is imported by name.",
      severity: "error",
      from: { path: "^(src|daemon|dashboard)/", pathNot: "^src/domain/runtimes/" },
      to: { path: "^src/domain/runtimes/(acp|claude-code|codex|gemini|plain)\\.ts$" },
    },
    {
      name: "providers-are-strangers",
      comment:
        "sandbox/machine has the parts that the providers on one machine share. It imports no provider.",
      severity: "error",
      from: { path: "^src/sandbox/(machine|local|gvisor|docker|containers|remote|kubernetes)/" },
      to: { path: "^src/sandbox/(local|gvisor|docker|kubernetes)/", pathNot: "^src/sandbox/$1/" },
    },
    {
      name: "twins-are-strangers-to-adapters",
      comment: "A twin stands for an adapter in tests. It knows its port and pure files beside the adapter.",
      severity: "error",
      from: { path: "^test/twins/" },
      to: {
        path: "^src/(store/postgres|features/[^/]+/sql|git/(github|server|upstream)|builder/(buildah|site)|sandbox)/",
      },
    },
    {
      name: "actors-know-ports-only",
      comment: "An actor runs over the simulated twins exactly as over the real adapters.",
      severity: "error",
      from: { path: "^src/(actors|duties|services)/" },
      to: {
        path: "^(src|daemon|demo)/",
        pathNot: ["^src/(ground|domain|machines|actors|duties|services)/", PORTS],
      },
    },
    {
      name: "services-are-below-actors",
      comment: "Actors and duties use services. A service reaches them by the address book and signals.",
      severity: "error",
      from: { path: "^src/services/" },
      to: { path: "^src/(actors|duties)/" },
    },
    {
      name: "actors-are-below-duties",
      comment: "A duty tells actors. An actor reaches a duty by a signal in services.",
      severity: "error",
      from: { path: "^src/actors/" },
      to: { path: "^src/duties/" },
    },
    {
      name: "actors-touch-nothing-themselves",
      comment: "Disk, processes and sockets are behind ports; randomness and time are effect's services.",
      severity: "error",
      from: { path: "^src/(actors|duties|services|features)/", pathNot: ADAPTERS },
      to: { path: `^(fs|child_process|worker_threads)(/|$)|${SOCKETS}` },
    },
    {
      name: "http-asks-actors-and-ports",
      comment:
        "A handler decodes, asks one actor or reads one store, encodes. The git endpoint names the smart protocol's " +
        "types: the protocol is itself HTTP, and its adapter is handed in.",
      severity: "error",
      from: { path: "^src/http/" },
      to: {
        path: "^(src|daemon|demo)/",
        pathNot: [
          "^src/(ground|domain|machines|actors|duties|services|http|proxy)/",
          PORTS,
          "^src/git/server/smart-http\\.ts$",
        ],
      },
    },
    {
      name: "handlers-are-strangers",
      comment: "Only what joins them names a group's handlers. Shared steps are in http/steps.",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/(http/handlers/core|features/[^/]+/feature)\\.ts$" },
      to: { path: "^src/(http/handlers/(?!core\\.ts$)|features/[^/]+/[a-z-]*handlers\\.ts$)" },
    },
    {
      name: "only-the-wiring-knows-nodes",
      comment:
        "The parts of a node are reached through the ports, which find out where they are. Only the service's wiring " +
        "knows that there are several nodes.",
      severity: "error",
      from: { path: "^src/", pathNot: ["^src/nodes/", COMPOSITION] },
      to: { path: "^src/nodes/" },
    },
    {
      name: "definitions-without-handlers",
      comment:
        "The API's definitions are shared with the CLI and typed clients, which must not load the service. " +
        "Types of a stored record may be named: they load nothing.",
      severity: "error",
      from: { path: DEFINITIONS },
      to: {
        path: "^src/",
        pathNot: ["^src/(ground|domain|features/[^/]+/rules)/", DEFINITIONS],
        dependencyTypesNot: ["type-only"],
      },
    },
    {
      name: "adapters-are-named-at-the-root",
      comment:
        "Which adapter stands behind a port is decided in one place (serve, the CLI and what they share) or in a test. Saved work " +
        "is a feature with a git store of its own.",
      severity: "error",
      from: {
        path: "^(src|daemon|demo)/",
        pathNot: [ADAPTERS, COMPOSITION, "^src/saves/", "^src/assembly/database\\.ts$"],
      },
      to: { path: ADAPTERS, pathNot: [PORTS, "^src/git/server/smart-http\\.ts$"] },
    },
    {
      name: "the-root-is-not-imported",
      comment: "main with its program in serve, and the CLI, are programs, not libraries.",
      severity: "error",
      from: { pathNot: PROGRAMS },
      to: { path: COMPOSITION, pathNot: "^src/installation/first-account\\.ts$" },
    },
    {
      name: "installation-is-for-programs",
      comment:
        "The identity of an installation and its keys are read before anything is served, and handed down.",
      severity: "error",
      from: {
        path: "^(src|daemon|demo)/",
        pathNot: ["^src/installation/", COMPOSITION, "^src/service\\.ts$"],
      },
      to: { path: "^src/installation/" },
    },
    {
      name: "daemon-shares-machines-and-host",
      comment:
        "The daemon is its own program inside a sandbox. It shares the domain, the machines, the actor host and the " +
        "proxy, so that one invariant holds in both, and nothing that knows the service.",
      severity: "error",
      from: { path: "^daemon/" },
      to: {
        path: "^(src|demo|test)/",
        pathNot: "^src/((ground|domain|machines|proxy)/|actors/(host|supervisor|volatile|inspector)\\.ts$)",
      },
    },
    {
      name: "proxy-knows-no-program",
      comment:
        "The service and the daemon both pass requests on with it; who may, and where to, is theirs to say.",
      severity: "error",
      from: { path: "^src/proxy/" },
      to: { path: "^(src|daemon|demo)/", pathNot: "^src/(ground|domain|proxy)/" },
    },
    {
      name: "host-is-free-of-the-store",
      comment:
        "The host goes into the daemon's bundle, and with it only the port by which its snapshots are remembered.",
      severity: "error",
      from: { path: "^src/actors/(host|supervisor|volatile|inspector)\\.ts$" },
      to: { path: "^src/(store|git|sandbox)/", pathNot: "^src/store/ports/(journal|outage)\\.ts$" },
    },
    {
      name: "service-only-bundles-the-daemon",
      comment:
        "The service makes the daemon's bundle and starts it elsewhere; it never runs the daemon's code.",
      severity: "error",
      from: { path: "^src/" },
      to: { path: "^daemon/", pathNot: "^daemon/bundle/(bundle|code-cache)\\.ts$" },
    },
    {
      name: "command-line-is-a-client",
      comment:
        "`platform` asks over HTTP and knows the API by its types alone. It runs in sandboxes, beside an agent: nothing of " +
        "the service's insides may get into its bundle. Of the domain it has how ids and tokens are spelt, words for what a save left out, for what a session does and for an agent's tools, how a text grows, the names of sessions as hosts, and templates of triggers; of the ground, which word a mistyped one means, and how JSON is read.",
      severity: "error",
      from: { path: CLIENT },
      to: {
        path: "^(src|daemon|demo|test)/",
        pathNot: [
          CLIENT,
          "^src/domain/(counted|duration|ids|conversation/growing|conversation/tool-words|save/reasons|save/shown|service/news-words|session/activity-words|session/session-activity|session/ssh-host|trigger/templates)\\.ts$",
          "^src/ground/(nearest|record)\\.ts$",
        ],
        dependencyTypesNot: ["type-only"],
      },
    },
    {
      name: "command-line-sees-definitions-only",
      comment: "Types too: a client knows what is written in the API's definitions.",
      severity: "error",
      from: { path: CLIENT },
      to: {
        path: "^(src|daemon|demo|test)/",
        pathNot: [CLIENT, "^src/(http/api|domain|features/[^/]+/rules)/|^src/ground/(nearest|record)\\.ts$"],
      },
    },
    {
      name: "command-line-loads-no-package",
      comment:
        "It starts for every call of an agent's: with Node and nothing else, it starts at once. Node's own `crypto` takes 4 ms; the global one loads when it is used.",
      severity: "error",
      from: { path: CLIENT },
      to: { path: "^node_modules/|^(node:)?crypto$", dependencyTypesNot: ["type-only"] },
    },
    {
      name: "service-is-no-client",
      comment: "The operator's commands share grammar and output with the command line.",
      severity: "error",
      from: { path: "^(src|daemon|demo)/", pathNot: [PROGRAMS, "^src/assembly/commands\\.ts$", CLIENT] },
      to: { path: CLIENT },
    },
    {
      name: "demo-is-a-client",
      comment:
        "The demo starts the service as anyone would and speaks to it over HTTP; it shares pure values, and what a " +
        "program does first.",
      severity: "error",
      from: { path: "^demo/" },
      to: { path: "^(src|daemon)/", pathNot: "^src/(domain|ground)/" },
    },
    {
      name: "product-without-demo",
      comment: "The scripted model and the sample repository are no part of the service.",
      severity: "error",
      from: { path: "^(src|daemon)/" },
      to: { path: "^(demo|test)/" },
    },
    {
      name: "sql-in-the-store",
      comment: "SQL stands in store/postgres, a feature's sql and migrations, where every query has a name.",
      severity: "error",
      from: { pathNot: SQL },
      to: { path: "^node_modules/(effect/dist/sql/|@effect/sql-pg/|pg/|@types/pg/)" },
    },
    {
      name: "cluster-in-two-files",
      comment:
        "Actors are reached through the address book of services/actors.ts; the cluster is its only implementation. The lease follows the cluster's locks.",
      severity: "error",
      from: { pathNot: "^src/(actors/(cluster|lease)|service)\\.ts$" },
      to: { path: "^node_modules/effect/dist/cluster/" },
    },
    {
      name: "processes-are-started-by-adapters",
      comment:
        "A child process needs an owner, a deadline and an environment of its own: starter for git/run and the sandboxes' launchers and short programs, the named files of sandbox, embedded Postgres, the daemon's process.ts.",
      severity: "error",
      from: {
        path: "^(src|daemon)/",
        pathNot: [
          "^src/starter/",
          "^src/sandbox/(bundle/bundle|gvisor/runsc|images/import|images/registry/layer|runtimes/(npm|program-archive))\\.ts$",
          // The page is bundled in a process of its own, because the bundler takes much memory.
          "^src/http/pages/page-bundle\\.ts$",
          // A command runs to its end on a person's computer.
          "^src/cli/programs\\.ts$",
          // Builds run in a sandbox of their own, and the programs inside start buildah.
          "^src/builder/buildah/",
          "^src/store/postgres/embedded/(embedded|user)\\.ts$",
          // The limits of an agent are tried with real programs; pushes refused for their credential are
          // told by a hook's process.
          "^daemon/(agent/process|git/rejections|bundle/code-cache|saving/repository)\\.ts$",
          "^daemon/programs/doctor\\.mjs$",
        ],
      },
      to: { path: "^child_process$" },
    },
    {
      name: "sockets-belong-to-adapters",
      comment:
        "Each file that dials or listens says where: ground/net dials hosts that somebody names, the egress proxy has the allow list, daemon-http " +
        "speaks to daemons, nodes/call to other nodes, the proxy passes on to the target it is given, http/server, the inspector and the metrics listen. The domain uses net for isIP and BlockList, which open nothing.",
      severity: "error",
      from: {
        path: "^src/",
        pathNot: [
          "^src/(domain|git|ground/net|starter|connectors|sign-in|sandbox|store/postgres|proxy|cli)/",
          "^src/(main|operator|nodes/call|installation/operator/doctor-installation|http/(server|inspect/page|relay/relay)|telemetry/metrics-page|features/[^/]+/(sender|mailer))\\.ts$",
        ],
      },
      to: { path: SOCKETS, dependencyTypesNot: ["type-only"] },
    },
    {
      name: "platform-node-at-the-edge",
      comment:
        "Everything else runs on effect's own services and does not know that it runs on Node. The git endpoint closes the " +
        "socket of a client that stopped reading, the smart protocol hands a child's stream on, and the runner's socket looks " +
        "at the connection that it is made of.",
      severity: "error",
      from: {
        pathNot: [
          COMPOSITION,
          "^src/(service|http/(server|git/git)|git/server/(inflated|smart-http)|saves/part|nodes/runner-socket)\\.ts$",
        ],
      },
      to: { path: "^node_modules/@effect/platform-node" },
    },
    {
      name: "platform-node-by-part",
      comment:
        "The package's index loads every part of it, and with them a Redis client: 650 modules, a quarter of the CPU time of a " +
        "service's start. Import the part: `@effect/platform-node/NodeRuntime`.",
      severity: "error",
      from: {},
      to: { path: "^node_modules/@effect/platform-node/dist/index\\." },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "node", "default", "types"],
      extensions: [".ts", ".tsx", ".mjs", ".cjs", ".js", ".json"],
    },
    // The sample repository is somebody else's project, and the dashboard is a browser's.
    exclude: { path: "^demo/repository/" },
  },
};
