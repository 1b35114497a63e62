/**
 * `platform admin`: the operator's commands on accounts. Their implementation (accounts.ts) is loaded only when it is
 * needed.
 */
import { command, type Command, type Outcome } from "../../cli/command.ts";
import { page, pageOptions } from "../../cli/commands/lists.ts";
import { usageFailure } from "../../cli/failure.ts";
import { localTable as table, time, timeOrDash, safeLine } from "../../cli/terminal.ts";
import { anyId, parseWord } from "../../cli/words.ts";
import type { AccountRole } from "../../domain/person/role.ts";
import type { Tier } from "../../domain/person/tier.ts";
import { quantity } from "../../domain/counted.ts";
import { isBlank, isLongerThan, isOneLine } from "../../domain/text.ts";

/** The same as in domain/person/tier.ts, which would load effect at the start of every call. */
const TIERS = ["free", "pro", "enterprise"] as const satisfies readonly Tier[];

const NOTES = `The command works on the installation's database. Run it on the service's machine, as its user, with the service's own settings
(PLATFORM_DATA_DIR or DATABASE_URL, PLATFORM_TIER_CAPS). The service can keep running.`;

const DEFAULT_LIMIT = 50;
const LONGEST_LIMIT = 200;
const NAME_MAX = 200;

const request = (options: Parameters<typeof page>[0]) => {
  const { limit = DEFAULT_LIMIT, cursor = null } = page(options);
  if (limit > LONGEST_LIMIT) throw usageFailure(`--limit must be at most ${LONGEST_LIMIT}.`);
  return { limit, cursor };
};

/** The API's rule for names. */
const checkName = (name: string): string => {
  if (isBlank(name) || isLongerThan(name, NAME_MAX) || !isOneLine(name) || !name.isWellFormed())
    throw usageFailure(`NAME must be one line of 1 to ${NAME_MAX} characters.`);
  return name;
};

const requireId = (id: string | undefined, option: string): string => {
  if (id === undefined) throw usageFailure(`--${option} is missing.`);
  return anyId(id, `--${option}`);
};

interface Listed<A> {
  readonly items: readonly A[];
  readonly next_cursor: string | null;
}

/** A page in the API's format. */
const listing = <A>(
  plural: string,
  { items, next_cursor: next }: Listed<A>,
  { text, note }: { readonly text: string; readonly note: (line: string) => void },
): Outcome => {
  if (next !== null) note(`For the next page: --cursor ${next}`);
  return { json: JSON.stringify({ [plural]: items, next_cursor: next }), text };
};

const accountList = command({
  name: "admin account list",
  about: "List all accounts, newest first",
  options: pageOptions,
  notes: NOTES,
  run: async ({ options, environment, note }) => {
    const { perform } = await import("./perform.ts");
    const { listAccounts } = await import("./accounts.ts");
    const accountPage = await perform(listAccounts(environment, request(options)));
    const rows = accountPage.items.map((account) => [
      account.id,
      account.tier,
      `${account.active_sessions} of ${account.session_cap}`,
      String(account.queued_fires),
      account.name,
    ]);
    const text = table(["ACCOUNT", "TIER", "SESSIONS", "WAITING", "NAME"], rows, "No accounts.");
    return listing("accounts", accountPage, { text, note });
  },
});

const accountCreate = command({
  name: "admin account create",
  about: "Create an account. Then create its users",
  takes: ["NAME"],
  options: { tier: { value: "TIER", about: `${TIERS.join(", ")} (PLATFORM_DEFAULT_TIER)` } },
  notes: NOTES,
  run: async ({ given, options, environment }) => {
    const wish = { name: checkName(given.NAME), tier: parseWord(options.tier, TIERS, "--tier") };
    const { perform } = await import("./perform.ts");
    const { createAccount } = await import("./accounts.ts");
    const account = await perform(createAccount(environment, wish));
    return { json: JSON.stringify(account), text: safeLine(`${account.id} ${account.tier} ${account.name}`) };
  },
});

const ROLES = ["owner", "member"] as const satisfies readonly AccountRole[];

const accountOption = { account: { value: "ID", about: "The account" } } as const;

const userList = command({
  name: "admin user list",
  about: "List the users of an account, newest first",
  options: { ...accountOption, ...pageOptions },
  notes: NOTES,
  run: async ({ options, environment, note }) => {
    const accountId = requireId(options.account, "account");
    const { perform } = await import("./perform.ts");
    const { listUsers } = await import("./accounts.ts");
    const userPage = await perform(listUsers(environment, accountId, request(options)));
    const text = table(["USER", "NAME", "ROLE"], userPage.items.map(({ id, name, role }) => [id, name, role]), "No users."); // prettier-ignore
    return listing("users", userPage, { text, note });
  },
});

const userCreate = command({
  name: "admin user create",
  about: "Create a user in an account",
  takes: ["NAME"],
  options: {
    ...accountOption,
    role: { value: "ROLE", about: "owner (default) or member" },
  },
  notes: NOTES,
  run: async ({ given, options, environment }) => {
    const role = parseWord(options.role, ROLES, "--role") ?? ROLES[0];
    const wish = { name: checkName(given.NAME), accountId: requireId(options.account, "account"), role };
    const { perform } = await import("./perform.ts");
    const { createUser } = await import("./accounts.ts");
    const user = await perform(createUser(environment, wish));
    return { json: JSON.stringify(user), text: safeLine(`${user.id} ${user.name}`) };
  },
});

const tokenList = command({
  name: "admin token list",
  about: "List the tokens of an account, newest first",
  options: { ...accountOption, ...pageOptions },
  notes: NOTES,
  run: async ({ options, environment, note }) => {
    const accountId = requireId(options.account, "account");
    const { perform } = await import("./perform.ts");
    const { listTokens } = await import("./accounts.ts");
    const tokenPage = await perform(listTokens(environment, accountId, request(options)));
    const rows = tokenPage.items.map((token) => [
      token.id,
      time(token.created_at),
      timeOrDash(token.last_used_at),
      timeOrDash(token.expires_at),
      token.project_id ?? "all",
      token.name,
    ]);
    const text = table(["TOKEN", "CREATED", "USED", "EXPIRES", "PROJECT", "NAME"], rows, "No tokens.");
    return listing("tokens", tokenPage, { text, note });
  },
});

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)$/;

const expiry = (text: string | undefined): number | null => {
  if (text === undefined) return null;
  const at = INSTANT.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at)) throw usageFailure("--expires must be an instant such as 2027-01-31T00:00:00Z.");
  return at;
};

const tokenCreate = command({
  name: "admin token create",
  about: "Create a token for a user. It is printed once",
  takes: ["NAME"],
  options: {
    user: { value: "ID", about: "The user of the token" },
    "bound-to": { value: "PROJECT", about: "Limit the token to this project" },
    expires: { value: "INSTANT", about: "When it expires, such as 2027-01-31T00:00:00Z" },
  },
  notes: NOTES,
  run: async ({ given, options, environment, note }) => {
    const binding = options["bound-to"];
    const wish = {
      name: checkName(given.NAME),
      userId: requireId(options.user, "user"),
      projectId: binding === undefined ? null : anyId(binding, "--bound-to"),
      expiresAt: expiry(options.expires),
    };
    const { perform } = await import("./perform.ts");
    const { createToken } = await import("./accounts.ts");
    const token = await perform(createToken(environment, wish));
    note(`Token ${token.id}. It is shown only once:`);
    return { json: JSON.stringify(token), text: token.token };
  },
});

const tokenDelete = command({
  name: "admin token delete",
  asks: "Delete the token? What uses it stops working.",
  about: "Delete a token. It stops working at once",
  takes: ["TOKEN"],
  options: accountOption,
  notes: `TOKEN is the id from \`platform admin token list\`.\n\n${NOTES}`,
  run: async ({ given, options, environment }) => {
    const [id, accountId] = [anyId(given.TOKEN, "TOKEN"), requireId(options.account, "account")];
    const { perform } = await import("./perform.ts");
    const { deleteToken } = await import("./accounts.ts");
    await perform(deleteToken(environment, accountId, id));
    return { json: "{}", text: `${id} deleted` };
  },
});

const tierSet = command({
  name: "admin tier set",
  about: "Change an account's tier, which sets its session cap",
  takes: ["ACCOUNT", "TIER"],
  notes: `A lower cap does not stop sessions, but new ones wait for a free slot. With a higher cap, queued fires start within seconds.\n\n${NOTES}`,
  run: async ({ given, environment }) => {
    const accountId = anyId(given.ACCOUNT, "ACCOUNT");
    const tier = parseWord(given.TIER, TIERS, "TIER") ?? TIERS[0];
    const { perform } = await import("./perform.ts");
    const { setTier } = await import("./accounts.ts");
    const { session_cap: cap, ...account } = await perform(setTier(environment, accountId, tier));
    return {
      json: JSON.stringify({ ...account, session_cap: cap }),
      text: safeLine(`${account.id} ${tier}: ${quantity(cap, "session")}`),
    };
  },
});

const masterKeyRotate = command({
  name: "admin master-key rotate",
  about: "Encrypt all secrets with a new master key. Stop the service first",
  options: {
    "new-key-file": { value: "FILE", about: "File with the new key, if PLATFORM_MASTER_KEY is set" },
  },
  notes: `Encrypts secrets and repository credentials with the new key, in one transaction. If the command is interrupted, run it again.
Running sessions keep their sandboxes. Users must sign in to the dashboard again. Earlier backups need the previous key.

If the installation keeps its own key, the command creates and stores the new one. If the service uses PLATFORM_MASTER_KEY, set
it to the current key, write the new key to a file (openssl rand -hex 32) and name the file with --new-key-file. Then start
every service with the new key. Run the command on the service's machine, as its user and with its settings.`,
  run: async ({ options, environment }) => {
    const { perform } = await import("./perform.ts");
    const { rotateMasterKey } = await import("./master-key.ts");
    const rotation = await perform(rotateMasterKey(environment, options["new-key-file"] ?? null));
    const then =
      rotation.key === "given"
        ? "Start every service with PLATFORM_MASTER_KEY set to the new key."
        : `The new key is in ${rotation.data_dir}/master-key.`;
    return {
      json: JSON.stringify(rotation),
      text: safeLine(
        `Master key ${rotation.version} now encrypts ${quantity(rotation.secrets, "secret")}, ${quantity(rotation.repository_credentials, "repository credential")}, ${quantity(rotation.connector_credentials, "connector credential")}, ${quantity(rotation.outbound_webhooks, "outbound webhook")}, ${quantity(rotation.model_providers, "model provider")} and ${quantity(rotation.subscriptions, "subscription")}. ${then}`,
      ),
    };
  },
});

const pause = command({
  name: "admin pause",
  about: "Hold a copy back from its next start on, as a restored one is",
  notes: `For a copy of a database that its own tools restored, before the service starts on it. ${NOTES}`,
  run: async ({ environment }) => {
    const { perform } = await import("./perform.ts");
    const work = await import("./backup/resume.ts");
    await perform(work.pause(environment));
    const text = "The installation is paused from its next start on. `platform admin resume` lets it go.";
    return { json: JSON.stringify({ paused: true }), text };
  },
});

const resume = command({
  name: "admin resume",
  about: "Let a restored copy go: schedules, queues, webhooks and pushes begin",
  notes: `A restored installation begins with a pause, because its original may still run. ${NOTES}`,
  run: async ({ environment }) => {
    const { perform } = await import("./perform.ts");
    const work = await import("./backup/resume.ts");
    const wasPaused = await perform(work.resume(environment));
    const text = wasPaused ? "The pause has ended." : "The installation was not paused.";
    return { json: JSON.stringify({ was_paused: wasPaused }), text };
  },
});

export const adminCommands: readonly Command[] = [
  accountList,
  accountCreate,
  userList,
  userCreate,
  tokenList,
  tokenCreate,
  tokenDelete,
  tierSet,
  masterKeyRotate,
  pause,
  resume,
];
