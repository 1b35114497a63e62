/**
 * `platform admin`: the operator's commands on accounts. Their implementation (accounts.ts) is loaded only when it is
 * needed.
 */
import { command, type Command, type Outcome } from "../command.ts";
import { page, pageOptions } from "../commands/lists.ts";
import { usage } from "../failure.ts";
import { table, time, timeOrDash, visible } from "../terminal.ts";
import { anyId, oneOf } from "../words.ts";
import type { Tier } from "../../domain/tier.ts";

/** As in domain/tier.ts, which would load effect at the start of every call. */
const TIERS = ["free", "pro", "enterprise"] as const satisfies readonly Tier[];

const NOTES = `It works on the installation's database: run it on the service's machine, as its user, with the service's own settings
(PLATFORM_DATA_DIR or DATABASE_URL, PLATFORM_TIER_CAPS). The service may run meanwhile.`;

const DEFAULT_LIMIT = 50;
const LONGEST_LIMIT = 200;
const NAME_MAX = 200;

const request = (options: Parameters<typeof page>[0]) => {
  const { limit = DEFAULT_LIMIT, cursor = null } = page(options);
  if (limit > LONGEST_LIMIT) throw usage(`--limit is at most ${LONGEST_LIMIT}.`);
  return { limit, cursor };
};

/** The API's rule for names. */
const named = (name: string): string => {
  if (name === "" || name.length > NAME_MAX || name.includes("\0") || !name.isWellFormed())
    throw usage(`NAME is text of 1 to ${NAME_MAX} characters.`);
  return name;
};

const required = (id: string | undefined, option: string): string => {
  if (id === undefined) throw usage(`--${option} is missing.`);
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
  if (next !== null) note(`There are more: --cursor ${next}`);
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
    const found = await perform(listAccounts(environment, request(options)));
    const rows = found.items.map((account) => [
      account.id,
      account.tier,
      `${account.active_sessions} of ${account.session_cap}`,
      String(account.queued_fires),
      account.name,
    ]);
    const text = table(["ACCOUNT", "TIER", "SESSIONS", "WAITING", "NAME"], rows, "No accounts.");
    return listing("accounts", found, { text, note });
  },
});

const accountCreate = command({
  name: "admin account create",
  about: "Make an account; its users come after it",
  takes: ["NAME"],
  options: { tier: { value: "TIER", about: `${TIERS.join(", ")} (PLATFORM_DEFAULT_TIER)` } },
  notes: NOTES,
  run: async ({ given, options, environment }) => {
    const wish = { name: named(given.NAME), tier: oneOf(options.tier, TIERS, "--tier") };
    const { perform } = await import("./perform.ts");
    const { createAccount } = await import("./accounts.ts");
    const made = await perform(createAccount(environment, wish));
    return { json: JSON.stringify(made), text: visible(`${made.id} ${made.tier} ${made.name}`) };
  },
});

const accountOption = { account: { value: "ID", about: "The account" } } as const;

const userList = command({
  name: "admin user list",
  about: "List the users of an account, newest first",
  options: { ...accountOption, ...pageOptions },
  notes: NOTES,
  run: async ({ options, environment, note }) => {
    const accountId = required(options.account, "account");
    const { perform } = await import("./perform.ts");
    const { listUsers } = await import("./accounts.ts");
    const found = await perform(listUsers(environment, accountId, request(options)));
    const text = table(["USER", "NAME"], found.items.map(({ id, name }) => [id, name]), "No users."); // prettier-ignore
    return listing("users", found, { text, note });
  },
});

const userCreate = command({
  name: "admin user create",
  about: "Make a user of an account",
  takes: ["NAME"],
  options: accountOption,
  notes: NOTES,
  run: async ({ given, options, environment }) => {
    const wish = { name: named(given.NAME), accountId: required(options.account, "account") };
    const { perform } = await import("./perform.ts");
    const { createUser } = await import("./accounts.ts");
    const made = await perform(createUser(environment, wish));
    return { json: JSON.stringify(made), text: visible(`${made.id} ${made.name}`) };
  },
});

const tokenList = command({
  name: "admin token list",
  about: "List the tokens of an account, newest first",
  options: { ...accountOption, ...pageOptions },
  notes: NOTES,
  run: async ({ options, environment, note }) => {
    const accountId = required(options.account, "account");
    const { perform } = await import("./perform.ts");
    const { listTokens } = await import("./accounts.ts");
    const found = await perform(listTokens(environment, accountId, request(options)));
    const rows = found.items.map((token) => [
      token.id,
      time(token.created_at),
      timeOrDash(token.last_used_at),
      timeOrDash(token.expires_at),
      token.project_id ?? "all",
      token.name,
    ]);
    const text = table(["TOKEN", "CREATED", "USED", "EXPIRES", "PROJECT", "NAME"], rows, "No tokens.");
    return listing("tokens", found, { text, note });
  },
});

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)$/;

const expiry = (text: string | undefined): number | null => {
  if (text === undefined) return null;
  const at = INSTANT.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at)) throw usage("--expires is an instant such as 2027-01-31T00:00:00Z.");
  return at;
};

const tokenCreate = command({
  name: "admin token create",
  about: "Make a token for a user; it is printed once",
  takes: ["NAME"],
  options: {
    user: { value: "ID", about: "Whose it is" },
    "bound-to": { value: "PROJECT", about: "It reaches this project alone" },
    expires: { value: "INSTANT", about: "When it ends, such as 2027-01-31T00:00:00Z" },
  },
  notes: NOTES,
  run: async ({ given, options, environment, note }) => {
    const bound = options["bound-to"];
    const wish = {
      name: named(given.NAME),
      userId: required(options.user, "user"),
      projectId: bound === undefined ? null : anyId(bound, "--bound-to"),
      expiresAt: expiry(options.expires),
    };
    const { perform } = await import("./perform.ts");
    const { createToken } = await import("./accounts.ts");
    const made = await perform(createToken(environment, wish));
    note(`Token ${made.id}; it is shown this once:`);
    return { json: JSON.stringify(made), text: made.token };
  },
});

const tokenDelete = command({
  name: "admin token delete",
  about: "Delete a token: it stops working at once",
  takes: ["TOKEN"],
  options: accountOption,
  notes: `TOKEN is its id, as \`platform admin token list\` has it.\n\n${NOTES}`,
  run: async ({ given, options, environment }) => {
    const [id, accountId] = [anyId(given.TOKEN, "TOKEN"), required(options.account, "account")];
    const { perform } = await import("./perform.ts");
    const { deleteToken } = await import("./accounts.ts");
    await perform(deleteToken(environment, accountId, id));
    return { json: "{}", text: `${id} deleted` };
  },
});

const tierSet = command({
  name: "admin tier set",
  about: "Give an account another tier, and with it the number of sessions it may have live",
  takes: ["ACCOUNT", "TIER"],
  notes: `A lower number ends nothing: nothing new starts until there is room. Fires that wait start within seconds of a higher one.\n\n${NOTES}`,
  run: async ({ given, environment }) => {
    const accountId = anyId(given.ACCOUNT, "ACCOUNT");
    const tier = oneOf(given.TIER, TIERS, "TIER") ?? TIERS[0];
    const { perform } = await import("./perform.ts");
    const { setTier } = await import("./accounts.ts");
    const { session_cap: cap, ...account } = await perform(setTier(environment, accountId, tier));
    return {
      json: JSON.stringify({ ...account, session_cap: cap }),
      text: visible(`${account.id} ${tier}: ${cap} sessions`),
    };
  },
});

const masterKeyRotate = command({
  name: "admin master-key rotate",
  about: "Seal everything with a new master key; the service is stopped meanwhile",
  options: { "new-key-file": { value: "FILE", about: "The new key, where PLATFORM_MASTER_KEY is set" } },
  notes: `Secrets and repository credentials are sealed with the new key, in one transaction. Run the command again if it is cut off.
Sessions that run keep their sandboxes. People sign in to the dashboard again. Backups that were made before hold the former key.

Where the installation keeps its key itself, the new one takes its place. Where it is given PLATFORM_MASTER_KEY, set that to the
present key, write the new one to a file (openssl rand -hex 32) and name it; then start every service with the new one.
Run it on the service's machine, as its user and with its settings.`,
  run: async ({ options, environment }) => {
    const { perform } = await import("./perform.ts");
    const { rotateMasterKey } = await import("./master-key.ts");
    const made = await perform(rotateMasterKey(environment, options["new-key-file"] ?? null));
    const then =
      made.key === "given"
        ? "Start every service with PLATFORM_MASTER_KEY set to the new key."
        : `The new key is in ${made.data_dir}/master-key.`;
    return {
      json: JSON.stringify(made),
      text: visible(
        `Master key ${made.version} seals ${made.secrets} secrets and ${made.repository_credentials} repository credentials. ${then}`,
      ),
    };
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
];
