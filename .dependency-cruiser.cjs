/**
 * The import rules of the codebase (CONTRIBUTING.md, "The shape"):
 *
 *   ground ← domain ← machines ← ports ← actors, duties, services ← http ← service ← serve ← main, cli
 *
 * The daemon stands beside that line: it shares domain, machines, the actor host and the proxy. The command line stands
 * outside: it asks the service over HTTP.
 * Adapters hang on the ports and are named by serve and the CLI alone. Each rule states its reason; `npm run check`
 * holds them. It reads shipped code and the twins (`src daemon demo test/twins`): other tests may name anything.
 */
const PORTS =
  "^src/store/ports/|^src/git/(connection|kept|port|pull-requests|server/(pushed|ref-policy|standing)|upstream/upstreams)\\.ts$|^src/sandbox/(port|daemon)\\.ts$|^src/(builder/(site/)?|connectors/(sign-in/)?|sign-in/|telemetry/)port\\.ts$";
const PROGRAMS = "^src/(main|serve|cli)\\.ts$|^src/cli/operator/";
/** The client part of the command line: everything but the operator's commands. */
const CLIENT = "^src/cli/(?!operator/)";
const COMPOSITION = `${PROGRAMS}|^src/adapters\\.ts$`;
const ADAPTERS = "^src/(store|git|sandbox|builder|outbound|connectors|sign-in|telemetry)/";
/** Through which a program reaches the world; crypto, path, buffer, util, streams and questions about addresses do not count. */
const SOCKETS =
  "^(net|tls|http|https|http2|dgram|dns)(/|$)|^node_modules/undici/|^src/ground/net/(?!address\\.ts$)";

module.exports = {
  forbidden: [
    {
      name: "no-cycles",
      comment: "Two files that need each other are one, or have a third inside. Types may point both ways.",
      severity: "error",
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ["type-only"] } },
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
      comment: "A built service starts from `npm ci --omit=dev`. Only a build loads esbuild.",
      severity: "error",
      from: { path: "^(src|daemon)/" },
      to: { dependencyTypes: ["npm-dev"], dependencyTypesNot: ["type-only"], pathNot: "/esbuild/" },
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
      name: "the-domain-dials-nothing",
      comment: "It may ask whether an address is public.",
      severity: "error",
      from: { path: "^(src/(domain|machines)|daemon)/" },
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
      from: { path: "^src/domain/" },
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
      from: { path: "^src/machines/" },
      to: { pathNot: ["^src/(machines|domain|ground)/", "^node_modules/xstate/"] },
    },
    {
      name: "xstate-stays-in-machines",
      comment:
        "The rest of the program sees declared events, commands and snapshots, so the library can be replaced. The " +
        "inspector shows machines' definitions and may name their type.",
      severity: "error",
      from: { pathNot: "^src/machines/" },
      to: { path: "^node_modules/xstate/", dependencyTypesNot: ["type-only"] },
    },
    {
      name: "ports-know-no-adapter",
      comment: "A port that knows one of its adapters is no port.",
      severity: "error",
      from: { path: PORTS },
      to: { path: "^(src|daemon|demo)/", pathNot: ["^src/(ground|domain|machines)/", PORTS] },
    },
    {
      name: "adapters-serve-ports",
      comment:
        "An adapter is called, it does not call: the actors above it decide when. The inspector's port stands beside the " +
        "host that reports to it.",
      severity: "error",
      from: { path: ADAPTERS, pathNot: PORTS },
      to: {
        path: "^src/(actors|duties|services|http|[^/]+\\.ts$)|^demo/",
        pathNot: "^src/actors/inspector\\.ts$",
      },
    },
    {
      name: "adapters-do-not-know-each-other",
      comment: "The store, repositories and sandboxes meet in actors, through ports.",
      severity: "error",
      from: { path: "^src/(store|git|sandbox|telemetry)/" },
      to: { path: "^src/(store|git|sandbox|telemetry)/", pathNot: ["^src/$1/", PORTS] },
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
      to: { path: "^src/(store/postgres|git/(github|server|upstream)|builder/(buildah|site)|sandbox)/" },
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
      name: "actors-touch-nothing-themselves",
      comment: "Disk, processes and sockets are behind ports; randomness and time are effect's services.",
      severity: "error",
      from: { path: "^src/(actors|duties|services)/" },
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
          // The page's files are made once for all starts.
          "^src/build-cache\\.ts$",
        ],
      },
    },
    {
      name: "handlers-are-strangers",
      comment:
        "The handlers of one group do not import those of another, not for an error's constructor either. Errors that " +
        "several groups answer with are in http/refusals.ts; other shared parts are in files of their own, named here.",
      severity: "error",
      from: { path: "^src/http/" },
      to: {
        path: "^src/http/handlers/",
        pathNot:
          "^src/http/handlers/(answers|connector-credentials|connector-wire|conversation-wire|hand-fires|machine-view|merging|message-secrets|opening|own-credentials|project-setup|project-usage|repository-check|repository-credential|restarting|session-changes|session-options|session-ports|session-workspace|shown-work|token-grant|trigger-listing|warnings|wire)\\.ts$",
      },
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
      from: { path: "^src/http/api/" },
      to: { path: "^src/", pathNot: ["^src/(ground|domain|http/api)/"], dependencyTypesNot: ["type-only"] },
    },
    {
      name: "adapters-are-named-at-the-root",
      comment:
        "Which adapter stands behind a port is decided in one place (serve, the CLI and what they share) or in a test.",
      severity: "error",
      from: { path: "^(src|daemon|demo)/", pathNot: [ADAPTERS, COMPOSITION] },
      to: { path: ADAPTERS, pathNot: [PORTS, "^src/git/server/smart-http\\.ts$"] },
    },
    {
      name: "the-root-is-not-imported",
      comment: "main with its program in serve, and the CLI, are programs, not libraries.",
      severity: "error",
      from: { pathNot: PROGRAMS },
      to: { path: COMPOSITION },
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
      to: { path: "^src/(store|git|sandbox)/", pathNot: "^src/store/ports/journal\\.ts$" },
    },
    {
      name: "service-only-bundles-the-daemon",
      comment:
        "The service makes the daemon's bundle and starts it elsewhere; it never runs the daemon's code.",
      severity: "error",
      from: { path: "^src/" },
      to: { path: "^daemon/", pathNot: "^daemon/(bundle|code-cache)\\.ts$" },
    },
    {
      name: "command-line-is-a-client",
      comment:
        "`platform` asks over HTTP and knows the API by its types alone. It runs in sandboxes, beside an agent: nothing of " +
        "the service's insides may get into its bundle. Of the domain it has how ids and tokens are spelt.",
      severity: "error",
      from: { path: CLIENT },
      to: {
        path: "^(src|daemon|demo|test)/",
        pathNot: [CLIENT, "^src/domain/ids\\.ts$"],
        dependencyTypesNot: ["type-only"],
      },
    },
    {
      name: "command-line-sees-definitions-only",
      comment: "Types too: a client knows what is written in the API's definitions.",
      severity: "error",
      from: { path: CLIENT },
      to: { path: "^(src|daemon|demo|test)/", pathNot: [CLIENT, "^src/(http/api|domain)/"] },
    },
    {
      name: "command-line-loads-no-package",
      comment:
        "It starts for every single call of an agent's: Node and nothing else, so that it starts at once.",
      severity: "error",
      from: { path: CLIENT, pathNot: "^src/cli/bundle\\.ts$" },
      to: { path: "^node_modules/", dependencyTypesNot: ["type-only"] },
    },
    {
      name: "service-only-bundles-the-command-line",
      comment:
        "The service makes the bundle for its sandboxes. The operator's commands share grammar and output with the others.",
      severity: "error",
      from: { path: "^(src|daemon|demo)/", pathNot: "^src/cli(/|\\.ts$)" },
      to: { path: CLIENT, pathNot: "^src/cli/bundle\\.ts$" },
    },
    {
      name: "demo-is-a-client",
      comment:
        "The demo starts the service as anyone would and speaks to it over HTTP; it shares pure values, and what a " +
        "program does first.",
      severity: "error",
      from: { path: "^demo/" },
      to: { path: "^(src|daemon)/", pathNot: "^src/((domain|ground)/|inherited\\.ts$)" },
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
      comment: "SQL stands in store/postgres and migrations only, where every query has a name.",
      severity: "error",
      from: { pathNot: "^src/store/postgres/" },
      to: { path: "^node_modules/(effect/dist/sql/|@effect/sql-pg/|pg/|@types/pg/)" },
    },
    {
      name: "cluster-in-two-files",
      comment:
        "Actors are reached through the address book of actors/actors.ts; the cluster is its only implementation. The lease follows the cluster's locks.",
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
          "^src/sandbox/(bundle/bundle|gvisor/runsc|images/import|images/registry/layer)\\.ts$",
          // Builds run in a sandbox of their own, and the programs inside start buildah.
          "^src/builder/buildah/",
          "^src/store/postgres/embedded/(embedded|user)\\.ts$",
          // The limits of an agent are tried with real programs; pushes refused for their credential are
          // told by a hook's process.
          "^daemon/(process|git/rejections|code-cache)\\.ts$",
          "^daemon/doctor\\.mjs$",
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
          "^src/(domain|git|ground/net|starter|connectors|outbound|sign-in|sandbox|store/postgres|proxy|cli)/",
          "^src/(main|cli|nodes/call|http/(server|relay/relay)|telemetry/(inspect|metrics)-page)\\.ts$",
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
          "^src/(service|http/(server|git/git)|git/server/smart-http|nodes/runner-socket)\\.ts$",
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
      extensions: [".ts", ".mjs", ".cjs", ".js", ".json"],
    },
    // The sample repository is somebody else's project, and the dashboard is a browser's.
    exclude: { path: "^demo/repository/" },
  },
};
