/** docs/operate/entities.md, from migrations/schema.sql. */

/** The meaning of one row of each table. A table without a line here fails the page's test. */
const ABOUT: Readonly<Record<string, string>> = {
  accounts: "An account: its tier, its session cap, and the counters that admission moves.",
  users: "A person of one account, with her role there.",
  invitations: "A link that lets a person into an account, once, with the roles that it names.",
  tokens: "An access token, a sandbox's token, or the session of a signed-in browser, as a hash.",
  device_logins:
    "A program without a browser that waits for a person to sign it in, with hashes of its codes.",
  sign_in_links: "A one-time link that signs a browser in, as a hash.",
  identities: "What a sign-in provider calls a person: the issuer and its subject.",
  projects: "A project: its repository, default branch, and the node that stores a hosted repository.",
  deleted_projects: "The id of a project that is gone, so that each node removes its files.",
  project_credentials: "The encrypted credential of a repository at another server.",
  project_manifests: "The last reading of `platform.toml`, and the last good one.",
  project_secrets: "An encrypted secret, and for a while the value that it replaced.",
  project_members: "The own role of a person in a project.",
  connector_credentials: "The encrypted credential of a connector, for one origin.",
  connector_flows: "Sign-ins to connectors that people began in the last ten minutes, encrypted.",
  connector_grants: "The encrypted tokens that a connector's server gave to the service, for one origin.",
  connector_catalogues: "The tools of a connector's server: as accepted by a person, and as last seen.",
  executor_calls: "A call of an agent to a tool of a connector, and what became of it.",
  audit_events: "What somebody did: who, from where, and the new values. It is never changed.",
  approvals:
    "A call of an agent that waits for a person, or whose result waits for the agent: its state, with encrypted arguments.",
  project_usage: "The tokens and the cost of one model on one day, summed over the sessions of a project.",
  model_providers:
    "A provider of models of an account, a project or a person, with its encrypted key, and what it last refused.",
  subscriptions: "A person's own subscription at the maker of an agent runtime, encrypted.",
  delivered_subscriptions: "A sandbox that was started with the own subscription of its session's person.",
  model_usage: "What passed the service of one model in one session on one day: calls and tokens.",
  spend_limits:
    "A limit of what models may cost or use: of a session, a trigger, a person, a project or the account.",
  spend: "The tokens and the cost of one subject in a period.",
  spend_reservations:
    "A call of a model under way, and the most that it may cost. Its count ends it, which happens once.",
  project_trigger_runtime: "When a trigger last started a session.",
  trigger_cursors: "The instant up to which every due instant of a cron trigger has its row in the ledger.",
  fires: "The ledger: one row for each webhook, due instant or manual fire, and what became of it.",
  fire_requests: "The stored request of a fire, for display and replay.",
  fire_queue: "A fire, or a person's request for a session, that waits for a free slot.",
  webhook_refusals: "A webhook that was refused, and the reason.",
  project_sessions: "A session: its state machine's snapshot and what the API shows of it.",
  warm_sandboxes: "A sandbox that waits for a session.",
  session_sandboxes: "One boot of a session's sandbox: the sandbox machine's snapshot.",
  environment_bases:
    "What the tag of a base image stands for, as its registry said last. All projects share it.",
  environment_builds:
    "A build of a project's Dockerfile on one node: the build machine's snapshot, and its step.",
  environment_build_logs: "A piece of a build's output.",
  session_logs: "The newest log lines of a sandbox that ended.",
  conversations:
    "The conversation of a session: its turn, sums of usage, and the number of its last version.",
  conversation_items:
    "A message, thought, tool call, plan, request or note of a conversation: its last version.",
  conversation_outputs: "The whole output of a tool, where it is longer than its item shows.",
  conversation_attachments: "A file that a person attached to a message.",
  clone_credentials: "A sandbox's git password, as a hash.",
  suspended_credentials:
    "A session in which its person's own credentials do not work, since another person steered it.",
  previews: "A preview link, then the cookie that it became, as a hash.",
  change_requests: "A change request, its pull request if it has one, and the commits of its merge.",
  session_reads: "Until when a person has seen a session.",
  uploads: "A file for the first message of a session that does not exist yet.",
  change_request_reviewers: "A person who was asked to review a change request.",
  change_request_remarks:
    "What a person says of a change request: a comment, an approval, or a wish for changes.",
  transitions:
    "A step of an actor: the event, the states before and after, and the commands that it ordered.",
  outbox: "A command that a machine asked for and that is not finished.",
  events: "One event of a project's event stream.",
  event_horizons:
    "The newest event that was removed from a project's stream: older readers are told `reset`.",
  outbound_webhooks:
    "A receiver of a project's events, or of a person's own: its encrypted address and secrets, and its place in the events.",
  own_notices_place: "The event up to which people have their notices. One row.",
  outbound_deliveries: "An event that one receiver is told, with its tries and the last answer.",
  nodes: "A node of the service and its heartbeat.",
  cluster_runners: "The actor runner of a node, kept by the cluster library.",
  cluster_locks: "Which runner owns which shard of actors, kept by the cluster library.",
  settings: "Facts about the whole database, such as the proof of the master key.",
  schema_migrations: "A migration that ran.",
};

/** The table that a column `<noun>_id` refers to. */
const NOUNS: Readonly<Record<string, string>> = {
  account: "accounts",
  user: "users",
  approver: "users",
  token: "tokens",
  project: "projects",
  fire: "fires",
  session: "project_sessions",
  sandbox: "session_sandboxes",
  node: "nodes",
  item: "conversation_items",
  outbound_webhook: "outbound_webhooks",
  subscription: "subscriptions",
};
/** Columns that end in `_id` and refer to no single table. */
const FOREIGN_IDS = new Set([
  "actor_id",
  "delivery_id",
  "machine_id",
  "message_id",
  "native_id",
  "request_id",
  "shard_id",
]);

interface Column {
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
}

interface Table {
  readonly name: string;
  readonly columns: readonly Column[];
  readonly primaryKey: readonly string[];
  /** Column sets of which each value occurs once. */
  readonly uniques: readonly (readonly string[])[];
  /** Column to table, by constraint. */
  readonly references: ReadonlyMap<string, string>;
}

const list = (text = ""): readonly string[] => text.split(",").map((item) => item.trim());

interface Source {
  readonly name: string;
  readonly body: string;
  /** Columns of its unique indexes. */
  readonly indexes: readonly (readonly string[])[];
}

const tableOf = ({ name, body, indexes }: Source): Table => {
  const lines = body.split("\n").map((line) => line.trim().replace(/,$/, ""));
  const keys = (kind: string) =>
    lines.flatMap((line) => {
      const match = new RegExp(`^CONSTRAINT \\w+ ${kind} \\(([^)]*)\\)`).exec(line);
      return match === null ? [] : [list(match[1])];
    });
  const foreign = lines.flatMap((line) => {
    const match = /FOREIGN KEY \((\w+)\) REFERENCES (\w+)\(/.exec(line);
    return match === null ? [] : [[match[1] ?? "", match[2] ?? ""] as const];
  });
  const columns = lines.flatMap((line) => {
    const match = /^(?!CONSTRAINT\b)(\w+) (.+)$/.exec(line);
    if (match === null) return [];
    const [, column = "", rest = ""] = match;
    const type = rest.replace(/ (?:NOT NULL|DEFAULT|GENERATED)\b.*$/, "");
    return [{ name: column, type, required: rest.includes("NOT NULL") }];
  });
  const primaryKey = keys("PRIMARY KEY").flat();
  return {
    name,
    columns,
    primaryKey,
    uniques: [primaryKey, ...keys("UNIQUE"), ...indexes],
    references: new Map(foreign),
  };
};

/** Columns of unique indexes that cover all rows. */
const uniqueIndexes = (schema: string, table: string): readonly (readonly string[])[] =>
  [...schema.matchAll(/^CREATE UNIQUE INDEX \w+ ON public\.(\w+) USING btree \(([\w, ]+)\);$/gm)]
    .filter(([, name]) => name === table)
    .map(([, , columns]) => list(columns));

const tablesOf = (schema: string): readonly Table[] =>
  [...schema.matchAll(/^CREATE TABLE (\w+) \(\n((?:.|\n)*?)\n\);$/gm)].map(([, name = "", body = ""]) => {
    return tableOf({ name, body, indexes: uniqueIndexes(schema, name) });
  });

interface Line {
  readonly from: string;
  readonly column: Column;
  readonly to: string;
  readonly enforced: boolean;
}

/** The table that a column refers to: by its constraint, else by its name. */
const lineOf = (table: Table, column: Column): Line | null => {
  const enforced = table.references.get(column.name);
  if (enforced !== undefined) return { from: table.name, column, to: enforced, enforced: true };
  if (!column.name.endsWith("_id") || FOREIGN_IDS.has(column.name)) return null;
  const to = NOUNS[column.name.slice(0, -"_id".length)];
  if (to === undefined) throw new Error(`${table.name}.${column.name} refers to no known table.`);
  return { from: table.name, column, to, enforced: false };
};

const linesOf = (table: Table): readonly Line[] =>
  table.columns.flatMap((column) => {
    const line = lineOf(table, column);
    return line === null ? [] : [line];
  });

const drawn = (table: Table, { column, to, enforced }: Line): string => {
  const single = table.uniques.some((unique) => unique.length === 1 && unique[0] === column.name);
  const left = column.required ? "||" : "|o";
  return `  ${to} ${left}${enforced ? "--" : ".."}${single ? "o|" : "o{"} ${table.name} : ${column.name}`;
};

/** Keys and the state alone, in one line; all columns are in the schema. */
const box = (table: Table): string => {
  const lines = new Set(linesOf(table).map(({ column }) => column.name));
  const shown = table.columns.flatMap(({ name, type }) => {
    const marks = [...(table.primaryKey.includes(name) ? ["PK"] : []), ...(lines.has(name) ? ["FK"] : [])];
    if (marks.length === 0 && name !== "status") return [];
    return [`${type.replaceAll(" ", "_")} ${[name, marks.join(", ")].join(" ").trim()}`];
  });
  return `  ${table.name} { ${shown.join(" ")} }`;
};

const about = (name: string): string => {
  const text = ABOUT[name];
  if (text === undefined) throw new Error(`scripts/entities-page.ts does not say what a row of ${name} is.`);
  return `| \`${name}\` | ${text} |`;
};

/** The whole page, from the text of migrations/schema.sql. */
export const entitiesPage = (schema: string): string => {
  const tables = tablesOf(schema);
  const gone = Object.keys(ABOUT).filter((name) => tables.every((table) => table.name !== name));
  if (gone.length > 0)
    throw new Error(`scripts/entities-page.ts describes tables that are gone: ${gone.join(", ")}`);
  return [
    "# Entities",
    "",
    "Generated from `migrations/schema.sql` by `npm run docs`; do not edit. The picture shows keys and states; all columns,",
    "checks and indexes are in [schema.sql](../../migrations/schema.sql). A solid line is a foreign key. A dotted line is a",
    "reference that the database does not enforce.",
    "",
    "```mermaid",
    "erDiagram",
    ...tables.flatMap((table) => linesOf(table).map((line) => drawn(table, line))),
    ...tables.map(box),
    "```",
    "",
    "| Table | One row is |",
    "| --- | --- |",
    ...tables.map(({ name }) => about(name)),
    "",
  ].join("\n");
};
